"""A query that begins with what larger windows hold is the same as one that ran from the beginning."""

from __future__ import annotations

import re
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

LATENESS: Final = 4
SUMS: Final = ("COUNT(*)", "SUM(v)", "AVG(v)", "COUNT(v)", "STDDEV_SAMP(f)", "SUM(f)", "AVG(f)", "CORR(v, f)")
ALL: Final = ", ".join(f"{one} AS a{place}" for place, one in enumerate(SUMS))
CONDITIONS: Final = ("", "WHERE v > 3", "WHERE k <> 1 AND f < 0.75")


def texts(sums: list[str], size: int, grouped: bool, condition: str, above: str) -> str:
    """A query over some sums in a window, with something that looks at one instant at a time above them."""
    shown = ", ".join(f"{one} AS x{place}" for place, one in enumerate(sums))
    keys = "k, " if grouped else ""
    text = f"SELECT {keys}{shown} FROM s [RANGE {size}] {condition} {'GROUP BY k' if grouped else ''}"
    if above == "having":
        return f"{text} HAVING {sums[0]} > 1"
    return f"SELECT DISTINCT x0 FROM ({text}) AS inner_query" if above == "distinct" else text


Both = tuple[str, str]
"""A query, and one with a larger window."""


@st.composite
def queries(draw: st.DrawFn) -> Both:
    """A query, and a larger one that holds all that it needs, or nearly so."""
    some = draw(st.lists(st.sampled_from(SUMS), min_size=1, max_size=3, unique=True))
    grouped, condition = draw(st.booleans()), draw(st.sampled_from(CONDITIONS))
    size, more = draw(st.integers(1, 12)), draw(st.integers(0, 6))
    small = texts(some, size, grouped, condition, draw(st.sampled_from(["", "having", "distinct"])))
    if draw(st.integers(0, 4)) == 4:
        condition, grouped = draw(st.sampled_from(CONDITIONS)), draw(st.booleans())
    return small, texts(list(SUMS), size + more, grouped, condition, "")


ROW: Final = st.tuples(
    st.integers(0, 2),
    st.none() | st.integers(-3, 9),
    st.sampled_from([0.1, 0.5, 1e300, -1e300, 0.25]),
    st.integers(0, 3),
    st.integers(0, LATENESS),
)
LAST: Final = (0, 1, 0.5, 40, 0)
ROWS: Final = st.lists(ROW, min_size=1, max_size=25)
Row = tuple[int, int | None, float, int, int]
"""A key, two values, how much newer it is than those before, and how late."""


@pytest.mark.parametrize("how", ["created", "replaced", "resumed"])
@pytest.mark.slow("two databases an example, and restarts")
@examples(6, 60)
@given(ROWS, ROWS, ROWS, queries(), st.sampled_from([1, 3]), st.sets(st.integers(0, 24), max_size=2))
def test_what_begins_with_larger_windows_is_exact_from_where_it_says(
    how: str,
    missed: list[Row],
    before: list[Row],
    after: list[Row],
    both: Both,
    buckets: int,
    restarts: set[int],
) -> None:
    small, large = both
    name = "large" if how == "replaced" else "q"
    with TemporaryDirectory() as folder, opened(None, buckets) as whole:
        whole.execute(f"CREATE QUERY q AS {small}")
        whole.start()
        live = opened(folder if restarts else None, buckets)
        live.execute("CREATE QUERY k AS SELECT k, v, f FROM s")
        live.start()
        if how == "resumed":
            live.execute(f"CREATE QUERY q AS {small}; ALTER QUERY q PAUSE")
        # What the larger one lacks, the other one may lack as well.
        ts = pushed([whole, live], missed[: len(before) % 3], 0)
        live.execute(f"CREATE QUERY large AS {large}")
        ts = pushed([whole, live], before, ts)
        begun(live, how, small)
        exact = exact_of(live[name])
        for place, row in enumerate([*after, LAST]):
            ts = pushed([whole, live], [row], ts)
            if place in restarts:
                live.close()
                live = opened(folder, buckets)
                live.start()
        with live:
            for instant in range(exact, live[name].heartbeat) if exact is not None else ():
                assert rows_at(live[name], instant) == rows_at(whole["q"], instant), instant


