"""Change records of Debezium as streams and relations: FORMAT DEBEZIUM.

The records are those of *Debezium connector for PostgreSQL*, section *Data change events* (create, update,
delete, tombstone, truncate), with the rows of its table `customers`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.engine.connection import RunnerName
from headrace.engine.database import Database
from headrace.errors import LanguageError, SourceError

Row = dict[str, Any]
ANNE = {"id": 1, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
MARIE = {**ANNE, "first_name": "Anne Marie"}
BEGUN = 1559033904863
COLUMNS = "(id BIGINT, first_name STRING, last_name STRING, email STRING)"


def record(op: str, before: Row | None, after: Row | None, ts: int, **source: object) -> Row:
    """The value of a change event; `ts` in milliseconds."""
    said = {"connector": "postgresql", "name": "PostgreSQL_server", "ts_ms": ts, "snapshot": False, **source}
    return {"before": before, "after": after, "source": said, "op": op, "ts_ms": ts + 98}


def with_schema(value: Row | None) -> Row:
    """The record as a converter writes it that has `schemas.enable`."""
    return {
        "schema": {"type": "struct", "name": "PostgreSQL_server.inventory.customers.Envelope"},
        "payload": value,
    }


CUSTOMERS = [
    with_schema(record("c", None, ANNE, BEGUN, lsn=24023128)),
    with_schema(record("u", ANNE, MARIE, BEGUN + 1000, lsn=24023200)),
    with_schema(record("d", MARIE, None, BEGUN + 3000, lsn=46523128)),
    None,
]
HISTORY = [
    (*ANNE.values(), "2019-05-28T08:58:24.863Z", "2019-05-28T08:58:25.863Z"),
    (*MARIE.values(), "2019-05-28T08:58:25.863Z", "2019-05-28T08:58:27.863Z"),
]


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline") as database:
        yield database


def written(folder: Path, records: Sequence[object]) -> Path:
    path = folder / "customers.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def history(query: Any) -> list[tuple[object, ...]]:
    rows = query.history().to_pylist()
    return [tuple(_text(value) for value in row.values()) for row in rows]


def _text(value: Any) -> object:
    if not hasattr(value, "isoformat"):
        return value
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def reasons(db: Database) -> list[str]:
    return [str(reason) for reason in db.dead_letters().column("reason").to_pylist()]


@pytest.mark.parametrize("runner", ["inline", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("columns", [COLUMNS, ""])
def test_a_record_takes_back_the_row_before_and_adds_the_one_after(
    runner: RunnerName, columns: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The columns are those of the rows, declared or not, and a tombstone is nothing."""
    spark = request.getfixturevalue("spark") if runner == "spark" else None
    truncated = with_schema(record("t", None, None, BEGUN))
    path = written(tmp_path, [*CUSTOMERS, {"schema": None, "payload": None}, truncated])
    with hr.connect(spark=spark, runner=runner) as db:
        db.execute(f"CREATE STREAM customer {columns} FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
        found = db.query("SELECT * FROM customer")
        db.run()
        assert history(found) == HISTORY
        (letter,) = db.dead_letters().to_pylist()
        assert letter["reason"] == 'the line is not a change record: op is "t", and not c, r, u or d'
        assert Path(letter["place"]).name == "customers.jsonl:6"


def test_a_row_before_that_is_null_outside_its_key_takes_back_nothing(db: Database, tmp_path: Path) -> None:
    """PostgreSQL's default replica identity, of a table whose columns are there and NULL."""
    key_alone = dict.fromkeys(ANNE) | {"id": 1}
    changes = [record("c", None, ANNE, BEGUN), record("d", key_alone, None, BEGUN + 1000)]
    path = written(tmp_path, changes)
    db.execute(f"CREATE STREAM a FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
    found = db.query("SELECT COUNT(*) AS n FROM a", name="found")
    db.run()
    assert [row["n"] for row in found.history().to_pylist()] == [1]
    (letter,) = db.dead_letters().to_pylist()
    assert letter["reason"] == "it takes back a row that is not there"
    assert json.loads(letter["row"]) == key_alone
    assert "REPLICA IDENTITY FULL" in str(db.why("found"))


def test_by_key_the_row_before_need_not_be_there(db: Database, tmp_path: Path) -> None:
    """With REPLICA IDENTITY DEFAULT it has the key alone, as in the documentation's examples."""
    path = written(
        tmp_path,
        [
            record("r", None, ANNE, BEGUN),
            record("u", {"id": 1}, MARIE, BEGUN + 1000),
            record("d", {"id": 1}, None, BEGUN + 3000),
        ],
    )
    db.execute(f"CREATE STREAM s {COLUMNS} KEY (id) FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
    db.execute(f"CREATE RELATION t {COLUMNS} KEY (id) FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
    selected = "SELECT id, first_name, last_name, email FROM"
    stream, table = db.query(f"{selected} s"), db.query(f"{selected} t")
    db.run()
    assert history(stream) == HISTORY
    assert history(table) == HISTORY
    assert reasons(db) == []


def test_fields_of_the_record_are_columns_where_rows_change_by_key(db: Database, tmp_path: Path) -> None:
    """Two changes within a millisecond are in the order of the log; the stream is timed as is said."""
    changes = [
        record("u", None, {"id": 1, "v": 7}, BEGUN, lsn=30),
        record("c", None, {"id": 1, "v": 9}, BEGUN, lsn=20),
    ]
    path = written(tmp_path, changes)
    db.execute(
        f"CREATE STREAM s (id BIGINT, v BIGINT, __source_lsn BIGINT, __ts_ms TIMESTAMP) KEY (id) "
        f"FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM TIMESTAMP BY __ts_ms VERSION BY __source_lsn"
    )
    found = db.query("SELECT v, __source_lsn FROM s")
    db.run()
    assert history(found) == [(7, 30, "2019-05-28T08:58:24.961Z", None)]


KEPT = {name: value for name, value in MARIE.items() if name != "email"}
UNCHANGED = "__debezium_unavailable_value"
BROKEN = [
    ({"op": "x", "ts_ms": 1}, 'op is "x", and not c, r, u or d'),
    ({"id": 1}, "op is null"),
    ({"schema": {}, "payload": 3}, "its payload is not an object"),
    (
        record("u", None, ANNE, BEGUN),
        "before is null, and not a row; declare KEY (column), or let",
    ),
    (record("u", KEPT, ANNE, BEGUN), "before has no email; declare KEY (column)"),
    (record("c", None, None, BEGUN), "after is null, and not a row"),
    (record("c", None, {**ANNE, "id": "one"}, BEGUN), "id is not a valid BIGINT"),
    (
        record("c", None, {**ANNE, "email": UNCHANGED}, BEGUN),
        "after lacks the value of email",
    ),
    ({**record("c", None, ANNE, BEGUN), "source": {}}, "the timestamp __source_ts_ms is NULL"),
    (record("c", None, ANNE, 2**63), "__source_ts_ms is not a valid TIMESTAMP"),
]


def test_broken_records_are_dead_letters(db: Database, tmp_path: Path) -> None:
    path = written(tmp_path, [record("c", None, ANNE, BEGUN), *(one for one, _ in BROKEN)])
    with path.open("ab") as file:
        file.write(b'{"before": null, "op": "c", "after": {"id": 1, "id": 2}}\n"null"\n{"op": "\xff"}\n')
    db.execute(f"CREATE STREAM s {COLUMNS} FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
    found = db.query("SELECT first_name FROM s")
    db.run()
    assert history(found) == [("Anne", HISTORY[0][4], None)]
    letters = {Path(row["place"] or "").name: row["reason"] for row in db.dead_letters().to_pylist()}
    for line, (_, reason) in enumerate(BROKEN, start=2):
        assert reason in letters[f"customers.jsonl:{line}"]
    assert "the key id is there twice" in letters["customers.jsonl:12"]
    assert letters["customers.jsonl:13"] == "the line is not one JSON object"
    assert letters["customers.jsonl:14"] == "the row is not UTF-8 text"


def test_a_table_comes_back_from_its_records(db: Database, tmp_path: Path) -> None:
    """Random changes of a table, read by row and by key, have the history that they were made from."""
    chance, table, since = random.Random(4), dict[int, Row](), dict[int, int]()
    records: list[Row] = []
    expected: list[tuple[object, ...]] = []
    for ts in range(1, 200):
        key = chance.randrange(8)
        before = table.pop(key, None)
        after = None if before and chance.random() < 0.3 else {"id": key, "v": ts}
        if before is not None:
            expected.append((before["id"], before["v"], since[key], ts))
        if after is not None:
            table[key], since[key] = after, ts
        op = "d" if after is None else "c" if before is None else "u"
        records.append(record(op, before, after, ts))
    expected += [(row["id"], row["v"], since[key], None) for key, row in table.items()]
    path = written(tmp_path, records)
    declared = "(id BIGINT, v BIGINT, __source_ts_ms BIGINT)"
    made = f"FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM"
    db.execute(f"CREATE STREAM rows {declared} {made}; CREATE STREAM keyed {declared} KEY (id) {made}")
    by_row, by_key = db.query("SELECT * FROM rows"), db.query("SELECT id, v FROM keyed")
    db.run()
    assert set(history(by_row)) == set(expected)
    assert by_row.history().equals(by_key.history())


FILE = "FROM json OPTIONS (path 'none.jsonl')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("STREAM s (id BIGINT) FROM push FORMAT DEBEZIUM", "reads JSON, and the input is push"),
        (
            f"STREAM s (id BIGINT) {FILE} FORMAT DEBEZIUM TIMESTAMP BY id",
            "id is not a column of the record",
        ),
        (
            f"STREAM s (id BIGINT, __source_lsn BIGINT) {FILE} FORMAT DEBEZIUM",
            "a row and its correction differ in it",
        ),
        (
            f"STREAM s (id BIGINT, WATERMARK FOR id AS id) {FILE} FORMAT DEBEZIUM",
            "WATERMARK is for one of",
        ),
        (
            f"STREAM s (id BIGINT, __op BIGINT) KEY (id) {FILE} FORMAT DEBEZIUM",
            "the column __op is BIGINT",
        ),
        (f"RELATION s (id BIGINT) {FILE} FORMAT DEBEZIUM", "changes are by key, and there is none"),
        (f"RELATION s (id BIGINT) KEY (no) {FILE} FORMAT DEBEZIUM", "s has no column no"),
    ],
)
def test_what_does_not_fit_is_refused(db: Database, text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as raised:
        db.execute(f"CREATE {text}")
    assert raised.value.position is not None
    assert raised.value.hint


def test_a_declared_column_has_to_be_there(db: Database, tmp_path: Path) -> None:
    path = written(tmp_path, CUSTOMERS)
    with pytest.raises(SourceError, match="there is no column frist_name") as raised:
        db.execute(f"CREATE STREAM s (frist_name STRING) FROM json OPTIONS (path '{path}') FORMAT DEBEZIUM")
    assert "first_name" in (raised.value.hint or "")
