"""STRING columns read as values of another type, as Spark's CAST reads them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array
from headrace.expressions.evaluation.decimals import fit
from headrace.expressions.evaluation.times import day_of
from headrace.expressions.evaluation.values import column, numbers
from headrace.limits import checked
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP
from headrace.time import MICROSECONDS

Converted = tuple[pa.Array, BoolArray]
"""Values, NULL where there is none, and the rows whose text is not such a value."""

BLANKS: Final = "".join(map(chr, (*range(33), 127)))
"""The characters that a CAST ignores at both ends."""

_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")
_INTEGER: Final = r"^[+-]?[0-9]+$"
_DIGITS: Final = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_NUMBER: Final = rf"^[+-]?{_DIGITS}([eE][+-]?[0-9]+)?$"
_DOUBLE: Final = rf"^[+-]?({_DIGITS}([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))$"
_SHORT_NUMBER: Final = r"^[+-]?([0-9]{0,37}(\.[0-9]{0,38})?|[0-9]?(\.[0-9]{0,18})?[eE][+-]?1?[0-9])$"
"""Numbers that a DECIMAL of 75 digits, 38 of them after the point, holds."""
_WIDE: Final = pa.decimal256(75, 38)


def parse_boolean(texts: pa.Array, target: pa.DataType) -> Converted:
    """BOOLEANs from `true`, `t`, `yes`, `y`, `1` and their opposites."""
    texts = pc.ascii_lower(_trimmed(texts))
    true, false = pc.is_in(texts, value_set=pa.array(_TRUE)), pc.is_in(texts, value_set=pa.array(_FALSE))
    known = pc.or_(true, false)
    return pc.if_else(known, true, pa.scalar(None, BOOLEAN)), _lost(texts, known)


def parse_integer(texts: pa.Array, target: pa.DataType) -> Converted:
    """BIGINTs from digits with a sign or none."""
    texts = _trimmed(texts)
    matching = pc.match_substring_regex(texts, _INTEGER)
    # Zeros in front could make any small number long.
    texts = pc.replace_substring_regex(_where(matching, texts), r"^\+?(-?)0*([0-9])", r"\1\2")
    short = pc.less(pc.binary_length(texts), 19)
    if pc.all(short).as_py() is not False:
        return texts.cast(BIGINT), _lost(matching, matching)
    wide = _where(pc.less(pc.binary_length(texts), 38), texts).cast(pa.decimal128(38, 0))
    low, high = (pa.scalar(bound).cast(pa.decimal128(38, 0)) for bound in (-(2**63), 2**63 - 1))
    inside = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)).fill_null(False)
    return _where(inside, wide).cast(BIGINT), _lost(matching, inside)


def parse_double(texts: pa.Array, target: pa.DataType) -> Converted:
    """DOUBLEs from decimal numbers, with or without exponent, `inf`, `infinity` and `nan`."""
    texts = _trimmed(texts)
    matching = pc.match_substring_regex(texts, _DOUBLE)
    return _where(matching, texts).cast(DOUBLE), _lost(texts, matching)


def parse_decimal(texts: pa.Array, target: pa.DataType) -> Converted:
    """DECIMALs from decimal numbers, rounded half away from zero."""
    texts = _trimmed(texts)
    matching = pc.match_substring_regex(texts, _NUMBER)
    short = pc.and_(matching, pc.match_substring_regex(texts, _SHORT_NUMBER))
    values, large = fit(_where(short, texts).cast(_WIDE), target)
    lost = _lost(texts, matching) | large
    long = np.flatnonzero(numbers(pc.and_(matching, pc.invert(short))))
    if len(long):
        # Arrow refuses digits that a DECIMAL cannot hold instead of rounding them; such numbers are rare.
        parsed = pa.array(
            [_decimal(text, target) for text in checked(texts.take(pa.array(long)).to_pylist())], target
        )
        mask = np.zeros(len(texts), dtype=np.bool_)
        mask[long] = True
        values = pc.replace_with_mask(values, pa.array(mask), parsed)
        lost[long] = numbers(pc.is_null(parsed))
    return values, lost


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    context = Context(prec=200, rounding=ROUND_HALF_UP)
    value = Decimal(text)
    if value and value.adjusted() >= target.precision:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), context=context)
    return rounded if rounded.is_zero() or rounded.adjusted() < target.precision - target.scale else None


_DATE: Final = r"^(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_DATE_TEXT: Final = _DATE + r"(?:[ T].*)?)?)?$"
_TIMESTAMP_TEXT: Final = (
    _DATE
    + r"(?:[ T](?P<hour>[0-9]{1,2})"
    + r"(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?)?"
    + r"(?: ?(?:Z|UTC|(?P<sign>[+-])(?P<zone_hour>[0-9]{1,2})(?::?(?P<zone_minute>[0-9]{2}))?))?)?)?)?$"
)


def parse_date(texts: pa.Array, target: pa.DataType) -> Converted:
    """DATEs from `2024`, `2024-2`, `2024-02-03`; a time of day after it is ignored."""
    texts = _trimmed(texts)
    part, matching = _groups(texts, _DATE_TEXT)
    day, valid = _days(part)
    good = matching & valid
    return column(day.astype(np.int32), good, pa.int32()).cast(DATE), _lost(texts, pa.array(good))


def parse_timestamp(texts: pa.Array, target: pa.DataType) -> Converted:
    """TIMESTAMPs from a date and perhaps a time of day and an offset; without one it is UTC."""
    texts = _trimmed(texts)
    part, matching = _groups(texts, _TIMESTAMP_TEXT)
    day, good = _days(part)
    return _instants(texts, part, day, part("hour", 0), matching & good)


_NAMES: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""The short names of the months."""


