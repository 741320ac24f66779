"""Queries that are added join with relations that were read before without reading them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.algebra.nodes import Aggregate, Join

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
NAMES = "SELECT s.v, n.name FROM s [RANGE 5] JOIN names AS n ON s.k = n.k"
PERIODS = "SELECT s.v, p.name FROM s [RANGE 5] JOIN periods AS p ON s.k = p.k"


def database(storage: Path | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage)
    db.execute(STREAM)
    db.relation("names", pa.table({"k": [0, 1, 2], "name": ["a", "b", "c"]}))
    periods = {"k": [0, 0, 1], "name": ["x", "y", "z"], "b": [0, 20, None], "e": [20, 90, None]}
    types = [pa.int64(), pa.string(), pa.int64(), pa.int64()]
    columns = [pa.array(values, kind) for values, kind in zip(periods.values(), types, strict=True)]
    db.relation("periods", pa.table(columns, names=list(periods)), valid=("b", "e"))
    return db


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        yield made


def push(db: hr.Database, first: int, last: int) -> None:
    rows: list[dict[str, Any]] = [{"k": ts % 3, "v": ts, "ts": ts} for ts in range(first, last)]
    db.push("s", rows)


def readings(db: hr.Database) -> list[str]:
    """What was read, by the names that the run has for it."""
    return sorted(leaf.text for leaf in db.status.operators if leaf.text.startswith("Relation"))


@pytest.mark.parametrize("text", [NAMES, PERIODS])
def test_a_join_that_is_added_takes_over_what_another_keeps_of_a_relation(db: hr.Database, text: str) -> None:
    old = db.query(f"{text} WHERE s.v < 1000")
    db.start()
    push(db, 0, 30)
    read = readings(db)
    young = db.query(f"{text} WHERE s.v < 900")
    assert readings(db) == read
    push(db, 30, 60)
    mine, its = (query.history().to_pylist() for query in (young, old))
    assert mine
    assert mine == [row for row in its if row["v"] >= 30]


COUNTS = "(SELECT k, COUNT(*) AS n FROM names GROUP BY k)"


def test_a_join_takes_over_a_side_that_reaches_it_without_an_exchange(db: hr.Database) -> None:
    old = db.query(f"SELECT s.v, c.n FROM s [RANGE 5] JOIN {COUNTS} AS c ON s.k = c.k")
    db.start()
    push(db, 0, 9)
    read = readings(db)
    # The other side takes a level more, so that the counts travel, to where they are already.
    newest = "(SELECT v, MAX(k) AS k FROM s [RANGE 5] GROUP BY v)"
    young = db.query(f"SELECT m.v, c.n FROM {newest} AS m JOIN {COUNTS} AS c ON m.k = c.k")
    exchanges = [
        node.inputs[port].exchange
        for node in db.status.graph.nodes
        if isinstance(node.plan, Join)
        for port in range(2)
        if isinstance(db.status.graph.nodes[node.inputs[port].producer].plan, Aggregate)
    ]
    assert None in exchanges
    assert len(set(exchanges)) > 1
    assert readings(db) == read
    push(db, 9, 30)
    mine, its = (query.history().to_pylist() for query in (young, old))
    assert mine
    assert mine == [row for row in its if row["v"] >= 9]


def test_a_relation_is_read_again_for_what_needs_its_rows(db: hr.Database) -> None:
    db.query(NAMES)
    db.start()
    push(db, 0, 9)
    count = db.query("SELECT COUNT(*) AS n FROM names")
    other = db.query("SELECT s.v, n.k FROM s [RANGE 5] JOIN names AS n ON s.v = n.k")
    push(db, 9, 12)
    db.push("s", [{"k": 1, "v": 2, "ts": 12}, {"k": 1, "v": 2, "ts": 20}])
    assert count.history()["n"].to_pylist() == [3]
    assert other.history()["v"].to_pylist() == [2]


def test_a_query_whose_aggregate_needs_the_rows_reads_them_for_its_join_as_well(db: hr.Database) -> None:
    db.relation("ids", pa.table({"k": [0, 1, 2]}))
    join = "SELECT s.v, i.k FROM s [RANGE 5] JOIN ids AS i ON s.k = i.k"
    db.query(join)
    db.start()
    push(db, 0, 9)
    above = db.query(f"{join} WHERE s.v > (SELECT MAX(k) FROM ids)")
    push(db, 9, 20)
    assert above.history()["v"].to_pylist() == list(range(9, 19))


def test_what_was_taken_over_outlives_the_query_that_read_it(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.query(f"{PERIODS} WHERE s.v < 1000", name="old")
        db.start()
        push(db, 0, 10)
        db.query(f"{PERIODS} WHERE s.v < 900", name="young")
        db.drop("old")
        push(db, 10, 30)
    with database(tmp_path) as db:
        young = db.query(f"{PERIODS} WHERE s.v < 900", name="young")
        db.start()
        push(db, 30, 40)
        names = {row["v"]: row["name"] for row in young.history().to_pylist()}
        assert names == {
            v: ("x" if v < 20 else "y") if v % 3 == 0 else "z" for v in range(10, 39) if v % 3 < 2
        } | {15: "x", 18: "y"}
