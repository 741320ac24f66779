"""Estimates and their bounds, beside the exact query, of values that are hard to add up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

import headrace as hr

STREAM = (
    "CREATE STREAM s (k BIGINT, v BIGINT, x DOUBLE, d DECIMAL(38, 2), ts BIGINT) FROM push TIMESTAMP BY ts"
)
Rows = Sequence[Mapping[str, Any]]


def row(ts: int, **values: object) -> dict[str, Any]:
    return {"k": ts % 3, "v": ts, "x": float(ts), "d": Decimal("1.25"), **values, "ts": ts}


def answers(rows: Rows, at: int, query: str, keep: float = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """The only row of the exact answer at an instant, and that of the estimated one."""
    db = hr.connect(runner="inline")
    db.execute(f"{STREAM}; CREATE QUERY about LOSS TOLERANT AS {query}; CREATE QUERY exact AS {query}")
    db.start()
    if keep < 1:
        db.execute(f"ALTER QUERY about SET (KEEP {keep})")
    db.push("s", [*rows, row(max(one["ts"] for one in rows) + 1000)])
    (exact,), (about,) = (db[name].snapshot(at).to_pylist() for name in ("exact", "about"))
    db.close()
    return exact, about


MIXED = """SELECT window_start AS w, CAST(COUNT(*) AS DOUBLE) AS n, COUNT(*) * window_start AS product,
    COUNT(*) + window_start + k AS added, SUM(v) / (window_end - window_start) AS part,
    COUNT(*) / window_end AS ends, CAST(COUNT(*) AS DOUBLE) * (window_start + k) AS scaled,
    CAST(COUNT(*) AS DOUBLE) - window_end AS less
    FROM TUMBLE(s, 100) WHERE k = 1 GROUP BY k, window_start, window_end"""


def test_bounds_of_windows_and_keys_stand_beside_estimates() -> None:
    rows = [row(ts) for ts in range(1000)]
    exact, about = answers(rows, 599, MIXED)
    assert all(about[name + side] == exact[name] for name in exact if name != "w" for side in SIDES)
    exact, about = answers(rows, 599, MIXED, keep=0.5)
    for side in SIDES:
        assert about["scaled" + side] == pytest.approx(about["n" + side] * 501)
        assert about["less" + side] == pytest.approx(about["n" + side] - 600)
        assert about["ends" + side] == pytest.approx(about["n" + side] / 600)
        assert abs(about["product" + side] - about["n" + side] * 500) <= 1
    assert about["added_low"] < about["added"] < about["added_high"]
    assert about["part_low"] < exact["part"] < about["part_high"]


SIDES = ("", "_low", "_high")


def test_values_that_are_mostly_nothing_have_bounds_as_counts_have() -> None:
    few, many = ([row(ts, v=ts % every and 1) for ts in range(1000)] for every in (999, 2))
    query = """SELECT SUM(CASE WHEN v = 1 THEN 1 ELSE 0 END) AS ones, COUNT_IF(v = 1) AS counted,
        AVG(v) AS mean, SUM(CASE WHEN v = 0 THEN 1 ELSE 0 END) AS s,
        SUM(CASE WHEN v = 0 THEN 1.5 ELSE 0 END) AS d,
        COUNT_IF(v = 0) AS c, AVG(CASE WHEN v = 0 THEN 1 ELSE 0 END) AS a FROM s [RANGE 1000]"""
    _, about = answers(few, 999, query, keep=0.5)
    assert [about[name + "_low"] for name in ("s", "d", "c", "a")] == [None] * 4
    assert about["ones_low"] == about["counted_low"] < 998 <= about["ones_high"]
    exact, about = answers(many, 999, query, keep=0.5)
    for name in ("s", "c", "ones", "counted", "a", "mean"):
        assert about[name + "_low"] < exact[name] < about[name + "_high"]
    assert [about["s" + side] for side in SIDES] == [about["c" + side] for side in SIDES]


BIG = 2**62
HOSTILE = {
    "equal ones cancel out": [*(row(1, v=v) for v in (BIG + 5, BIG + 5, -BIG, -BIG)), row(2, v=1)],
    "a mean of a sum that overflows": [row(ts, v=2**61 + ts, d=Decimal(10**35) + ts) for ts in range(31)],
    "infinite": [row(ts, x=math.inf if ts == 5 else 0.1) for ts in range(20)],
    "both infinite": [row(ts, x=(math.inf, -math.inf, 0.5)[ts % 3]) for ts in range(20)],
    "no numbers": [row(ts, x=math.nan if ts == 5 else 1.0) for ts in range(20)],
    "equal rows": [row(ts // 7, k=ts % 2, x=0.1 * (ts // 7), d=Decimal("0.07")) for ts in range(60)],
    "zeros": [row(ts, v=0, x=-0.0, d=Decimal(0)) for ts in range(20)],
    "no values": [row(ts, v=None, x=None, d=None) for ts in range(20)],
    "far apart": [
        row(ts, x=(1e300, 1e-300, -1e300)[ts % 3], v=(BIG, 1, 3 - BIG)[ts % 3]) for ts in range(21)
    ],
}
AGGREGATES = ("COUNT(*)", "COUNT(v)", "AVG(v)", "AVG(x)", "AVG(d)", "SUM(x)", "SUM(x) / COUNT(*) + AVG(x)")
SUMS = (
    "SUM(v)",
    "SUM(d)",
    "SUM(v) / COUNT(*)",
    "SUM(v) FILTER (WHERE k = 1)",
    "AVG(d) - AVG(v) * window_start",
)


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_where_all_rows_are_kept_answers_and_bounds_are_the_exact_ones(kind: str) -> None:
    asked = AGGREGATES if kind == "a mean of a sum that overflows" else AGGREGATES + SUMS
    items = ", ".join(f"{text} AS a{place}" for place, text in enumerate(asked))
    exact, about = answers(HOSTILE[kind], 99, f"SELECT {items} FROM TUMBLE(s, 100) GROUP BY window_start")
    expected = {name + side: value for name, value in exact.items() for side in SIDES}
    assert repr(about) == repr(expected)


def test_a_bound_that_does_not_fit_is_unknown_and_takes_no_row_with_it() -> None:
    query = """SELECT COUNT(*) AS n, SUM(v) AS s, SUM(x) AS x, AVG(x) AS a,
        CAST(SUM(k) AS DECIMAL(2, 0)) AS d, SUM(x) - SUM(x) AS nothing FROM s [RANGE 1000]"""
    rows = [row(ts, v=2**63 // 100, x=1e200 + ts * 1e190, k=1) for ts in range(80)]
    exact, about = answers(rows, 79, query, keep=0.5)
    assert about["n_low"] < 80 < about["n_high"]
    assert about["s_low"] < exact["s"]
    assert about["d_low"] < exact["d"]
    assert about["s_high"] is about["d_high"] is None
    assert [about[name + side] for name in ("x", "a", "nothing") for side in SIDES[1:]] == [None] * 6


def test_a_count_is_at_least_that_of_the_rows_that_are_kept() -> None:
    query = """SELECT COUNT(*) AS n, COUNT(*) - 1000 AS less, COUNT(*) FILTER (WHERE v < 9) AS few
        FROM s [RANGE 2000]"""
    db = hr.connect(runner="inline")
    db.execute(f"{STREAM}; CREATE QUERY about LOSS TOLERANT AS {query}")
    db.start()
    db.push("s", [row(ts) for ts in range(1000)])
    for begin, end, keep in ((1000, 1040, 0.5), (1040, 1060, 0.02)):
        db.execute(f"ALTER QUERY about SET (KEEP {keep})")
        db.push("s", [row(ts) for ts in range(begin, end)])
    db.push("s", [row(9000)])
    (about,) = db["about"].snapshot(1059).to_pylist()
    db.close()
    assert 1000 < about["n_low"] < about["n"] < about["n_high"]
    assert about["less_low"] < 0
    assert (about["few"], about["few_low"]) == (9, None)


@pytest.mark.parametrize(
    ("column", "value"), [("v", 2**54), ("v", -(2**54)), ("d", Decimal("1.9e33")), ("d", Decimal("-1.9e33"))]
)
def test_an_estimate_that_does_not_fit_is_null_where_the_answer_may_fit(column: str, value: Any) -> None:
    db = hr.connect(runner="inline")
    query = f"SELECT SUM({column}) AS s, CAST(SUM({column}) AS DOUBLE) AS x FROM s [RANGE 500]"
    db.execute(f"{STREAM}; CREATE QUERY about LOSS TOLERANT AS {query}; CREATE QUERY exact AS {query}")
    db.start()
    db.execute("ALTER QUERY about SET (KEEP 0.1)")
    db.push("s", [row(ts, **{column: value}) for ts in range(6000)])
    limit, missing, bounded = 2**63 if column == "v" else Decimal(10) ** 36, 0, 0
    near, far = ("s_low", "s_high") if value > 0 else ("s_high", "s_low")
    for at in range(600, 6000, 100):
        (exact,), (about,) = (db[name].snapshot(at).to_pylist() for name in ("exact", "about"))
        assert exact["s"] == 500 * value
        if about["s"] is None:
            missing += 1
            bounded += about[near] is not None
            assert about[far] is about["x"] is None
        else:
            assert abs(about[near]) <= abs(about["s"]) < limit
    # The bound that is nearer to 0 may fit where the estimate does not.
    assert 0 < bounded <= missing < 54
    assert db.dead_letters().num_rows == 0
    db.close()
