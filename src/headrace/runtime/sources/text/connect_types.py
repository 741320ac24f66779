"""Values of Kafka Connect's types in JSON: decimals in base64, and times as numbers.

A record that bears its schema says of which type a field is (*Debezium connector for PostgreSQL*, sections
*Temporal types* and *Decimal types*; the names are the same for other databases). Without one the number of a
time may be of any unit, and a text such as `1234` is a number as well as base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from headrace.runtime.sources.text.json_values import JsonNumber, Object, pick
from headrace.schema import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema

_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_VARIABLE: Final = "io.debezium.data.VariableScaleDecimal"
_INSTANTS: Final = {
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Timestamp": "ms",
}
"""The units since 1970-01-01 that instants are counted in."""
_TIMES: Final = {
    "io.debezium.time.Time": 1_000,
    "io.debezium.time.MicroTime": 1,
    "org.apache.kafka.connect.data.Time": 1_000,
}
"""The microseconds that one of what times of day count has."""
_DATE: Final = "io.debezium.time.Date"
_ZONED: Final = "io.debezium.time.ZonedTimestamp"
_EPOCH: Final = date(1970, 1, 1)
_EXACT: Final = Context(prec=200)


@dataclass(frozen=True)
class ConnectKind:
    """The type of a field.

    Attributes:
        name: as Kafka Connect calls it.
        scale: the digits behind the point of a decimal.
    """

    name: str
    scale: int = 0


Kinds: TypeAlias = Mapping[str, ConnectKind]
"""The types of a table's columns by name, as far as they have names."""


def kinds_of(line: Object, wanted: Schema) -> Kinds:
    """The types that a record says its columns are of; none where it bears no schema.

    Args:
        line: the record with its schema beside it.
        wanted: the columns.
    """
    (schema,) = pick(line, ("schema",))
    rows = [one for one in _fields(schema) if pick(one, ("field",))[0] in ("before", "after")]
    found = {}
    for row in rows:
        for one in _fields(row):
            column, name, parameters = pick(one, ("field", "name", "parameters"))
            place = wanted.find(str(column))
            if isinstance(name, str) and place is not None:
                (scale,) = pick(parameters, ("scale",)) if isinstance(parameters, Object) else (None,)
                digits = int(str(scale)) if str(scale).lstrip("-").isdecimal() else 0
                found[wanted[place].name] = ConnectKind(name, digits)
    return found


def _fields(schema: object) -> list[Object]:
    if not isinstance(schema, Object):
        return []
    (fields,) = pick(schema, ("fields",))
    return [one for one in fields if isinstance(one, Object)] if isinstance(fields, list) else []


def sql_value(value: object, field: Field, kind: ConnectKind | None) -> object:
    """A value as the column has it; as it is where it is no decimal or time, or the column is a number.

    Args:
        value: as JSON has it.
        field: the column.
        kind: of which type it is, if that is said.
    """
    is_whole = isinstance(value, JsonNumber) and value.lstrip("-").isdecimal()
    if field.type == DATE and is_whole:
        # However it is called, a date counts days.
        return _date(int(str(value)))
    if kind is None:
        return value
    if kind.name == _DECIMAL and isinstance(value, str) and not isinstance(value, JsonNumber):
        return _decimal(value, kind.scale, value, field)
    if kind.name == _VARIABLE and isinstance(value, Object):
        scale, digits = pick(value, ("scale", "value"))
        is_written = isinstance(digits, str) and str(scale).lstrip("-").isdecimal()
        return _decimal(str(digits), int(str(scale)), value, field) if is_written else value
    if is_whole and field.type == TIMESTAMP and kind.name in _INSTANTS:
        return _instant(int(str(value)), _INSTANTS[kind.name])
    if is_whole and field.type == STRING and kind.name in _TIMES:
        return _time(int(str(value)) * _TIMES[kind.name])
    return value


def arrow_type_of(dtype: pa.DataType, wish: pa.DataType, name: str | None) -> pa.DataType:
    """The type of a value of Avro's that counts time, as the column asks for it.

    Args:
        dtype: that of Avro.
        wish: that of the column.
        name: what Kafka Connect calls it; None if it has no name.
    """
    if pa.types.is_integer(dtype) and name is not None:
        if wish == TIMESTAMP and name in _INSTANTS:
            return pa.timestamp(_INSTANTS[name], "UTC")
        if wish == DATE and name == _DATE:
            return pa.date32()
        if wish == STRING and name in _TIMES:
            return pa.string()
    if wish == TIMESTAMP and name == _ZONED:
        return pa.timestamp("us", "UTC")
    return dtype


def text_of_time(value: object, name: str | None, dtype: pa.DataType) -> object:
    """A value of Avro's in the type of `arrow_type_of`.

    Args:
        value: as the record has it.
        name: what Kafka Connect calls its type; None if it has no name.
        dtype: the type that it is to be of.
    """
    if dtype == pa.string() and name in _TIMES and isinstance(value, int):
        return _time(value * _TIMES[str(name)])
    if pa.types.is_timestamp(dtype) and name == _ZONED and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


def advice_on(value: object, field: Field) -> str:
    """What helps where a value is not one of its column, and bears no schema; empty if nothing is known."""
    is_number = pa.types.is_decimal(field.type) or field.type in (BIGINT, DOUBLE)
    if is_number and isinstance(value, str) and not isinstance(value, JsonNumber):
        mode = "string" if pa.types.is_decimal(field.type) else "double"
        return f"; where it is base64, let the connector send schemas, or set decimal.handling.mode to {mode}"
    if field.type == TIMESTAMP and isinstance(value, JsonNumber):
        return "; let the connector send schemas, which say what it counts, or declare it BIGINT"
    return ""


def _decimal(text: str, scale: int, otherwise: object, field: Field) -> object:
    try:
        digits = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    except (binascii.Error, ValueError):
        return otherwise
    number = format(Decimal(digits).scaleb(-scale, _EXACT), "f")
    return number if field.type == STRING else JsonNumber(number)


def _instant(count: int, unit: str) -> object:
    try:
        # Nanoseconds that a TIMESTAMP has not are cut off, downwards.
        within = {"ms": count * 1_000, "us": count, "ns": count // 1_000}[unit]
        return str(np.datetime64(within, "us"))
    except OverflowError:
        return JsonNumber(count)


def _date(days: int) -> object:
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        return JsonNumber(days)


def _time(micros: int) -> object:
    seconds, rest = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    fraction = f".{rest:06}" if rest else ""
    return f"{hours:02}:{minute:02}:{second:02}{fraction}"
