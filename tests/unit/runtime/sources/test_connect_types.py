"""Decimals and times of Debezium's records as SQL's types, where records bear their schemas."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.sources.messages.formats import ChangeMessages
from headrace.runtime.sources.messages.messages import rows_of
from headrace.runtime.sources.text.debezium import RecordSource
from headrace.schema import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema
from messages import messages

DECIMAL = "org.apache.kafka.connect.data.Decimal"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def written(number: int) -> str:
    """An integer as Java's BigInteger has it: the least bytes of two's complement, in base64."""
    size = next(size for size in range(1, 40) if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1)
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def record(value: Any, name: str | None = None, scale: int | None = None, op: str = "c") -> dict[str, Any]:
    column: dict[str, Any] = {"type": "bytes", "optional": True, "field": "c"}
    if name is not None:
        column |= {"name": name}
    if scale is not None:
        column |= {"parameters": {"scale": str(scale), "connect.decimal.precision": "30"}}
    side = "before" if op == "d" else "after"
    payload = {"before": None, "after": None, "op": op, "source": {"ts_ms": 1}, "ts_ms": 2}
    payload[side] = {"id": 1, "c": value}
    if name is None:
        return payload
    fields = [{"type": "struct", "fields": [{"type": "int64", "field": "id"}, column], "field": side}]
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


def read(dtype: pa.DataType, *records: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The column `c`, and the reasons of dead letters."""
    columns = Schema((Field("id", BIGINT), Field("c", dtype), Field("__op", STRING)))
    form = ChangeMessages(RecordSource(columns, (), 0, ChangeRecords.BY_KEY))
    found = rows_of(form, messages([json.dumps(one).encode() for one in records]), columns)
    return found.rows.column(1).to_pylist(), [one.reason for one in found.rejected]


@given(st.integers(-(10**20), 10**20), st.integers(-3, 10))
def test_decimals_in_base64_have_the_scale_of_the_schema(number: int, scale: int) -> None:
    exact = Decimal(number).scaleb(-scale)
    wide = read(pa.decimal128(38, 10), record(written(number), DECIMAL, scale))
    assert wide == ([exact], [])
    assert read(DOUBLE, record(written(number), DECIMAL, scale)) == ([float(exact)], [])
    assert read(STRING, record(written(number), DECIMAL, scale)) == ([format(exact, "f")], [])
    variable = record({"scale": scale, "value": written(number)}, "io.debezium.data.VariableScaleDecimal")
    assert read(pa.decimal128(38, 10), variable) == wide


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_instants_and_dates_are_what_they_count(at: datetime) -> None:
    micros = (at - EPOCH) // timedelta(microseconds=1)
    millis = at - timedelta(microseconds=at.microsecond % 1_000)
    for name, count, right in [
        ("io.debezium.time.MicroTimestamp", micros, at),
        ("io.debezium.time.Timestamp", micros // 1_000, millis),
        ("io.debezium.time.NanoTimestamp", micros * 1_000 + 999, at),
        ("org.apache.kafka.connect.data.Timestamp", micros // 1_000, millis),
    ]:
        assert read(TIMESTAMP, record(count, name)) == ([right], []), name
        # As a number it stays what it is.
        if -(2**63) <= count < 2**63:
            assert read(BIGINT, record(count, name)) == ([count], [])
    days = (at.date() - date(1970, 1, 1)).days
    for named in ("io.debezium.time.Date", None):
        assert read(DATE, record(days, named)) == ([at.date()], [])
    zoned = record(at.isoformat(), "io.debezium.time.ZonedTimestamp")
    assert read(TIMESTAMP, zoned) == ([at], [])


@pytest.mark.parametrize(
    ("name", "count", "text"),
    [
        ("io.debezium.time.MicroTime", 3_723_000_004, "01:02:03.000004"),
        ("io.debezium.time.Time", 86_399_000, "23:59:59"),
        ("org.apache.kafka.connect.data.Time", 0, "00:00:00"),
    ],
)
def test_times_of_day_are_texts(name: str, count: int, text: str) -> None:
    assert read(STRING, record(count, name)) == ([text], [])
    assert read(BIGINT, record(count, name)) == ([count], [])


def test_what_bears_no_schema_is_not_guessed() -> None:
    values, reasons = read(pa.decimal128(10, 2), record("1234"), record(5), record("AxY="), record(None))
    assert values == [Decimal("1234.00"), Decimal("5.00"), None]
    assert reasons == [
        "c is not a valid DECIMAL(10, 2): 'AxY='; where it is base64, let the connector send schemas, or set "
        "decimal.handling.mode to string"
    ]
    for dtype, name in ((DOUBLE, "DOUBLE"), (BIGINT, "BIGINT")):
        values, reasons = read(dtype, record("AxY="), record(5))
        assert values == [5]
        assert reasons == [
            f'c is not a valid {name}: "AxY="; where it is base64, let the connector '
            "send schemas, or set decimal.handling.mode to double"
        ]
    values, reasons = read(TIMESTAMP, record(1_700_000_000_000))
    assert values == []
    assert reasons == [
        "c is not a valid TIMESTAMP: 1700000000000; let the connector send schemas, which say what it "
        "counts, or declare it BIGINT"
    ]


def test_records_have_what_kafka_says_of_their_messages() -> None:
    wanted = Schema((Field("id", BIGINT), Field("_offset", BIGINT), Field("_topic", STRING)))
    form = ChangeMessages(RecordSource(Schema((Field("id", BIGINT),)), (), 0, ChangeRecords.BY_KEY))
    lines = [record(1), None, {"op": "x"}, record(2, op="d"), record(3, "n")]
    data = [None if one is None else json.dumps(one).encode() for one in lines]
    found = rows_of(form, messages(data, 5), wanted)
    assert found.rows.column(1).to_pylist() == [5, 8, 9]
    assert found.rows.column(2).to_pylist() == ["x"] * 3
    assert [one.place for one in found.rejected] == ["x/3:7"]
