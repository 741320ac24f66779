"""No row ends a run, whatever its bytes or instants: it is in the answer, or a dead letter with a reason.

Rows of every column type at its extremes go through every source; expressions fail on them, some are late,
and answers, changes and dead letters are written in every text format.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import UserError
from headrace.runtime.sources import write_arrow
from headrace.runtime.writing.tables import write_table
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from how_many import examples

TYPES = {
    "ts": TIMESTAMP,
    "b": BOOLEAN,
    "i": BIGINT,
    "x": DOUBLE,
    "s": STRING,
    "day": DATE,
    "at": TIMESTAMP,
    "m": pa.decimal128(38, 10),
}
NAMES = {"ts": "TIMESTAMP", "b": "BOOLEAN", "i": "BIGINT", "x": "DOUBLE", "s": "STRING", "day": "DATE",
         "at": "TIMESTAMP", "m": "DECIMAL(38, 10)"}  # fmt: skip
COLUMNS = ", ".join(f"{name} {dtype}" for name, dtype in NAMES.items())

LAST = 253_402_300_799_999_999
"""The last microsecond that Python's dates know."""
INSTANTS = st.sampled_from(
    (0, 1, -1, LAST, LAST + 1, -62_135_596_800_000_001, 2**62 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63))
)
DAYS = st.sampled_from((0, -1, 2_932_896, 2_932_897, -719_163, 10**7, 2**31 - 1, -(2**31)))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ts": INSTANTS | st.integers(0, 9),
    "b": st.booleans(),
    "i": st.sampled_from((0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1)),
    "x": st.sampled_from((0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7e308, 0.5)),
    "s": st.sampled_from(
        ("", " ", "a", "\0", '"', "\r", ",\n", "\u2028", "\ufeff", "é𝄞", "NaN", "9" * 400, "x" * 20_000)
    )
    | st.text(st.characters(codec="utf-8"), max_size=3),
    "day": DAYS,
    "at": INSTANTS,
    "m": st.sampled_from(
        (Decimal(0), Decimal("-0.0000000001"), Decimal("9" * 28 + "." + "9" * 10), Decimal(-1).scaleb(27))
    ),
}
Row = dict[str, Any]
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=6
)
JUNK = st.sampled_from(
    (
        b"",
        b"\xff",
        b"\0",
        b'"',
        b"\r",
        b",,,,,,,",
        b"{",
        b'{"s": "\\ud800", "ts": 1}',
        b"null",
        b'{"i": 1e999}',
        b"[" * 200,
    )
)
"""Lines that may be no rows."""

HIGH: Row = {
    "ts": LAST + 2,
    "b": True,
    "i": 2**63 - 1,
    "x": float("nan"),
    "s": "\0",
    "day": 2**31 - 1,
    "at": 2**63 - 1,
    "m": Decimal("9" * 28),
}
LOW: Row = HIGH | {"i": -(2**63), "x": float("-inf"), "s": "x" * 20_000, "day": -(2**31), "at": -(2**63)}
WORST = [HIGH, LOW, HIGH | {"ts": LAST + 1}, LOW | {"ts": 2**63 - 1}, dict.fromkeys(HIGH)]
"""At the extremes of every type, late by a year that Python has not, out of range, and without anything."""

QUERIES = (
    "SELECT * FROM s",
    "SELECT i / i AS q, i * i AS p FROM s",
    "SELECT CAST(s AS BIGINT) AS i, CAST(x AS BIGINT) AS xi, s, day, at FROM s",
    "SELECT DATE_TRUNC('YEAR', at) AS year, CAST(at AS DATE) AS d, CAST(day AS TIMESTAMP) AS t FROM s",
    "SELECT CAST(m AS DECIMAL(5, 2)) AS m, CAST(at AS STRING) AS a, CAST(day AS STRING) AS d, m AS n FROM s",
    "SELECT strict(i) AS i, x, b, m FROM s",
)
"""Each gives one row per row, or a dead letter."""
OTHERS = (
    "SELECT day, MAX(at) AS last, MIN(x) AS low, COUNT(DISTINCT s) AS texts, ARRAY_AGG(day) AS days "
    "FROM s [RANGE 5 SECONDS] GROUP BY day",
    "SELECT latest(at) AS n FROM s [RANGE 5 SECONDS]",
    "SELECT 1 / (n - n) AS never, days FROM (SELECT ARRAY_AGG(at) AS days, COUNT(*) AS n FROM s) AS a",
)


class Latest:
    """How many values there are that Python can hold."""

    def initialize(self) -> int:
        return 0

    def accumulate(self, state: int, value: object) -> int:
        assert value is not None
        return state + 1

    def evaluate(self, state: int) -> int:
        return state


def strict(values: pa.Array) -> list[float | None]:
    """A function that raises on some values, and on others gives what is not a valid BIGINT."""
    if pa.compute.any(pa.compute.less(values, 0)).as_py():
        raise ValueError("\ud800" + "y" * 10_000)
    return [None if value is None else value / 2 for value in values.to_pylist()]


def database(epoch_rows: int) -> hr.Database:
    db = hr.connect(runner="inline", epoch_rows=epoch_rows)
    db.function("strict", strict, arguments=["BIGINT"], returns="BIGINT", version="1")
    db.aggregate("latest", Latest, arguments=["TIMESTAMP"], returns="BIGINT", version="1")
    return db


def table(rows: Sequence[Row]) -> pa.Table:
    columns = {}
    for name, dtype in TYPES.items():
        values = [row[name] for row in rows]
        if dtype == DATE:
            columns[name] = pa.array(values, pa.int32()).cast(DATE)
        elif dtype == TIMESTAMP:
            columns[name] = pa.array(values, pa.int64()).cast(TIMESTAMP)
        else:
            columns[name] = pa.array(values, dtype)
    return pa.table(columns)


