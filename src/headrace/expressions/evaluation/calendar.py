"""The calendar over columns: parts of weeks and years, arithmetic on points in time, time zones.

Results are in the years 1 to 9999; a row with another one fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array
from headrace.expressions.evaluation.times import day_of, days, instants
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
from headrace.expressions.time_zones import fixed_distance
from headrace.expressions.tree import Call, Literal
from headrace.schema import BIGINT, DATE, TIMESTAMP
from headrace.time import CALENDAR, MICROSECONDS

OUTSIDE: Final = "a point in time outside the years 1 to 9999"
NO_DATE: Final = "there is no such DATE"

_DAY: Final = MICROSECONDS["DAY"]
_FIRST_DAY: Final = date.min.toordinal() - date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal() - date(1970, 1, 1).toordinal()
_FIRST: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 10**6
_BEYOND: Final = (_LAST_DAY + 1) * _DAY
_UNLISTED: Final = int(datetime(2037, 1, 1, tzinfo=UTC).timestamp()) * 10**6
"""Until then files of time zones list each change of clocks; Arrow does not know the rules that follow."""
_QUARTER: Final = 15 * MICROSECONDS["MINUTE"]
"""Clocks are changed by rules at multiples of that."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Final = timedelta()
_SPAN_OF_DAYS: Final = 4_000_000
"""More days, and so more months, than there are in the years 1 to 9999."""
_SUNDAY: Final = 4
"""1970-01-01, day 0, comes so many days after a Sunday, and three after a Monday."""


