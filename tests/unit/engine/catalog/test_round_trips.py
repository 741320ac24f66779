"""Answers that are written and read again: as rows with periods, and as logs of changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.engine.database import Database
from headrace.errors import UserError

BIDS = pa.table({"ts": [0, 1, 1, 4, 9], "item": ["a", "b", "b", "a", None], "price": [5, 7, 7, 8, 1]})
QUERIES = {
    "groups": "SELECT item, COUNT(*) AS n, MAX(price) AS best FROM bid [RANGE 5] GROUP BY item",
    "repeated": "SELECT item, price FROM bid [RANGE UNBOUNDED]",
    "instants": "SELECT item, price FROM bid",
    "outside": "SELECT a.name, b.price FROM always a LEFT JOIN bid [RANGE 3] b ON b.item = a.name",
}


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline") as database:
        yield database


def answered(db: Database, bids: pa.Table, query: str) -> pa.Table:
    db.stream("bid", bids, timestamp="ts")
    db.relation("always", pa.table({"name": ["a", "b", "c"]}))
    answer = db.query(query)
    db.run()
    return answer.history()


@pytest.mark.parametrize("domain", ["integers", "timestamps"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_history_is_a_temporal_relation(db: Database, tmp_path: Path, query: str, domain: str) -> None:
    bids, text = BIDS, QUERIES[query]
    if domain == "timestamps":
        bids = BIDS.set_column(0, "ts", BIDS.column("ts").cast(pa.timestamp("us", "UTC")))
        text = re.sub(r"(RANGE \d)", r"\1 MICROSECONDS", text)
    history = answered(db, bids, text)
    assert len(history)
    pq.write_table(history, tmp_path / "history.parquet")
    with hr.connect(runner="inline") as later:
        later.execute(
            f"CREATE RELATION known FROM parquet OPTIONS (path '{tmp_path / 'history.parquet'}') "
            "VALID FROM valid_from TO valid_to"
        )
        again = later.query(f"SELECT {', '.join(history.column_names[:-2])} FROM known")
        later.run()
        assert again.history().equals(history)


def test_an_answer_with_a_key_is_a_relation_by_changes(db: Database) -> None:
    history = answered(db, BIDS.slice(0, 4), QUERIES["groups"])
    log = hr.log_of(history)
    assert log.select(["item", "ts", "op"]).to_pylist()[:5] == [
        {"item": "a", "ts": 0, "op": "insert"},
        {"item": "b", "ts": 1, "op": "insert"},
        {"item": "a", "ts": 4, "op": "delete"},
        {"item": "a", "ts": 4, "op": "insert"},
        {"item": "a", "ts": 5, "op": "delete"},
    ]
    with hr.connect(runner="inline") as later:
        later.relation("known", log, "item", changes_by="op", timestamp="ts")
        again = later.query("SELECT item, n, best FROM known")
        later.run()
        assert again.history().equals(history)
    assert hr.history_of(log).equals(history)


@pytest.mark.parametrize(
    ("convert", "columns", "message"),
    [
        (hr.log_of, {"a": [1]}, "a history has two columns with instants"),
        (hr.log_of, {"a": ["x"], "b": ["y"]}, "string and string are no instants"),
        (hr.history_of, {"op": ["insert"]}, "a log has an instant and an operation"),
        (hr.history_of, {"ts": [1], "op": ["update"]}, "a log has insertions and deletions only"),
        (hr.history_of, {"ts": [1.5], "op": ["insert"]}, "double and double are no instants"),
        (
            hr.history_of,
            {"a": [1, 1], "ts": [1, 2], "op": ["delete", "insert"]},
            "a row is deleted that is not there",
        ),
    ],
)
def test_mistakes(convert: Any, columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(UserError) as error:
        convert(pa.table(columns))
    assert error.value.message == message
    assert error.value.hint
