"""Operators of equal plans and different starts that go on as one once they hold the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.runtime.driver.change.content.merge import are_same_rows
from headrace.runtime.journal.inspect import contents

TABLES = """
    CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3;
    CREATE STREAM o (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
"""
COUNTS = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 10] GROUP BY k"

SHAPES = (
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 10] WHERE v < 11 GROUP BY k",
    "SELECT AVG(v) AS a FROM s [RANGE 7 SLIDE 2] WHERE k = 2",
    "SELECT DISTINCT v % 5 AS d FROM s [RANGE 6]",
    "SELECT s.v, o.ts FROM s [RANGE 5], o [RANGE 4] WHERE s.k = o.k AND s.v < 11",
    "SELECT s.v, name FROM s [RANGE 5] JOIN names ON s.k = names.k WHERE v < 11",
    "SELECT v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE 8 PRECEDING) AS t FROM s WHERE v < 11",
    "ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE 9] WHERE v < 11 GROUP BY k)",
    "SELECT k, v FROM s [RANGE 8] WHERE v < 11 ORDER BY v DESC LIMIT 3",
    "SELECT k FROM s [RANGE 6] WHERE v < 11 EXCEPT ALL SELECT k FROM o [RANGE 6]",
    "SELECT k, COUNT(*) AS n FROM SESSION(TABLE s, DESCRIPTOR(ts), DESCRIPTOR(k), 4) WHERE v < 11 GROUP BY k",
)
FIFTY = SHAPES * 4 + tuple(shape.replace("< 11", "< 9") for shape in SHAPES)


def database(storage: Path | None = None) -> hr.Database:
    db = hr.connect(runner="inline", dialect="pipes", storage=storage)
    db.execute(TABLES)
    db.relation("names", pa.table({"k": [0, 1, 2], "name": ["a", "b", "c"]}))
    return db


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        yield made


def push(db: hr.Database, first: int, last: int) -> None:
    """Rows of the instants first..last-1, a few out of order."""
    found: list[dict[str, Any]] = [{"k": ts % 4, "v": ts * 7 % 13, "ts": ts} for ts in range(first, last)]
    if len(found) > 2:
        found[1], found[2] = found[2], found[1]
    db.push("s", found)
    if "o" in {stream.name for stream in db.status.streams}:
        db.push("o", [{"k": ts % 3, "ts": ts} for ts in range(first, last)])


def operators(db: hr.Database) -> list[str]:
    return sorted(part.text for part in db.status.operators)


def test_fifty_queries_added_one_by_one_end_with_the_operators_of_fifty_added_together(
    db: hr.Database,
) -> None:
    with database() as together:
        for query in FIFTY:
            together.query(query)
        together.start()
        push(together, 0, 10)
        expected = operators(together)
    db.query(FIFTY[0])
    db.start()
    push(db, 0, 2)
    most = 0
    for place, query in enumerate(FIFTY[1:], 1):
        db.query(query)
        most = max(most, len(operators(db)))
        if place % 16 == 0:
            push(db, place, place + 8)
    assert most > len(expected)
    for ts in range(60, 120, 20):
        push(db, ts, ts + 20)
    assert operators(db) == expected


def test_an_answer_goes_on_without_repeats_gaps_or_retractions(db: hr.Database) -> None:
    old = db.query(COUNTS, name="old")
    db.start()
    push(db, 0, 20)
    young = db.query(COUNTS, name="young")
    two = len(operators(db))
    for ts in range(20, 60, 5):
        push(db, ts, ts + 5)
    assert len(operators(db)) < two, "they were merged"
    # Both windows have the same rows from 30 on: those of the rows up to 19 have ended.
    mine, its = (query.history().to_pylist() for query in (young, old))
    late = [row for row in mine if row["valid_from"] >= 30]
    assert late == [row for row in its if row["valid_from"] >= 30]
    assert {change for part in young.changes().to_pylist() if (change := part["change"]) < 0} == set()


def test_what_no_row_has_come_to_is_shared_at_once(db: hr.Database) -> None:
    total = "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]"
    first = db.query(total)
    db.start()
    alone = operators(db)
    second = db.query(total)
    assert operators(db) == alone
    push(db, 0, 10)
    assert first.history() == second.history()
    third = db.query(total)
    push(db, 10, 40)
    assert len(operators(db)) == len(alone) + 1, "what is counted from the beginning differs for ever"
    assert third.history()["n"].to_pylist() == list(range(1, 27))


def test_merged_operators_stay_merged_after_a_restart_and_without_the_older_query(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.query(COUNTS, name="old")
        db.start()
        alone = operators(db)
        push(db, 0, 20)
        db.query(COUNTS, name="young")
        for ts in range(20, 60, 5):
            push(db, ts, ts + 5)
        assert operators(db) == alone
        db.drop("old")
        assert operators(db) == alone
    assert contents(tmp_path).description.merges
    with database(tmp_path) as db:
        young = db.query(COUNTS, name="young")
        db.start()
        push(db, 60, 70)
        assert operators(db) == alone
        assert young.snapshot(64).sort_by("k").to_pydict() == {
            "k": [0, 1, 2, 3],
            "n": [3, 2, 2, 3],
            "m": [6, 11, 5, 12],
        }


def test_rows_of_state_are_the_same_in_any_order_and_with_sums_that_are_zero() -> None:
    rows = pa.RecordBatch.from_pydict({"k": ["a", "b", "b"], "__t": [1, 2, 2]})
    turned = rows.take(pa.array([2, 0, 1]))
    assert are_same_rows(rows, turned)
    assert not are_same_rows(rows, rows.take(pa.array([0, 0, 1])))
    assert not are_same_rows(rows, rows.slice(1))
    zero = rows.append_column("__x0000_001", pa.array([0, 0, 0]))
    assert are_same_rows(zero, turned)
    assert not are_same_rows(rows.append_column("__x0000_001", pa.array([0, 1, 0])), turned)
    assert not are_same_rows(rows.append_column("v", pa.array([0, 0, 0])), turned)
