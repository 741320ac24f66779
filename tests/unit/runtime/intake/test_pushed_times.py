"""Times that are pushed as text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import UserError
from headrace.language.statements.overflow import Overflow
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.schema import DATE, STRING, TIMESTAMP, Field, Schema

SCHEMA = Schema((Field("ts", TIMESTAMP), Field("day", DATE), Field("note", STRING)))
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def feed(tmp_path: Path) -> PushFeed:
    return PushFeed("s", LiveStream(SCHEMA, "ts"), tmp_path / "s", 10, 2**20, Overflow.BLOCK, lambda: None)


def taken(feed: PushFeed, rows: Any) -> list[dict[str, Any]]:
    feed.put(rows, None, None)
    intake = feed.take(StreamPoint(0))
    assert intake is not None
    assert intake.source is not None
    reads = list(intake.source.read(intake.start, intake.end, SCHEMA.names))
    return [row for read in reads for row in read.rows.to_pylist()]


ROWS: list[dict[str, Any]] = [
    {"ts": "2024-01-31T12:00:00Z", "day": "2024-01-31", "note": "2024-01-31"},
    {"ts": "2024-01-31 14:00:00+02:00", "day": None, "note": None},
    {"ts": "2024-01-31 12:00:00", "day": "2024-02-01", "note": ""},
]


def test_texts_in_iso_8601_are_times(feed: PushFeed) -> None:
    rows = taken(feed, [*ROWS, {"ts": NOON, "day": date(2024, 1, 1), "note": "x"}])
    assert [row["ts"] for row in rows] == [NOON] * 4
    assert [row["day"] for row in rows] == [date(2024, 1, 31), None, date(2024, 2, 1), date(2024, 1, 1)]
    assert rows[0]["note"] == "2024-01-31"


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string()])
def test_columns_of_text_in_tables_are_times(feed: PushFeed, dtype: pa.DataType) -> None:
    table = pa.Table.from_pylist(ROWS, pa.schema([("ts", dtype), ("day", dtype), ("note", pa.string())]))
    rows = taken(feed, pa.concat_tables([table, table]))
    assert [row["ts"] for row in rows] == [NOON] * 6
    assert rows[5]["day"] == date(2024, 2, 1)


@pytest.mark.parametrize("as_table", [False, True])
def test_a_text_that_is_not_a_time_refuses_the_push(feed: PushFeed, as_table: bool) -> None:
    rows: Any = [ROWS[0], {**ROWS[1], "ts": "31/01/2024"}]
    message = "these rows do not fit s: row 2: ts is not a TIMESTAMP: '31/01/2024'"
    with pytest.raises(UserError, match=message) as refused:
        feed.put(pa.Table.from_pylist(rows) if as_table else rows, None, None)
    assert refused.value.hint is not None
    assert not feed.ready()