def text_of(name: str, value: Any) -> str:
    if name in ("ts", "at"):
        return str(np.datetime64(value, "us"))
    if name == "day":
        return str(np.datetime64(value, "D"))
    return str(value).lower() if name == "b" else str(value)


def csv_line(row: Row) -> bytes:
    fields = ["" if row[name] is None else text_of(name, row[name]) for name in TYPES]
    return ",".join(
        '"' + field.replace('"', '""') + '"' if '"' in field or "," in field else field for field in fields
    ).encode()


def json_line(row: Row) -> bytes:
    texts = {
        name: value if value is None or name in ("b", "i", "x", "s") else text_of(name, value)
        for name, value in row.items()
    }
    return json.dumps(texts).encode()


def lines(rows: Sequence[Row], line: Callable[[Row], bytes], junk: Sequence[bytes]) -> bytes:
    return b"\n".join([*map(line, rows), *junk, *map(line, rows)]) + b"\n"


def stream(
    db: hr.Database, form: str, rows: Sequence[Row], junk: Sequence[bytes], folder: Path
) -> int | None:
    """Make the stream `s`; how many rows it has, or None where lines may be none."""
    if form == "table":
        db.stream("s", table(rows), timestamp="ts")
        return len(rows)
    path = folder / "f"
    match form:
        case "parquet":
            pq.write_table(table(rows), path, row_group_size=2)
        case "arrow":
            write_arrow(table(rows), path)
        case "csv":
            path.write_bytes(",".join(TYPES).encode() + b"\n" + lines(rows, csv_line, junk))
        case _:
            path.write_bytes(lines(rows, json_line, junk))
    db.execute(f"CREATE STREAM s ({COLUMNS}) FROM {form} OPTIONS (path '{path}') TIMESTAMP BY ts")
    return len(rows) if form in ("parquet", "arrow") else None


def check(db: hr.Database, each: Sequence[hr.Query], others: Sequence[hr.Query], rows: int | None) -> None:
    """Every row is in each answer or a dead letter of it, and everything can be written."""
    letters = db.dead_letters()
    told = letters.to_pylist()
    for query in each:
        changes = query.changes()
        out = [
            letter for letter in told if letter["query"] is None or query.name in letter["query"].split(", ")
        ]
        count = sum(changes.column(changes.num_columns - 1).to_pylist()) + len(out)
        rows = count if rows is None else rows
        assert count == rows, query.name
    for letter in told:
        assert 0 < len(letter["reason"]) < 1_000
        if letter["query"] is not None:
            assert isinstance(json.loads(letter["row"]), dict)
    check_texts(db, [*each, *others])


def check_texts(db: hr.Database, queries: Sequence[hr.Query]) -> None:
    """Answers, changes and dead letters can be written as every text."""
    views = [view for query in queries for view in (query.changes(), query.history())]
    for found in (db.dead_letters(), *views):
        for form in ("table", "jsonl", "csv"):
            target = io.BytesIO()
            write_table(found, form, target)
            text = target.getvalue().decode()
            if form == "jsonl":
                assert len([json.loads(line) for line in text.split("\n")[:-1]]) == len(found)


@pytest.mark.parametrize("form", ["table", "arrow", "parquet", "csv", "json"])
@example(rows=WORST, junk=[b"\xff", b"\0"], epoch_rows=1)
@given(rows=ROWS, junk=st.lists(JUNK, max_size=4), epoch_rows=st.integers(1, 4))
@examples(2, 5)
def test_bounded_rows_at_their_extremes(
    form: str, rows: list[Row], junk: list[bytes], epoch_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, database(epoch_rows) as db:
        count = stream(db, form, rows, junk, Path(folder))
        each, others = [db.query(text) for text in QUERIES], [db.query(text) for text in OTHERS]
        summary = db.run()
        assert not summary.failed
        check(db, each, others, count)


PUSHED = {
    **VALUES,
    "i": VALUES["i"] | st.sampled_from((2**63, 1.5, 2.0, Decimal("2.5"), "1", True)),
    "s": VALUES["s"] | st.sampled_from(("\ud800", b"\xff", 1)),
    "m": VALUES["m"] | st.sampled_from((Decimal("NaN"), Decimal("1e-11"), 10**40, 0.1)),
}


@given(
    pushes=st.lists(
        st.fixed_dictionaries({name: st.none() | values for name, values in PUSHED.items()}), max_size=5
    ),
    rows=ROWS,
)
@settings(max_examples=5, deadline=None)
@example(
    pushes=[{**dict.fromkeys(TYPES), "ts": 1, "i": 1.5}, {**dict.fromkeys(TYPES), "ts": 2**63 - 1}], rows=[]
)
def test_pushed_rows_at_their_extremes(pushes: list[Row], rows: list[Row]) -> None:
    with database(100) as db:
        db.execute(f"CREATE STREAM s ({COLUMNS}) FROM push TIMESTAMP BY ts")
        each, others = [db.query(text) for text in QUERIES], [db.query(text) for text in OTHERS]
        db.start()
        taken, refused = len(rows), list[UserError]()
        assert db.push("s", table(rows)) is True
        for push in pushes:
            try:
                taken += db.push("s", push) is True
            except UserError as error:
                refused.append(error)
        summary = db.stop()
        assert not summary.failed
        assert summary.rows == taken
        assert all("these rows do not fit s: row 1: " in error.message and error.hint for error in refused)
        check_texts(db, [*each, *others])
