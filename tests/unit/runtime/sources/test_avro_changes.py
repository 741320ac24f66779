"""Change records of Debezium in Avro: the rows are those of the same records in JSON."""

from __future__ import annotations

import io
import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.sources.messages import registry
from headrace.runtime.sources.messages.avro_changes import AvroChanges
from headrace.runtime.sources.messages.messages import rows_of
from headrace.schema import BIGINT, DATE, STRING, TIMESTAMP, Field, Schema
from messages import messages

fastavro = pytest.importorskip("fastavro")

ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "Name", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
        {"name": "ms", "type": {"type": "long", "connect.name": "io.debezium.time.Timestamp"}},
        {"name": "day", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}]},
        {"name": "hour", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTime"}},
        {"name": "zoned", "type": {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}},
    ],
}
RECORD = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "fields": [{"name": "ts_ms", "type": "long"}, {"name": "lsn", "type": ["null", "long"]}],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}


def row(id: int, **more: Any) -> dict[str, Any]:
    known = {"Name": "n", "price": Decimal("12.50"), "at": 1_000_001, "ms": 4, "day": 3}
    return {"id": id, **known, "hour": 3_600_000_001, "zoned": "2026-01-02T03:04:05+01:00", **more}


def change(op: str, before: Any, after: Any, at: int = 2_000) -> bytes:
    body = io.BytesIO()
    source = {"ts_ms": at, "lsn": 7}
    fastavro.schemaless_writer(
        body, RECORD, {"before": before, "after": after, "source": source, "op": op, "ts_ms": None}
    )
    return b"\0" + (3).to_bytes(4, "big") + body.getvalue()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(registry, "_answer", lambda *asked: json.dumps({"schema": json.dumps(RECORD)}))
    # What registries have said is remembered by their addresses.
    return f"http://{uuid.uuid4().hex}"


COLUMNS = Schema(
    (
        Field("id", BIGINT),
        Field("name", STRING),
        Field("price", pa.decimal128(12, 2)),
        Field("at", TIMESTAMP),
        Field("day", DATE),
        Field("hour", STRING),
        Field("zoned", TIMESTAMP),
        Field("none", STRING),
        Field("__op", STRING),
        Field("__source_ts_ms", TIMESTAMP),
        Field("__source_lsn", BIGINT),
        Field("_offset", BIGINT),
    )
)


def test_records_by_key(address: str) -> None:
    data = [
        change("c", None, row(1)),
        change("d", row(1), None),
        None,
        change("t", None, None),
        b"\0\0",
        b"x",
    ]
    found = rows_of(AvroChanges(address, ChangeRecords.BY_KEY), messages(data), COLUMNS)
    (first, second) = found.rows.to_pylist()
    assert first == {
        "id": 1,
        "name": "n",
        "price": Decimal("12.50"),
        "at": datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC),
        "day": date(1970, 1, 4),
        "hour": "01:00:00.000001",
        "zoned": datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
        "none": None,
        "__op": "c",
        "__source_ts_ms": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
        "__source_lsn": 7,
        "_offset": 0,
    }
    assert (second["__op"], second["id"], second["_offset"]) == ("d", 1, 1)
    assert {one.place: one.reason for one in found.rejected} == {
        "x/3:3": 'the message is not a change record: op is "t", and not c, r, u or d',
        "x/3:4": "the message does not begin with the number of a schema of a registry",
        "x/3:5": "the message does not begin with the number of a schema of a registry",
    }


def test_records_by_row_are_rejected_whole(address: str) -> None:
    wanted = Schema((Field("id", BIGINT), Field("at", BIGINT), Field("__op", STRING)))
    data = [change("u", row(1), row(2, at=5)), change("u", None, row(3)), change("u", row(4), row(5))]
    found = rows_of(AvroChanges(address, ChangeRecords.BY_ROW), messages(data), wanted)
    # As numbers they stay what they are.
    assert [tuple(one.values()) for one in found.rows.to_pylist()] == [
        (1, 1_000_001, "update_before"),
        (2, 5, "update_after"),
        (4, 1_000_001, "update_before"),
        (5, 1_000_001, "update_after"),
    ]
    assert [one.place for one in found.rejected] == ["x/3:1"]
    # One of the two rows is beyond a TIMESTAMP.
    far = [change("u", row(1), row(2, ms=2**62)), change("c", None, row(6))]
    timed = Schema((Field("id", BIGINT), Field("ms", TIMESTAMP)))
    found = rows_of(AvroChanges(address, ChangeRecords.BY_ROW), messages(far), timed)
    assert found.rows.column(0).to_pylist() == [6]
    assert [one.place for one in found.rejected] == ["x/3:0"]