def begun(db: hr.Database, how: str, text: str) -> None:
    """Let a query begin: created, in the place of the larger one, or resumed; it is exact as EXPLAIN says."""
    if how == "resumed":
        db.execute("ALTER QUERY q RESUME")
        return
    made = f"CREATE QUERY q AS {text}" if how == "created" else f"CREATE OR REPLACE QUERY large AS {text}"
    (told,) = db.execute(f"EXPLAIN {made}")
    (query,) = db.execute(made)
    exact = [int(found) for found in re.findall(r"it is exact from (\d+) on", str(told))]
    gaps = query.gaps().to_pylist()
    assert exact == [gap["exact_from"] for gap in gaps if gap["exact_from"] != gap["lacks_to"]]


def exact_of(query: hr.Query) -> int | None:
    """From where on a query is exact, as it says; None where it never is."""
    gaps = query.gaps().to_pylist()
    found: int | None = gaps[-1]["exact_from"] if gaps else query.heartbeat
    return found


def pushed(dbs: list[hr.Database], rows: list[Row], ts: int) -> int:
    """Push rows, some of them late but in time; the newest instant."""
    for k, v, f, step, late in rows:
        ts += step
        for db in dbs:
            db.push("s", {"k": k, "v": v, "f": f, "ts": max(ts - late, 0)})
    return ts


def rows_at(query: hr.Query, instant: int) -> list[str]:
    return sorted(str(row) for row in query.snapshot(instant).to_pylist())


def opened(storage: str | None, buckets: int) -> hr.Database:
    db = hr.connect("inline", storage, buckets=buckets)
    if "s" not in db.streams:
        db.execute(
            "CREATE STREAM s (k BIGINT, v BIGINT, f DOUBLE, ts BIGINT) FROM push "
            f"TIMESTAMP BY ts DISORDER {LATENESS}"
        )
    return db


def test_a_smaller_window_has_what_a_larger_one_holds() -> None:
    with opened(None, 1) as db:
        db.execute("CREATE QUERY a AS SELECT k, SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 20] GROUP BY k")
        db.start()
        pushed([db], [(0, 1, 0.5, 1, 0)] * 40, 0)
        made = "b AS SELECT k, AVG(v) AS x, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k HAVING COUNT(*) > 1"
        (told,) = db.execute(f"EXPLAIN CREATE QUERY {made}")
        assert str(told).splitlines() == [
            "it begins with what larger windows hold: a",
            "it answers from 36 on",
        ]
        (b,) = db.execute(f"CREATE QUERY {made}")
        pushed([db], [(0, 1, 0.5, 1, 0)], 40)
        assert b.snapshot(36).to_pylist() == [{"k": 0, "x": 1.0, "n": 10}]
        (c,) = db.execute(f"CREATE QUERY c STARTING NOW {made.removeprefix('b ')}")
        assert exact_of(c) == 51
        (larger,) = db.execute("CREATE QUERY d AS SELECT k, SUM(v) AS x FROM s [RANGE 30] GROUP BY k")
        assert exact_of(larger) == 71


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MAX(v) AS x FROM s [RANGE 10]",
        "SELECT COUNT(DISTINCT v) AS x FROM s [RANGE 10]",
        "SELECT SUM(v) AS x FROM s [RANGE 10] WHERE k = 1",
        "SELECT SUM(v) AS x FROM s [RANGE 10 SLIDE 5]",
        "SELECT k, SUM(v) AS x FROM s [ROWS 10] GROUP BY k",
        "SELECT SUM(x) AS y FROM (SELECT SUM(v) AS x FROM s [RANGE 10]) [RANGE 5]",
        "SELECT SUM(v) AS x FROM s [RANGE MIN 5, MAX 10]",
    ],
)
def test_what_needs_more_begins_with_the_rows_to_come(text: str) -> None:
    with opened(None, 1) as db:
        db.execute("CREATE QUERY a AS SELECT SUM(v) AS x, MAX(v) AS m FROM s [RANGE 20]")
        db.execute("CREATE QUERY b AS SELECT SUM(v) AS x FROM s [RANGE 20]")
        db.start()
        pushed([db], [(0, 1, 0.5, 1, 0)] * 40, 0)
        (query,) = db.execute(f"CREATE QUERY c AS {text}")
        assert exact_of(query) != query.heartbeat


