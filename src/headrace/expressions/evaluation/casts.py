"""Casts over columns, as Spark's in ANSI mode: what has no counterpart fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray
from headrace.expressions.evaluation import parsing
from headrace.expressions.evaluation.decimals import Towards, fit, plain_text, to_double, whole_of
from headrace.expressions.evaluation.numbers import whole_numbers
from headrace.expressions.evaluation.texts import map_distinct
from headrace.expressions.evaluation.times import days, instants
from headrace.expressions.evaluation.values import (
    KernelResult,
    bad_cast,
    column,
    failing,
    numbers,
    validity,
    zero,
)
from headrace.nested import fields_of, lists, offsets_of
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, MOST_DIGITS, STRING, TIMESTAMP
from headrace.time import MICROSECONDS

CastValues = tuple[pa.Array, BoolArray]
"""Values of the new type, and the rows that have none."""

_DAY: Final = MICROSECONDS["DAY"]
_FIRST_TEXT: Final = int(datetime.fromisoformat("0001-01-01T00:00:00Z").timestamp()) * 1_000_000
_LAST_TEXT: Final = int(datetime.fromisoformat("9999-12-31T23:59:59Z").timestamp()) * 1_000_000 + 999_999


def cast(values: pa.Array, target: pa.DataType) -> KernelResult:
    """The values in another type; rows whose value has no counterpart there fail."""
    source = values.type
    if pa.types.is_null(source):
        return pa.nulls(len(values), target), ()
    converted, lost = _convert(values, target)
    return failing(converted, lost, bad_cast(source, target))


def _convert(values: pa.Array, target: pa.DataType) -> CastValues:
    """The values in another type, those in ARRAYs and STRUCTs one by one."""
    source = values.type
    if source == target:
        return values, _nothing_lost(values)
    if pa.types.is_null(source):
        return pa.nulls(len(values), target), _nothing_lost(values)
    if pa.types.is_list(target):
        return _array_to_array(values, target)
    if pa.types.is_struct(target):
        return _struct_to_struct(values, target)
    return _converter(source, target)(values, target)


def _array_to_array(values: pa.Array, target: pa.DataType) -> CastValues:
    """An ARRAY has no counterpart where one of its values has none."""
    parts, lost = _convert(values.values, target.value_type)
    offsets, before = offsets_of(values), np.concatenate([[0], np.cumsum(lost)])
    some = before[offsets[1:]] > before[offsets[:-1]]
    return lists(offsets, parts, values), some & validity(values)


def _struct_to_struct(values: pa.Array, target: pa.DataType) -> CastValues:
    """A STRUCT has the new names, field by field in their order."""
    parts = [_convert(part, field.type) for part, field in zip(fields_of(values), target, strict=True)]
    lost = np.logical_or.reduce([lost for _, lost in parts]) & validity(values)
    fields = [pa.field(field.name, field.type) for field in target]
    made = pa.StructArray.from_arrays([part for part, _ in parts], fields=fields, mask=values.is_null())
    return made, lost


def _converter(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array, pa.DataType], CastValues]:
    if target == STRING:
        return _TO_TEXT.get(source, _decimal_to_text)
    if source == STRING:
        return _FROM_TEXT.get(target, parsing.parse_decimal)
    if pa.types.is_decimal(target):
        return _TO_DECIMAL.get(source, _decimal_to_decimal)
    if pa.types.is_decimal(source):
        return _FROM_DECIMAL[target]
    return _OTHERS[source, target]


def _nothing_lost(values: pa.Array) -> BoolArray:
    return np.zeros(len(values), dtype=np.bool_)


def _plainly(values: pa.Array, target: pa.DataType) -> CastValues:
    return values.cast(target, safe=False), _nothing_lost(values)


# --- to STRING ---------------------------------------------------------------------------------------------


def _decimal_to_text(values: pa.Array, target: pa.DataType) -> CastValues:
    return plain_text(values), _nothing_lost(values)


def _timestamp_to_text(values: pa.Array, target: pa.DataType) -> CastValues:
    instant = instants(values)
    outside = validity(values) & ((instant < _FIRST_TEXT) | (instant > _LAST_TEXT))
    text = pc.if_else(pa.array(outside), pa.scalar(None, values.type), values).cast(STRING)
    return pc.replace_substring_regex(text, r"\.?0*Z$", ""), outside


def _date_to_text(values: pa.Array, target: pa.DataType) -> CastValues:
    instant = days(values) * _DAY
    outside = validity(values) & ((instant < _FIRST_TEXT) | (instant > _LAST_TEXT))
    return pc.if_else(pa.array(outside), pa.scalar(None, values.type), values).cast(STRING), outside


def _double_to_text(values: pa.Array, target: pa.DataType) -> CastValues:
    """As Java writes it: 1.0, and 1.0E7 from 10 million on; but -0 as 0, since they are equal in grouping."""
    text = pc.add(values, 0.0).cast(STRING)
    size = np.abs(numbers(values))
    plain = pa.array(((size >= 1e-3) & (size < 1e7)) | (size == 0))
    whole = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, ".0", ""))
    if pc.all(plain).as_py() is not False:
        return whole, _nothing_lost(values)
    return pc.if_else(plain, whole, map_distinct(_scientific, text, STRING)), _nothing_lost(values)


def _scientific(text: str | None) -> str | None:
    if text is None or "n" in text:
        return text and {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    mantissa, _, exponent = text.partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 - (len(whole + fraction) - len(digits)) + int(exponent or 0)
    return f"{sign}{digits[:1] or '0'}.{digits[1:].rstrip('0') or '0'}E{power}"


def _binary_to_text(values: pa.Array, target: pa.DataType) -> CastValues:
    """The text of which they are the UTF-8 bytes; few columns hold others."""
    try:
        return values.cast(target), _nothing_lost(values)
    except pa.ArrowInvalid:
        lost = np.array([value is not None and not _is_utf8(value) for value in values.to_pylist()])
        return pc.if_else(pa.array(lost), pa.scalar(None, BINARY), values).cast(target), lost


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_TO_TEXT: Final[dict[pa.DataType, Callable[[pa.Array, pa.DataType], CastValues]]] = {
    BINARY: _binary_to_text,
    BOOLEAN: _plainly,
    BIGINT: _plainly,
    DOUBLE: _double_to_text,
    DATE: _date_to_text,
    TIMESTAMP: _timestamp_to_text,
}

_FROM_TEXT: Final[dict[pa.DataType, Callable[[pa.Array, pa.DataType], CastValues]]] = {
    BINARY: _plainly,
    BOOLEAN: parsing.parse_boolean,
    BIGINT: parsing.parse_integer,
    DOUBLE: parsing.parse_double,
    DATE: parsing.parse_date,
    TIMESTAMP: parsing.parse_timestamp,
}

# --- numbers -----------------------------------------------------------------------------------------------


def _integer_to_decimal(values: pa.Array, target: pa.DataType) -> CastValues:
    if target.precision - target.scale >= 19:
        return values.cast(target), _nothing_lost(values)
    return fit(values.cast(pa.decimal128(19, 0)), target)


def _boolean_to_decimal(values: pa.Array, target: pa.DataType) -> CastValues:
    return _integer_to_decimal(values.cast(BIGINT), target)


def _double_to_decimal(values: pa.Array, target: pa.DataType) -> CastValues:
    """The shortest decimal number that the DOUBLE prints as, rounded."""
    return parsing.parse_decimal(values.cast(STRING), target)


def _decimal_to_decimal(values: pa.Array, target: pa.DataType) -> CastValues:
    return fit(values, target)


def _decimal_to_integer(values: pa.Array, target: pa.DataType) -> CastValues:
    numbers = whole_of(values, Towards.ZERO, pa.decimal256(max(1, MOST_DIGITS - values.type.scale), 0))
    low, high = (pa.scalar(bound, BIGINT).cast(pa.decimal256(19, 0)) for bound in (-(2**63), 2**63 - 1))
    outside = pc.or_(pc.less(numbers, low), pc.greater(numbers, high)).fill_null(False)
    kept = pc.if_else(outside, pa.scalar(None, numbers.type), numbers)
    return kept.cast(BIGINT), outside.to_numpy(zero_copy_only=False)


def _decimal_to_boolean(values: pa.Array, target: pa.DataType) -> CastValues:
    return pc.not_equal(values, zero(values.type)), _nothing_lost(values)


def _decimal_to_double(values: pa.Array, target: pa.DataType) -> CastValues:
    return to_double(values), _nothing_lost(values)


def _double_to_integer(values: pa.Array, target: pa.DataType) -> CastValues:
    result, fits = whole_numbers(numbers(values))
    valid = validity(values)
    return column(result, valid, BIGINT), valid & ~fits


def _number_to_boolean(values: pa.Array, target: pa.DataType) -> CastValues:
    return column(numbers(values) != 0, validity(values), BOOLEAN), _nothing_lost(values)


_TO_DECIMAL: Final[dict[pa.DataType, Callable[[pa.Array, pa.DataType], CastValues]]] = {
    BOOLEAN: _boolean_to_decimal,
    BIGINT: _integer_to_decimal,
    DOUBLE: _double_to_decimal,
}

_FROM_DECIMAL: Final[dict[pa.DataType, Callable[[pa.Array, pa.DataType], CastValues]]] = {
    BOOLEAN: _decimal_to_boolean,
    BIGINT: _decimal_to_integer,
    DOUBLE: _decimal_to_double,
}

# --- points in time ----------------------------------------------------------------------------------------


def _date_to_timestamp(values: pa.Array, target: pa.DataType) -> CastValues:
    day, valid = days(values), validity(values)
    outside = np.broadcast_to(valid & (np.abs(day) > 2**63 // _DAY - 1), len(values))
    instant = np.where(outside, 0, day) * _DAY
    return column(instant, valid, BIGINT).cast(TIMESTAMP), outside


def _timestamp_to_date(values: pa.Array, target: pa.DataType) -> CastValues:
    # Arrow cuts towards zero where a day should be the one that the instant lies in.
    return column(days(values).astype(np.int32), validity(values), pa.int32()).cast(DATE), _nothing_lost(
        values
    )


_OTHERS: Final[dict[tuple[pa.DataType, pa.DataType], Callable[[pa.Array, pa.DataType], CastValues]]] = {
    (BOOLEAN, BIGINT): _plainly,
    (BOOLEAN, DOUBLE): lambda values, target: _plainly(values.cast(BIGINT), target),
    (BIGINT, BOOLEAN): _number_to_boolean,
    (BIGINT, DOUBLE): _plainly,
    (DOUBLE, BOOLEAN): _number_to_boolean,
    (DOUBLE, BIGINT): _double_to_integer,
    (DATE, TIMESTAMP): _date_to_timestamp,
    (TIMESTAMP, DATE): _timestamp_to_date,
}
