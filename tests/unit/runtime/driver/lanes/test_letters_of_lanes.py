"""Dead letters of queries that are behind are those of their stream: kept, read and replayed as others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from inside import execution_of
from waiting import wait_for

WEIGHTS = ("", "WEIGHT 0", "WEIGHT 1")
TIMES = (
    "(k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10",
    "(k BIGINT, v BIGINT) FROM push TIMESTAMP BY ARRIVAL",
)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", threads=1) as made:
        yield made


def push(db: hr.Database, timed: str) -> None:
    """Push rows, of which every third has the value 0."""
    for at in range(1, 7):
        row: dict[str, Any] = {"k": at, "v": at % 3}
        db.push("s", {**row, "ts": at} if "BY ts" in timed else row)


def come(db: hr.Database) -> None:
    """Wait until no query is behind."""
    db.execute("ALTER QUERY r SET (WEIGHT 1)")
    live = execution_of(db)._live
    assert live is not None
    wait_for(lambda: not live.lanes.waits)


def said(query: hr.Query, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in query.changes().to_pylist())


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("timed", TIMES)
@pytest.mark.parametrize("kept", ["", "DEAD LETTERS KEEP ALL"])
def test_they_are_read_as_those_of_a_query_in_front(
    db: hr.Database, weight: str, timed: str, kept: str
) -> None:
    db.execute(f"CREATE STREAM s {timed} {kept}; CREATE QUERY a AS SELECT k FROM s")
    db.execute(f"CREATE QUERY r {weight} AS SELECT k, 6 / v AS n FROM s [RANGE UNBOUNDED]")
    db.execute("CREATE QUERY d AS SELECT k, v, reason, query FROM DEAD LETTERS OF s")
    db.start()
    push(db, timed)
    come(db)
    wanted = [(at, 0, "division by zero", "r") for at in (3, 6)]
    wait_for(lambda: said(db["d"], "k", "v", "reason", "query") == wanted, lambda: said(db["d"], "k"))


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("timed", TIMES)
def test_rows_on_which_one_failed_are_replayed_for_another(db: hr.Database, weight: str, timed: str) -> None:
    db.execute(f"CREATE STREAM s {timed} DEAD LETTERS KEEP ALL; CREATE QUERY a AS SELECT k FROM s")
    db.execute(f"CREATE QUERY r {weight} AS SELECT k, 6 / v AS n FROM s")
    db.start()
    push(db, timed)
    # What waits has not failed yet: the lane comes to the present first, here and where another takes over.
    assert str(db.execute("REPLAY DEAD LETTERS OF s")[0]).splitlines() == [
        "none of 2 dead letters of s became input",
        "  a takes 0, refuses 2 that it has had, or failed on",
        "  r takes 0, refuses 2 that it has had, or failed on",
    ]
    db.execute(f"CREATE OR REPLACE QUERY r {weight} AS SELECT k, v AS n FROM s")
    found = str(db.execute("REPLAY DEAD LETTERS OF s")[0]).splitlines()
    assert found[0].startswith("2 of 2 dead letters of s became input in epoch ")
    assert found[1:] == ["  a takes 0, refuses 2 that it has had, or failed on", "  r takes 2"]
