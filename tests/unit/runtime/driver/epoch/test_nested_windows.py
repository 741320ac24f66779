"""The same groups over windows of several lengths: one operator and one state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.nodes import NestedAggregate

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3"
QUERIES = {
    "ten": "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 100] GROUP BY k",
    "eight": "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 80] GROUP BY k HAVING COUNT(*) > 1",
    "two": "SELECT k, m - n AS d FROM (SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 20] GROUP BY k)",
}


def database(queries: Mapping[str, str], storage: Path | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, buckets=2)
    db.execute(STREAM)
    for name, text in queries.items():
        db.query(text, name=name)
    db.start()
    return db


def push(db: hr.Database, first: int, last: int) -> None:
    """Rows of the instants first..last-1, a few out of order."""
    found: list[dict[str, Any]] = [{"k": ts * ts % 7, "v": ts / 4, "ts": ts} for ts in range(first, last)]
    found[1], found[2] = found[2], found[1]
    db.push("s", found)


def state(db: hr.Database) -> int:
    return sum(part.state_rows for part in db.status.operators)


def nested(db: hr.Database) -> int:
    return sum(isinstance(node.plan, NestedAggregate) for node in db.status.graph.nodes)


def alone(name: str) -> tuple[int, list[dict[str, Any]]]:
    """The rows of state and the answer of a query that runs alone."""
    with database({name: QUERIES[name]}) as db:
        push(db, 0, 150)
        kept = state(db)
        push(db, 150, 300)
        return kept, db[name].history().to_pylist()


def test_windows_of_several_lengths_keep_the_state_of_the_longest() -> None:
    apart = {name: alone(name) for name in QUERIES}
    with database(QUERIES) as db:
        push(db, 0, 150)
        assert nested(db) == 1
        groups = 4
        longest, _ = apart["ten"]
        # A base is there more than once until runs are merged.
        assert state(db) < longest + 4 * groups < sum(kept for kept, _ in apart.values()) - 80
        push(db, 150, 300)
        for name, (_, expected) in apart.items():
            assert db[name].history().to_pylist() == expected


@pytest.mark.parametrize("gone", QUERIES)
def test_they_go_on_after_a_restart_and_without_one_of_them(gone: str, tmp_path: Path) -> None:
    with database(QUERIES, tmp_path) as db:
        push(db, 0, 150)
    with database(QUERIES, tmp_path) as db:
        assert not db.differences
        assert nested(db) == 1
        db.drop(gone)
        push(db, 150, 300)
        for name in QUERIES.keys() - {gone}:
            assert db[name].history().to_pylist() == alone(name)[1]


def test_explain_shared_shows_the_windows() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        for name, text in QUERIES.items():
            db.query(text, name=name)
        shown = str(db.execute("EXPLAIN SHARED")[0])
    assert "ALSO OVER RANGE 80, 20  <- #" in shown
    assert "operators with state: 1, where queries that start together share them; 3, where" in shown
