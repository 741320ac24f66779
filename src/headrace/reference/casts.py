"""CAST of one Python value, as Spark casts it in ANSI mode."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from headrace.nested import is_nested, part_types
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, sql_type

EXACT: Final = Context(prec=1000, rounding=ROUND_HALF_UP)
"""Decimal arithmetic that loses no digit, except for quotients far beyond any type's scale."""

BLANKS: Final = "".join(map(chr, (*range(33), 127)))
"""What CAST ignores at both ends of a text."""


class RowError(Exception):
    """An expression that has no value for a row.

    Attributes:
        reason: why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def cast(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """A value of one type in another.

    Raises:
        RowError: it has no counterpart there.
    """
    if value is None or source == target:
        return value
    if is_nested(target):
        return _cast_parts(value, source, target)
    try:
        return _to_text(value) if target == STRING else _cast(value, target)
    except (ValueError, OverflowError, ArithmeticError):
        raise RowError(f"invalid cast from {sql_type(source)} to {sql_type(target)}") from None


def _cast_parts(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """An ARRAY value by value, or a STRUCT field by field."""
    parts = value.values() if isinstance(value, dict) else value
    types = list(zip(part_types(source), part_types(target), strict=True))
    if pa.types.is_list(target):
        types *= len(parts)
    try:
        cast_parts = [cast(part, one, other) for part, (one, other) in zip(parts, types, strict=True)]
    except RowError:
        raise RowError(f"invalid cast from {sql_type(source)} to {sql_type(target)}") from None
    return cast_parts if pa.types.is_list(target) else tuple(cast_parts)


def _cast(value: Any, target: pa.DataType) -> Any:
    if target == BINARY:
        return value.encode()
    if isinstance(value, str):
        value = value.strip(BLANKS)
    if target == BOOLEAN:
        return _to_boolean(value)
    if target == BIGINT:
        return _to_integer(value)
    if target == DOUBLE:
        return _to_double(value)
    if target == DATE:
        return _read_date(value) if isinstance(value, str) else value.date()
    if target == TIMESTAMP:
        return _read_timestamp(value) if isinstance(value, str) else datetime.combine(value, time(), UTC)
    return to_scale(_number(value), target)


def to_scale(value: Decimal, dtype: pa.DataType) -> Decimal:
    """The number rounded half away from zero to the scale of a DECIMAL.

    Raises:
        ValueError: it has too many digits in front of the point.
    """
    rounded = value.quantize(Decimal(1).scaleb(-dtype.scale), context=EXACT)
    # `abs` would round to the digits of the current context.
    if rounded.copy_abs() >= Decimal(10) ** (dtype.precision - dtype.scale):
        raise ValueError(value)
    # There is no -0 among DECIMALs.
    return EXACT.add(rounded, Decimal(0))


def _to_text(value: Any) -> str:
    match value:
        case bytes():
            return value.decode()
        case bool():
            return "true" if value else "false"
        case float():
            return _double_text(value + 0.0)
        case Decimal():
            return f"{value:f}"
        case datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            return text.rstrip("0") if "." in text else text
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _double_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    number = Decimal(repr(value))
    if number.is_zero():
        return "0.0"
    if 1e-3 <= abs(value) < 1e7:
        text = f"{number:f}"
        return text if "." in text else f"{text}.0"
    sign = "-" if number < 0 else ""
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("t", "true", "y", "yes", "1"):
            return True
        if value.lower() in ("f", "false", "n", "no", "0"):
            return False
        raise ValueError(value)
    return bool(value != 0)


def _to_integer(value: Any) -> int:
    if isinstance(value, str):
        value = _matched(r"[+-]?[0-9]+", value)
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError(value)
    return number


def _to_double(value: Any) -> float:
    if isinstance(value, str) and not re.fullmatch(r"(?i)[+-]?(inf|infinity|nan)", value):
        value = _numeral(value)
    return float(value)


def _number(value: Any) -> Decimal:
    if isinstance(value, str):
        return Decimal(_numeral(value))
    if isinstance(value, float):
        number = Decimal(repr(value))
        if not number.is_finite():
            raise ValueError(value)
        return number
    return Decimal(value)


def _numeral(text: str) -> str:
    return _matched(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)


def _matched(pattern: str, text: str) -> str:
    if re.fullmatch(pattern, text, re.ASCII) is None:
        raise ValueError(text)
    return text


_DATE: Final = r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
_TIME: Final = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?"
_ZONE: Final = r"(?: ?(?:Z|UTC|([+-])(\d{1,2})(?::?(\d{2}))?))?"


def _read_date(text: str) -> date:
    found = re.fullmatch(_DATE + r"(?:[ T].*)?)?)?", text, re.ASCII)
    if found is None:
        raise ValueError(text)
    return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def _read_timestamp(text: str) -> datetime:
    found = re.fullmatch(_DATE + rf"(?:[ T]{_TIME}{_ZONE})?)?)?", text, re.ASCII)
    if found is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, sign, *zone = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6])
    local = datetime(
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        micros,
        UTC,
    )
    offset = timedelta(hours=int(zone[0] or 0), minutes=int(zone[1] or 0))
    if offset > timedelta(hours=18) or int(zone[1] or 0) > 59:
        raise ValueError(text)
    return local + offset if sign == "-" else local - offset