def _quarter(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _number(arguments[0], _months(days(arguments[0])) % 12 // 3 + 1)


def _day_of_week(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """From 1, Sunday, to 7."""
    return _number(arguments[0], (days(arguments[0]) + _SUNDAY) % 7 + 1)


def _weekday(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """From 0, Monday, to 6."""
    return _number(arguments[0], (days(arguments[0]) + _SUNDAY - 1) % 7)


def _day_of_year(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    day = days(arguments[0])
    return _number(arguments[0], day - _first_of_year(day) + 1)


def _week_of_year(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """Of ISO 8601: the week of its Thursday in that one's year."""
    day = days(arguments[0])
    thursday = day - (day + 3) % 7 + 3
    return _number(arguments[0], (thursday - _first_of_year(thursday)) // 7 + 1)


def _number(argument: Datum, values: Int64Array) -> KernelResult:
    return fine(column(values, validity(argument), BIGINT))


def _months(day: Int64Array) -> Int64Array:
    """The months since January 1970 of days since then."""
    return np.asarray(day.astype("M8[D]").astype("M8[M]").astype(np.int64))


def _first_of_month(month: Int64Array) -> Int64Array:
    return day_of(month.astype("M8[M]"))


def _first_of_year(day: Int64Array) -> Int64Array:
    return day_of(day.astype("M8[D]").astype("M8[Y]"))


def _last_day(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    last = _first_of_month(_months(days(arguments[0])) + 1) - 1
    return _dates(last, validity(arguments[0]))


def _dates(day: Int64Array, valid: BoolArray) -> KernelResult:
    """Days since 1970 as DATEs."""
    outside = (day < _FIRST_DAY) | (day > _LAST_DAY)
    kept = np.where(outside, 0, day)
    values = column(kept.astype(np.int32), valid, pa.int32()).cast(DATE)
    return failing(values, np.broadcast_to(valid & outside, kept.shape), OUTSIDE)


def _moments(micros: Int64Array, valid: BoolArray, outside: BoolArray) -> KernelResult:
    """Microseconds since 1970 as TIMESTAMPs, but for those that are outside for another reason."""
    outside = outside | (micros < _FIRST) | (micros >= _BEYOND)
    kept = np.where(outside, 0, micros)
    return failing(
        column(kept, valid, BIGINT).cast(TIMESTAMP), np.broadcast_to(valid & outside, kept.shape), OUTSIDE
    )


def _date_add(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    day, count = days(arguments[0]), _bounded(numbers(arguments[1]), _SPAN_OF_DAYS)
    return _dates(day + count, validity(*arguments))


def _add_months(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    day, count = days(arguments[0]), _bounded(numbers(arguments[1]), _SPAN_OF_DAYS)
    return _dates(_months_later(day, count), validity(*arguments))


def _bounded(count: Int64Array, most: int) -> Int64Array:
    """The numbers, cut to a range beyond which every result is outside."""
    return np.clip(count, -most, most)


def _months_later(day: Int64Array, count: Int64Array) -> Int64Array:
    """The same day of a later month, or its last one where it has fewer."""
    month = _months(day)
    first, following = _first_of_month(month + count), _first_of_month(month + count + 1)
    return np.asarray(np.minimum(first + day - _first_of_month(month), following - 1))


def _timestamp_add(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    unit, micros = _unit(call), instants(arguments[2])
    count, valid = numbers(arguments[1]), validity(*arguments[1:])
    if unit in CALENDAR:
        day = micros // _DAY
        moved = _months_later(day, _bounded(count, _SPAN_OF_DAYS) * CALENDAR[unit])
        outside = (moved < _FIRST_DAY) | (moved > _LAST_DAY)
        return _moments(np.where(outside, 0, moved) * _DAY + micros - day * _DAY, valid, outside)
    most = (_BEYOND - _FIRST) // MICROSECONDS[unit] + 1
    sum_of = micros + _bounded(count, most) * MICROSECONDS[unit]
    return _moments(sum_of, valid, (count > most) | (count < -most))


def _timestamp_diff(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    unit, start, end = _unit(call), instants(arguments[1]), instants(arguments[2])
    valid = validity(*arguments[1:])
    if unit in CALENDAR:
        return fine(column(_towards_zero(_months_between(start, end), CALENDAR[unit]), valid, BIGINT))
    return fine(column(_towards_zero(end - start, MICROSECONDS[unit]), valid, BIGINT))


def _towards_zero(count: Int64Array, unit: int) -> Int64Array:
    whole = np.abs(count) // unit
    return np.where(count < 0, -whole, whole)


def _months_between(start: Int64Array, end: Int64Array) -> Int64Array:
    """The whole months from one instant to another, as Java counts: whole days, then by their dates."""
    first, last = start // _DAY, end // _DAY
    early, late = start - first * _DAY, end - last * _DAY
    last = last + ((last < first) & (late > early)) - ((last > first) & (late < early))
    return _towards_zero(_packed(last) - _packed(first), 32)


def _packed(day: Int64Array) -> Int64Array:
    """Months, and days of the month as parts of 32."""
    month = _months(day)
    return month * 32 + day - _first_of_month(month)


def _unit(call: Call) -> str:
    unit = call.arguments[0]
    assert isinstance(unit, Literal)
    return str(unit.value)


def _date_diff(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    end, start = map(days, arguments)
    return fine(column(end - start, validity(*arguments), BIGINT))


def _make_date(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    year, month, day = (_bounded(numbers(part), 10**5) for part in arguments)
    known = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(known, (year - 1970) * 12 + month - 1, 0)
    first, following = _first_of_month(months), _first_of_month(months + 1)
    good = known & (day <= following - first)
    valid = validity(*arguments)
    values = np.where(good, first + day - 1, 0).astype(np.int32)
    return failing(
        column(values, valid, pa.int32()).cast(DATE), np.broadcast_to(valid & ~good, values.shape), NO_DATE
    )


def _unix_seconds(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _number(arguments[0], instants(arguments[0]) // MICROSECONDS["SECOND"])


def _unix_millis(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return _number(arguments[0], instants(arguments[0]) // MICROSECONDS["MILLISECOND"])


def _from_unix(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    unit = MICROSECONDS[_COUNTED[call.function]]
    count = numbers(arguments[0])
    most = _BEYOND // unit + 1
    outside = np.asarray((count > most) | (count < -most))
    return _moments(_bounded(count, most) * unit, validity(arguments[0]), outside)


_COUNTED: Final = {
    "TIMESTAMP_SECONDS": "SECOND",
    "TIMESTAMP_MILLIS": "MILLISECOND",
    "TIMESTAMP_MICROS": "MICROSECOND",
}
"""The units of the functions that make a TIMESTAMP of a number."""


def _in_zone(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    zone = call.arguments[1]
    assert isinstance(zone, Literal)
    if zone.value is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    micros, name = instants(arguments[0]), str(zone.value)
    moved = micros + _offset(micros, name) if call.function == "FROM_UTC_TIMESTAMP" else utc_of(micros, name)
    return _moments(moved, validity(arguments[0]), np.zeros(micros.shape, dtype=np.bool_))


def _offset(micros: Int64Array, zone: str) -> Int64Array:
    """By how many microseconds the clocks of a zone are ahead of UTC, at instants."""
    if (distance := fixed_distance(zone)) is not None:
        return np.full(micros.shape, distance // timedelta(microseconds=1), dtype=np.int64)
    known = np.clip(micros, _FIRST + _DAY, _BEYOND - _DAY)
    local = pc.local_timestamp(pa.array(known, BIGINT).cast(pa.timestamp("us", zone)))
    ahead = np.asarray(np.asarray(local.cast(BIGINT)) - known)
    later = known >= _UNLISTED
    if later.any():
        ahead[later] = _offset_by_rules(known[later], zone)
    return ahead


def _offset_by_rules(micros: Int64Array, zone: str) -> Int64Array:
    quarters, places = np.unique(micros // _QUARTER, return_inverse=True)
    clocks = ZoneInfo(zone)
    moments = [_EPOCH + timedelta(minutes=15 * quarter) for quarter in quarters.tolist()]
    ahead = [
        (moment.astimezone(clocks).utcoffset() or _NOTHING) // timedelta(microseconds=1) for moment in moments
    ]
    return np.array(ahead, dtype=np.int64)[places]


def utc_of(local: Int64Array, zone: str) -> Int64Array:
    """The instants at which clocks of a zone show a time; the earlier one of two.

    A time that clocks skip counts as if they were set later, as in Java.
    """
    before, after = _offset(local - _DAY, zone), _offset(local + _DAY, zone)
    early, late = local - before, local - after
    is_early = _offset(early, zone) == before
    return np.where(is_early | (_offset(late, zone) != after), early, late)


KERNELS: Final[dict[str, Kernel]] = {
    "QUARTER": _quarter,
    "DAYOFWEEK": _day_of_week,
    "WEEKDAY": _weekday,
    "DAYOFYEAR": _day_of_year,
    "WEEKOFYEAR": _week_of_year,
    "LAST_DAY": _last_day,
    "DATE_ADD": _date_add,
    "ADD_MONTHS": _add_months,
    "DATEDIFF": _date_diff,
    "TIMESTAMPADD": _timestamp_add,
    "TIMESTAMPDIFF": _timestamp_diff,
    "MAKE_DATE": _make_date,
    "UNIX_SECONDS": _unix_seconds,
    "UNIX_MILLIS": _unix_millis,
    **dict.fromkeys(_COUNTED, _from_unix),
    "FROM_UTC_TIMESTAMP": _in_zone,
    "TO_UTC_TIMESTAMP": _in_zone,
}
"""The functions of the calendar."""