def parse_written(texts: pa.Array, regex: str) -> Converted:
    """TIMESTAMPs from texts that a regular expression of `patterns.reading` describes, UTC without offset."""
    part, matching = _groups(texts, regex)
    year = part("short", 0) + 2000 if part.has("short") else part("year", 1970)
    month = part.month_of_name() if part.has("name") else part("month", 1)
    day, good = _in_calendar(year, month, part("day", 1))
    hour = part("hour", 0)
    if part.has("half"):
        half = part("half", 12)
        good = good & (half >= 1) & (half <= 12)
        hour = half % 12 + 12 * part.afternoon()
    return _instants(texts, part, day, hour, matching & good)


def _instants(texts: pa.Array, part: _Parts, day: Int64Array, hour: Int64Array, good: BoolArray) -> Converted:
    """TIMESTAMPs from days since 1970 and the parts of the time of day."""
    minute, second = part("minute", 0), part("second", 0)
    zone_hour, zone_minute = part("zone_hour", 0), part("zone_minute", 0)
    limit = (zone_hour < 18) | ((zone_hour == 18) & (zone_minute == 0))
    good = good & (hour < 24) & (minute < 60) & (second < 60) & limit & (zone_minute < 60)
    zone = (zone_hour * 60 + zone_minute) * np.where(part.negative(), -1, 1)
    seconds = ((day * 24 + hour) * 60 + minute - zone) * 60 + second
    instant = seconds * MICROSECONDS["SECOND"] + part.microseconds()
    return column(instant, good, BIGINT).cast(TIMESTAMP), _lost(texts, pa.array(good))


class _Parts:
    """The groups of a regular expression as columns of numbers; those that it lacks are empty."""

    def __init__(self, groups: pa.StructArray) -> None:
        self._groups = groups
        self._names = frozenset(field.name for field in groups.type)

    def has(self, name: str) -> bool:
        """Whether there is such a group."""
        return name in self._names

    def month_of_name(self) -> Int64Array:
        """The months from 1 whose short names are given; 0 where there is none."""
        return (
            np.asarray(numbers(pc.index_in(self._text("name"), pa.array(_NAMES)).fill_null(-1).cast(BIGINT)))
            + 1
        )

    def afternoon(self) -> npt.NDArray[Any]:
        """Whether the hours of twelve are those after noon."""
        return numbers(pc.equal(self._text("noon"), "PM"))

    def __call__(self, name: str, missing: int) -> Int64Array:
        """The numbers of a group of at most a few digits; `missing` where it is empty."""
        text = self._text(name)
        return np.asarray(numbers(pc.if_else(pc.equal(text, ""), str(missing), text).cast(BIGINT)))

    def negative(self) -> npt.NDArray[Any]:
        """Whether the offset from UTC has a minus."""
        return numbers(pc.equal(self._text("sign"), "-"))

    def microseconds(self) -> Int64Array:
        """The digits after the point of the seconds; those beyond the sixth are cut off."""
        digits = pc.utf8_slice_codeunits(pc.utf8_rpad(self._text("fraction"), 6, "0"), 0, 6)
        return np.asarray(numbers(digits.cast(BIGINT)))

    def _text(self, name: str) -> pa.Array:
        if not self.has(name):
            return pa.repeat("", len(self._groups))
        return self._groups.field(name).fill_null("")


def _groups(texts: pa.Array, pattern: str) -> tuple[_Parts, BoolArray]:
    groups = pc.extract_regex(texts, pattern)
    return _Parts(groups), numbers(groups.is_valid())


def _days(part: _Parts) -> tuple[Int64Array, BoolArray]:
    """The days since 1970, and which of them are in the calendar."""
    return _in_calendar(part("year", 1970), part("month", 1), part("day", 1))


def _in_calendar(year: Int64Array, month: Int64Array, day: Int64Array) -> tuple[Int64Array, BoolArray]:
    months = (year - 1970) * 12 + month - 1
    first, following = (day_of(value.astype("M8[M]")) for value in (months, months + 1))
    valid = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)
    return first + day - 1, np.asarray(valid)


def _trimmed(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim(texts, BLANKS)


def _where(mask: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(mask, texts, pa.scalar(None, texts.type))


def _lost(texts: pa.Array, known: pa.Array) -> BoolArray:
    """The rows that had a text but give no value."""
    return np.asarray(numbers(pc.and_not(texts.is_valid(), known.fill_null(False))), dtype=np.bool_)