TWO = (
    "SELECT a.n AS n, b.n AS m FROM (SELECT COUNT(*) AS n FROM s [RANGE 10]) a, "
    "(SELECT COUNT(*) AS n FROM t [RANGE 10]) b"
)


@pytest.mark.parametrize("retain", ["", "RETAIN ALL"])
def test_a_stream_that_is_further_than_the_others(retain: str) -> None:
    with opened(None, 1) as db:
        db.execute("CREATE STREAM t (ts BIGINT) FROM push TIMESTAMP BY ts")
        if retain:
            db.execute(f"ALTER STREAM s {retain}; ALTER STREAM t {retain}")
        db.execute("CREATE QUERY a AS SELECT COUNT(*) AS n FROM s [RANGE 20]")
        db.execute("CREATE QUERY b AS SELECT COUNT(*) AS n FROM t [RANGE 20]")
        db.execute(f"CREATE QUERY whole AS {TWO}")
        db.start()
        pushed([db], [(0, 1, 0.5, 1, 0)] * 40, 0)
        db.push("t", [{"ts": ts} for ts in range(1, 21)])
        (told,) = db.execute(f"EXPLAIN CREATE QUERY q AS {TWO}")
        (query,) = db.execute(f"CREATE QUERY q AS {TWO}")
        exact = exact_of(query)
        assert exact is not None
        assert (f"it is exact from {exact} on" in str(told)) == (not retain)
        pushed([db], [(0, 1, 0.5, 1, 0)] * 20, 40)
        db.push("t", [{"ts": ts} for ts in range(21, 60)])
        for instant in range(exact, 50):
            assert rows_at(query, instant) == rows_at(db["whole"], instant), instant


@pytest.mark.parametrize("other", ["SUM(10 / v)", "COUNT(*) FILTER (WHERE 10 / v > 2)", "SUM(MOD(10, v))"])
def test_a_larger_query_may_lack_rows_on_which_it_fails(other: str) -> None:
    with opened(None, 1) as db:
        db.execute(f"CREATE QUERY large AS SELECT COUNT(*) AS n, {other} AS x FROM s [RANGE 20]")
        db.execute("CREATE QUERY whole CONSISTENCY MIDDLE AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        db.start()
        pushed([db], [(0, place % 3, 0.5, 1, 0) for place in range(40)], 0)
        (query,) = db.execute("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        exact = exact_of(query)
        assert exact != query.heartbeat
        pushed([db], [(0, 1, 0.5, 1, 0)] * 20, 40)
        assert rows_at(query, exact or 0) == rows_at(db["whole"], exact or 0)


def test_a_larger_query_may_have_rows_that_came_too_late() -> None:
    with opened(None, 1) as db:
        db.execute("ALTER STREAM s RETAIN ALL; ALTER STREAM s SET (DEAD LETTERS KEEP ALL)")
        db.execute("CREATE QUERY whole CONSISTENCY MIDDLE AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        db.start()
        pushed([db], [(0, 1, 0.5, 1, 0)] * 40, 0)
        db.push("s", {"k": 0, "v": 1, "f": 0.5, "ts": 30})
        large = (
            "CREATE QUERY large FROM BEGINNING WITH DEAD LETTERS AS SELECT COUNT(*) AS n FROM s [RANGE 20]"
        )
        db.execute(large)
        (query,) = db.execute("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        pushed([db], [(0, 1, 0.5, 1, 0)] * 20, 40)
        for instant in range(exact_of(query) or 0, 50):
            assert rows_at(query, instant) == rows_at(db["whole"], instant), instant


def test_a_query_with_other_columns_takes_over_from_where_explain_says() -> None:
    with opened(None, 1) as db:
        db.execute("CREATE QUERY a AS SELECT k, SUM(v) AS x FROM s [RANGE 20] GROUP BY k")
        db.start()
        pushed([db], [(0, 1, 0.5, 1, 0)] * 40, 0)
        other = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
        said = str(db.execute(f"EXPLAIN CREATE OR REPLACE QUERY a AS {other}")[0]).splitlines()
        assert said[1:] == [
            "the new answer holds from 36 on",
            "it takes over at once, with what larger windows hold: a",
        ]
        (query,) = db.execute(f"CREATE OR REPLACE QUERY a AS {other}")
        pushed([db], [(0, 1, 0.5, 1, 0)], 40)
        assert query.history().to_pylist()[0]["valid_from"] == 36
