"""CORRELATED PAIRS: operators and definition agree to the last bit, and with the self-join that SQL has."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from auctions import define
from headrace.algebra.nodes import Aggregate, Plan
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.coercion import literal
from headrace.expressions.tree import Call, Literal
from headrace.kernels.values.correlations import deviations
from headrace.language.catalog import Catalog
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.reference.series import correlation
from headrace.schema import BIGINT, BOOLEAN, DOUBLE
from headrace.time import INFINITY
from how_many import examples
from property.test_operators import EPOCHS, LEFT, Arrival, K, V, X, check
from support import check_by_reference

READING = (
    "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM csv OPTIONS (path 's') TIMESTAMP BY ts;"
)
VALUES = (
    None,
    0.0,
    -0.0,
    1.0,
    2.0,
    0.1,
    0.3,
    -1.5,
    1e300,
    -1e308,
    1e-320,
    1e9,
    1e9 + 1e-6,
    math.nan,
    math.inf,
)


def value_of(draw: random.Random, hostile: float) -> float | None:
    """A value; with so much probability one that is likely to go wrong."""
    return (
        draw.choice(VALUES)
        if draw.random() < hostile
        else draw.choice([draw.gauss(0, 1), draw.randint(-2, 2) / 1])
    )


def signed_rows(seed: int) -> list[Arrival]:
    """Most instants of three series, valid for different times, some of them taken back; in random epochs."""
    draw = random.Random(seed)
    hostile, arrivals = draw.choice([0.0, 0.2, 0.7]), []
    for at in (None, *range(-2, 6)):
        for series in ("a", "b", "c", None):
            if draw.random() < (0.25 if None in (at, series) else 0.8):
                payload, ts = (series, at, value_of(draw, hostile)), draw.randint(-3, 6)
                te = draw.choice([ts + draw.randint(1, 12), INFINITY])
                arrivals.append(Arrival((payload, ts, te, draw.choice([1, 1, 1, 2])), draw.randrange(EPOCHS)))
                if draw.random() < 0.3:
                    cut = draw.randint(ts, min(te - 1, ts + 9))
                    arrivals.append(Arrival((payload, cut, te, -1), draw.randrange(EPOCHS)))
    return arrivals


thresholds = st.sampled_from([(0.5, None), (None, -0.5), (0.9, -0.9), (-0.2, None), (0.0, 0.1), (1.0, None)])


@given(
    st.integers(0, 10**6),
    thresholds,
    st.sampled_from([(1, 0, 2), (2, 0, 2), (1, 2, 2), (1, 1, 3), (3, 1, 2)]),
    st.sampled_from(["", "grouped", "filtered"]),
    st.integers(0, 3),
)
@examples(16, 150)
def test_the_operator_law(
    seed: int,
    beyond: tuple[float | None, float | None],
    rule: tuple[int, int, int],
    kind: str,
    slack: int,
) -> None:
    """Of random signed histories, in random epochs: the same pairs, and the same bits of correlations."""
    step, lags, fewest = rule
    call = resolve_aggregate(
        "CORRELATED_PAIRS",
        *(K, V, X),
        *(literal(step), *(Literal(threshold, DOUBLE) for threshold in beyond)),
        *(literal(lags), literal(fewest)),
        modifiers=Modifiers(condition=Call(">", (V, literal(0)), BOOLEAN) if kind == "filtered" else None),
    )
    group = Call(">", (V, literal(2)), BOOLEAN)
    keys = (("late", group),) if kind == "grouped" else ()
    check(Aggregate(LEFT, keys, (("pairs", call),)), [signed_rows(seed)], slack)


def plan_of(text: str) -> Plan:
    """The plan of a query over readings."""
    return define(READING + text, Catalog())[1][-1]


def readings(rows: list[tuple[str | None, float | None, int]]) -> pa.Table:
    """Readings in order of time."""
    device, value, ts = zip(*sorted(rows, key=lambda row: row[2]), strict=True)
    return pa.table(
        {
            "device": pa.array(device, pa.string()),
            "value": pa.array(value, DOUBLE),
            "ts": pa.array(ts, BIGINT),
        }
    )


def random_readings(seed: int) -> pa.Table:
    """Most instants of four series, and some rows of none."""
    draw = random.Random(seed)
    hostile = draw.choice([0.0, 0.2, 0.7])
    return readings(
        [
            (device, value_of(draw, hostile), ts)
            for ts in range(25)
            for device in ("a", "b", "c", "d", None)
            if draw.random() < 0.7
        ]
    )


CLAUSES = (
    "(RANGE 8 SLIDE 2 ALIGN 1) ABOVE 0.5 AT LEAST 2 VALUES",
    "(RANGE 8 SLIDE 2) ABOVE 0.5 OR BELOW -0.5",
    "(RANGE 6 ALIGN 2) BELOW -0.3 LAG UP TO 2",
    "(RANGE 9 SLIDE 6 ALIGN 3) ABOVE 0.1 LAG UP TO 3 AT LEAST 2 VALUES",
)


@given(st.integers(0, 10**6), st.sampled_from(CLAUSES), st.integers(1, 3))
@examples(6, 40)
def test_whole_queries_answer_as_they_are_defined(seed: int, clauses: str, buckets: int) -> None:
    text = f"SELECT * FROM CORRELATED PAIRS OF (SELECT device, value FROM s) OVER {clauses}"
    check_by_reference({"q": plan_of(text)}, random_readings(seed), buckets)


SELF_JOIN = """
WITH means AS (
  SELECT device, window_end AS at, AVG(value) AS value FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '2')
  WHERE device IS NOT NULL AND ABS(value) <= 1e308 GROUP BY device, window_start, window_end
)
SELECT a.device AS first, b.device AS second, CORR(a.value, b.value) AS correlation
FROM means [RANGE 12 SLIDE 4] AS a JOIN means [RANGE 12 SLIDE 4] AS b ON a.at = b.at AND a.device < b.device
GROUP BY a.device, b.device HAVING COUNT(*) >= 3 AND CORR(a.value, b.value) > 0.4
"""
AS_PAIRS = """
SELECT * FROM CORRELATED PAIRS OF (SELECT device, value FROM s) OVER (RANGE 12 SLIDE 4 ALIGN 2) ABOVE 0.4
"""


@given(st.integers(0, 10**6))
@examples(10, 60)
def test_the_pairs_are_those_of_the_self_join(seed: int) -> None:
    """Written out in SQL: a join of the means with themselves, and CORR, which is rounded once."""
    draw = random.Random(seed)
    odd = [None, math.nan, math.inf]
    rows: list[tuple[str | None, float | None, int]] = [
        (device, draw.choice(odd) if draw.random() < 0.1 else draw.gauss(0, 1) + (device == "b") * ts, ts)
        for ts in range(30)
        for device in "abcd"
        if draw.random() < 0.8
    ]
    table = readings(rows)
    stamps: list[int] = table["ts"].to_pylist()
    stream = Stream(
        table.column_names,
        [(row, ts, ts + 1, 1) for row, ts in zip(_tuples(table), stamps, strict=True)],
    )
    ours, theirs = (_at_instants(evaluate(plan_of(text), {"s": stream})) for text in (AS_PAIRS, SELF_JOIN))
    assert ours.keys() == theirs.keys()
    for place, found in ours.items():
        assert found == pytest.approx(theirs[place], rel=1e-9, abs=1e-12), place


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


def _at_instants(history: list[tuple[tuple[object, ...], int, int]]) -> dict[tuple[object, ...], object]:
    """By pair and instant, the correlation."""
    return {
        (first, second, instant): found
        for (first, second, found), ts, te in history
        for instant in range(ts, min(te, 60))
    }


@given(st.integers(0, 10**6), st.sampled_from(["", " LAG UP TO 2"]))
@examples(4, 24)
def test_disorder_cuts_and_restarts_change_no_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, lag: str
) -> None:
    """Rows pushed in order and at once, or out of order in small portions by several processes one by one."""
    draw = random.Random(seed)
    rows = [
        {"device": device, "value": draw.gauss(0, 1), "ts": ts}
        for ts in range(24)
        for device in "abc"
        if draw.random() < 0.9
    ]
    late = sorted(rows, key=lambda row: row["ts"] + draw.randint(0, 4))  # type: ignore[operator]
    cuts = [0, *sorted(draw.sample(range(1, len(rows)), 4)), len(rows)]
    whole = _history([rows], lag, tmp_path_factory)
    assert whole
    assert whole == _history([late[a:b] for a, b in pairwise(cuts)], lag, tmp_path_factory)


def _history(
    portions: list[list[dict[str, object]]], lag: str, folders: pytest.TempPathFactory
) -> list[object]:
    """The history of the pairs, by a run for each portion over one store."""
    place = folders.mktemp("store")
    found: list[object] = []
    for number, rows in enumerate(portions):
        db = hr.connect(storage=place, runner="inline")
        if number == 0:
            db.execute(
                "CREATE STREAM s (device STRING, value DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts "
                "DISORDER 4;"
                "CREATE QUERY q AS SELECT * FROM CORRELATED PAIRS OF (SELECT device, value FROM s) "
                f"OVER (RANGE 8 SLIDE 2 ALIGN 1) ABOVE 0.3 OR BELOW -0.3{lag}"
            )
        db.start()
        db.push("s", rows)
        if number == len(portions) - 1:
            db.push("s", [{"device": "z", "value": 0.0, "ts": 40}])
            found = db["q"].history().to_pylist()
        db.close()
    return sorted(found, key=repr)


COME, GO = 0.5, 0.2
AT_ALL = f"CORRELATED PAIRS OF (SELECT device, value FROM s) OVER (RANGE 6 SLIDE 2) ABOVE {GO}"
SELDOM = f"""
SELECT first, second FROM (
  ISTREAM(SELECT first, second, TRUE AS starts FROM {AT_ALL} WHERE correlation > {COME})
  UNION ALL
  DSTREAM(SELECT first, second, FALSE AS starts FROM {AT_ALL})
) [PARTITION BY first, second ROWS 1] WHERE starts
"""


@given(st.integers(0, 10**6))
@examples(6, 40)
def test_pairs_come_above_one_threshold_and_go_below_another(seed: int) -> None:
    """The recipe for hysteresis, beside a walk over the slides of the pairs that are above the lower one."""
    table = random_readings(seed)
    with hr.connect(runner="inline") as db:
        db.stream("s", table, timestamp="ts")
        pairs, seldom = db.query(f"SELECT * FROM {AT_ALL}"), db.query(SELDOM)
        db.run()
        there: set[tuple[object, object]] = set()
        for slide in range(1, 40, 2):
            found = {
                (row["first"], row["second"]): row["correlation"] for row in pairs.snapshot(slide).to_pylist()
            }
            there = {pair for pair, value in found.items() if value > COME or pair in there}
            answer = seldom.snapshot(slide).to_pylist()
            assert {(row["first"], row["second"]) for row in answer} == there, slide


@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-200, 1e200]), st.sampled_from([0.0, 1e6]))
@examples(30, 300)
def test_a_correlation_is_that_of_numpy(seed: int, scale: float, away: float) -> None:
    draw = np.random.default_rng(seed)
    left = draw.normal(size=20)
    right = left * draw.normal() + draw.normal(size=20)
    found = correlation(((left + away) * scale).tolist(), (right * scale).tolist())
    assert found == pytest.approx(np.corrcoef(left + away, right)[0, 1], rel=1e-6, abs=1e-9)


def test_values_that_are_all_the_same_do_not_vary() -> None:
    """Also where their mean is rounded, so that none of them equals it."""
    for value in (0.1, 0.3, 1 / 3, 1e300, -7e-310, 5e-324, 0.0):
        for count in range(2, 70):
            rows = np.array([[value] * count, np.arange(count, dtype=np.float64)])
            _, counts, _, squares = deviations(rows, np.ones(rows.shape, dtype=np.uint8))
            assert (counts == count).all()
            assert squares[0] == 0 < squares[1], (value, count)


def test_what_has_no_correlation() -> None:
    """Columns that do not vary, also where their mean is rounded, and those of one value."""
    assert correlation([0.1] * 60, [float(n) for n in range(60)]) is None
    assert correlation([1e308, 1e308, 1e308], [1.0, 2.0, 4.0]) is None
    assert correlation([5e-324, 0.0, 5e-324], [1.0, 2.0, 1.0]) == pytest.approx(-1)
    assert correlation([1.7e308, -1.7e308, 0.0], [1.0, -1.0, 0.0]) == pytest.approx(1)
    assert correlation([1.0], [2.0]) is None
