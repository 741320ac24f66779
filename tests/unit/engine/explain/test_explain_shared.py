"""EXPLAIN SHARED: the operators of queries, with those that use them, and what was decided by cost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headrace as hr
from headrace.algebra.nodes import Join
from headrace.errors import LanguageError

ROWS = 300
JOIN = "SELECT r.b, s.b AS d FROM r [RANGE {size}], s [RANGE {size}] WHERE r.k = s.k"


def stream(keys: int) -> pa.Table:
    return pa.table(
        {
            "k": [place % keys for place in range(ROWS)],
            "b": [place % 100 for place in range(ROWS)],
            "ts": list(range(ROWS)),
        }
    )


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as db:
        db.stream("r", stream(10), timestamp="ts")
        db.stream("s", stream(10), timestamp="ts")
        yield db


def shared(db: hr.Database, query: str = "") -> str:
    return str(db.execute(f"EXPLAIN SHARED {query}")[0])


def state_rows(db: hr.Database) -> list[int]:
    """The rows that each join keeps at the end of a run."""
    graph = db.status.graph
    return [one.state_rows for one in db.status.operators if isinstance(graph.nodes[one.number].plan, Join)]


def test_operators_are_shown_with_the_queries_that_use_them(db: hr.Database) -> None:
    groups = "FROM r [RANGE 10 SLIDE 10] GROUP BY k"
    db.execute(f"CREATE QUERY counts AS SELECT k, COUNT(*) AS n {groups}")
    db.execute(f"CREATE QUERY tops AS SELECT k, MAX(b) AS m {groups} HAVING COUNT(*) > 1")
    assert shared(db).splitlines() == [
        "level 0",
        "  #0 Source r (k, b) by ts",
        "       for all 2 queries",
        "  #1 TimeWindow RANGE 10 SLIDE 10  <- #0",
        "       for all 2 queries",
        "level 1",
        "  #2 Aggregate BY k: MAX(b) AS m, COUNT(*) AS count  <- #1 by hash of k, added up before  [state]",
        "       for all 2 queries",
        "  #3 Project k, count AS n  <- #2",
        "       for counts",
        "  #4 Filter count > 1  <- #2",
        "       for tops",
        "  #5 Project k, m  <- #4",
        "       for tops",
        "counts <- #3",
        "tops <- #5",
        "operators with state: 1, where queries that start together share them; 2, where equal plans alone "
        "do; 2, where none does",
    ]


PAIRS = "FROM r [RANGE 5], s [RANGE 5] WHERE r.b = s.b"
GROUPS = "FROM r [RANGE 8 SLIDE 8] GROUP BY k"
SHARED = {
    "figure 2 of STREAM": (
        f"SELECT r.b {PAIRS} AND r.k < 9",
        "SELECT t.b FROM r [RANGE 5], s [RANGE 5], t [RANGE 5] WHERE r.b = s.b AND s.k = t.k",
    ),
    "SELECT lists": tuple(f"SELECT {what} {PAIRS}" for what in ("r.k", "s.b, s.ts", "r.b + s.k AS d")),
    "aggregates over the same groups": tuple(
        f"SELECT k, {what} AS x {GROUPS}" for what in ("MAX(b)", "AVG(b)", "COUNT(*)")
    ),
    "windows of 10 and 8": tuple(
        f"SELECT k, AVG(b) AS x FROM r [RANGE {size}] GROUP BY k" for size in (10, 8)
    ),
    "commuted joins": (f"SELECT r.k {PAIRS}", "SELECT r.k FROM s [RANGE 5], r [RANGE 5] WHERE s.b = r.b"),
    "a derived stream used twice": (
        "CREATE STREAM d AS SELECT k, COUNT(*) AS n FROM r [RANGE 9] GROUP BY k",
        "SELECT k FROM d WHERE n > 1",
        "SELECT MAX(n) AS m FROM d",
    ),
    "a filter that is taken back": (f"SELECT r.k {PAIRS}", f"SELECT r.k {PAIRS} AND r.k < 9"),
}


@pytest.mark.parametrize(
    ("what", "operators", "alone"), [*zip(SHARED, (2, 1, 1, 1, 1, 2, 1), (3, 3, 3, 2, 2, 3, 2), strict=True)]
)
def test_what_is_shared_is_counted(db: hr.Database, what: str, operators: int, alone: int) -> None:
    db.stream("t", stream(10), timestamp="ts")
    for text in SHARED[what]:
        db.execute(text)
    *_, last = shared(db).splitlines()
    counts = [int(count) for count in re.findall(r"\d+", last)]
    assert (counts[0], counts[-1]) == (operators, alone), last


def test_a_filter_is_above_the_join_that_another_query_wants_whole(db: hr.Database) -> None:
    db.query(JOIN.format(size=5))
    text = shared(db, JOIN.format(size=5) + " AND r.b < 90")
    assert "filtered by b < 90 above the join without it; a join of its own takes and yields" in text
    assert "operators with state: 1, where" in text


def test_a_filter_stays_below_where_the_join_yields_very_many_rows(db: hr.Database) -> None:
    """One row in 100 passes, and a row meets 25 others."""
    db.query(JOIN.format(size=250))
    filtered = JOIN.format(size=250) + " AND r.b = 3"
    text = shared(db, filtered)
    assert "filtered by b = 3 below a join of its own; a join of its own takes and yields" in text
    assert "operators with state: 2, where" in text
    db.query(filtered)
    db.run()
    assert len(state_rows(db)) == 2


def test_a_run_shares_as_shown(db: hr.Database) -> None:
    db.query(JOIN.format(size=5))
    db.query(JOIN.format(size=5) + " AND r.b < 90")
    db.run()
    assert len(state_rows(db)) == 1


def test_of_streams_that_never_end_nothing_is_known() -> None:
    with hr.connect(runner="inline") as db:
        for name in ("r", "s"):
            db.execute(f"CREATE STREAM {name} (k BIGINT, b BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute(f"CREATE QUERY whole AS {JOIN.format(size=5)}")
        db.execute(f"CREATE QUERY some AS {JOIN.format(size=5)} AND r.b = 3")
        assert "above the join without it; nothing is known of its inputs" in shared(db)
        db.start()
        running = shared(db)
        assert "[state]\n       for all 2 queries" in running
        assert "operators with state" not in running
        db.query(JOIN.format(size=5))
        assert len([line for line in shared(db).splitlines() if "Join" in line]) == 2


def test_there_must_be_a_query(db: hr.Database) -> None:
    with pytest.raises(LanguageError, match="there is no query"):
        shared(db)
    assert "result <- " in shared(db, "SELECT b FROM r")
    with pytest.raises(LanguageError, match="EXPLAIN shows the plan of a query"):
        shared(db, "CREATE QUERY q AS SELECT b FROM r")
