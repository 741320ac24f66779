"""Functions with patterns over columns: regular expressions, parts of texts, texts of points in time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.expressions.evaluation.parsing import parse_written
from headrace.expressions.evaluation.texts import ConstantArguments, by_constants
from headrace.expressions.evaluation.times import instants
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    column,
    failing,
    fine,
    numbers,
    rows_of,
    validity,
)
from headrace.expressions.patterns import TimePart, grouped, reading, time_parts
from headrace.expressions.tree import Call, Literal
from headrace.limits import checked
from headrace.schema import BIGINT, STRING
from headrace.time import MICROSECONDS

PART_ZERO: Final = "SPLIT_PART counts parts from 1, or from -1 at the end"
NOT_WRITTEN_SO: Final = "the text does not fit the pattern of TO_TIMESTAMP"
NO_TEXT: Final = "DATE_FORMAT takes the years 1 to 9999"

_FIRST_TEXT: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
_BEYOND_TEXT: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000 + MICROSECONDS["DAY"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"S": "MICROSECOND", "s": "SECOND", "m": "MINUTE", "H": "HOUR", "h": "HOUR", "a": "HOUR"}
"""The units of the parts that are shorter than a day."""
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _constant(call: Call, place: int) -> object:
    part = call.arguments[place]
    assert isinstance(part, Literal)
    return part.value


def _regexp_like(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern = _constant(call, 1)
    if pattern is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    return fine(pc.match_substring_regex(arguments[0], pattern))


def _regexp_extract(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    texts, pattern = arguments[0], _constant(call, 1)
    if pattern is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    found = pc.extract_regex(texts, grouped(str(pattern)).text)
    group = pc.if_else(found.is_valid(), pc.struct_field(found, f"g{_constant(call, 2)}"), "")
    return fine(pc.if_else(texts.is_valid(), group, pa.scalar(None, STRING)))


def _split_part(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, _ = by_constants(_part, call, arguments[0], arguments[1:])
    zero = validity(*arguments) & (numbers(arguments[2]) == 0)
    return failing(values, np.broadcast_to(zero, len(values)), PART_ZERO)


def _part(texts: pa.Array, constants: ConstantArguments) -> pa.Array:
    """The part of that number, from 1, or from -1 at the end; an empty text where there is none."""
    delimiter, number = constants
    if not delimiter:
        kept = texts if number in (1, -1) else pa.array([""] * len(texts), STRING)
        return pc.if_else(texts.is_valid(), kept, pa.scalar(None, STRING))
    few = min(number, 2**31 - 2) if number > 0 else None
    lists = pc.split_pattern(texts.fill_null(""), delimiter, max_splits=few)
    ends = np.asarray(lists.offsets).astype(np.int64)
    places = ends[:-1] + (number - 1) if number > 0 else ends[1:] + number
    inside = (places >= ends[:-1]) & (places < ends[1:])
    parts = lists.values.take(pa.array(places, mask=~inside)).fill_null("")
    return pc.if_else(texts.is_valid(), parts, pa.scalar(None, STRING))


def _date_format(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern = _constant(call, 1)
    if pattern is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    parts = time_parts(str(pattern))
    values, valid = instants(arguments[0]), validity(arguments[0])
    outside = (values < _FIRST_TEXT) | (values >= _BEYOND_TEXT)
    units = (_UNITS.get(part.letter, "DAY") for part in parts if isinstance(part, TimePart))
    # Rows that differ in what is not written are written once.
    unit = min((MICROSECONDS[unit] for unit in units), default=MICROSECONDS["DAY"])
    encoded = column(values - values % unit, valid & ~outside, BIGINT).dictionary_encode()
    texts = pa.array([_written(parts, value) for value in checked(encoded.dictionary.to_pylist())], STRING)
    return failing(texts.take(encoded.indices), valid & outside, NO_TEXT)


def _to_timestamp(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern = _constant(call, 1)
    if pattern is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    values, lost = parse_written(arguments[0], reading(str(pattern)))
    return failing(values, lost, NOT_WRITTEN_SO)


def _written(parts: Sequence[TimePart | str], micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return "".join(part if isinstance(part, str) else _part_of(moment, part) for part in parts)


def _part_of(moment: datetime, part: TimePart) -> str:
    width = part.count
    match part.letter:
        case "y":
            return f"{moment.year % 100:02}" if width == 2 else f"{moment.year:0{width}}"
        case "M":
            name = _MONTHS[moment.month - 1]
            return f"{moment.month:0{width}}" if width < 3 else name[:3] if width == 3 else name
        case "d":
            return f"{moment.day:0{width}}"
        case "E":
            name = _DAYS[moment.weekday()]
            return name if width == 4 else name[:3]
        case "H":
            return f"{moment.hour:0{width}}"
        case "h":
            return f"{(moment.hour + 11) % 12 + 1:0{width}}"
        case "m":
            return f"{moment.minute:0{width}}"
        case "s":
            return f"{moment.second:0{width}}"
        case "S":
            return f"{moment.microsecond:06}"[:width]
        case _:
            return "AM" if moment.hour < 12 else "PM"


KERNELS: Final[dict[str, Kernel]] = {
    "REGEXP_LIKE": _regexp_like,
    "REGEXP_EXTRACT": _regexp_extract,
    "SPLIT_PART": _split_part,
    "DATE_FORMAT": _date_format,
    "TO_TIMESTAMP": _to_timestamp,
}
"""The functions with patterns."""
