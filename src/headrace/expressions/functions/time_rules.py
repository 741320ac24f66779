"""How calls with points in time are typed: their parts, arithmetic on them, and what they are counted in."""

from __future__ import annotations

from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import LanguageError
from headrace.expressions import intervals
from headrace.expressions.coercion import literal, make_cast
from headrace.expressions.functions.typing_rules import arithmetic, of_types, truncation, whole
from headrace.expressions.time_zones import fixed_distance
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.schema import BIGINT, DATE, DOUBLE, INTERVAL, STRING, TIMESTAMP
from headrace.suggestions import did_you_mean


def date_part(name: str, arguments: Arguments) -> Expression:
    """A part of a DATE or TIMESTAMP."""
    return Call(name, of_types(name, arguments, (TIMESTAMP, DATE), "a TIMESTAMP or DATE"), BIGINT)


def time_part(name: str, arguments: Arguments) -> Expression:
    """A part of a TIMESTAMP's time of day."""
    return Call(name, (instant(name, arguments[0]),), BIGINT)


def date_trunc(name: str, arguments: Arguments) -> Expression:
    """DATE_TRUNC(unit, TIMESTAMP)."""
    unit = arguments[0]
    known = unit.value.upper() if isinstance(unit, Literal) and isinstance(unit.value, str) else ""
    if known not in TRUNCATIONS:
        raise LanguageError(
            "the first argument of DATE_TRUNC must be a unit", hint="one of " + ", ".join(TRUNCATIONS)
        )
    return Call(name, (literal(known), instant(name, arguments[1])), TIMESTAMP)


def truncate(name: str, arguments: Arguments) -> Expression:
    """TRUNC(DATE, unit), a DATE, and TRUNC(number [, digits])."""
    if arguments[0].type not in (DATE, TIMESTAMP):
        return truncation(name, arguments)
    unit = arguments[1] if len(arguments) > 1 else None
    written = unit.value.upper() if isinstance(unit, Literal) and isinstance(unit.value, str) else ""
    if written not in _UNITS_OF_TRUNC:
        raise LanguageError(
            "the second argument of TRUNC of a DATE is YEAR, QUARTER, MONTH or WEEK",
            hint="for shorter units write DATE_TRUNC('HOUR', ts)",
        )
    day = make_cast(arguments[0], DATE)
    return make_cast(date_trunc("DATE_TRUNC", (literal(_UNITS_OF_TRUNC[written]), day)), DATE)


_UNITS_OF_TRUNC: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "WEEK": "WEEK",
}
"""The units of Spark's TRUNC, and those of DATE_TRUNC."""


TRUNCATIONS: Final = (
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
)
"""The units that DATE_TRUNC takes."""


def unix_micros(name: str, arguments: Arguments) -> Expression:
    """UNIX_MICROS: the microseconds since 1970-01-01 UTC."""
    return Call(name, of_types(name, arguments, (TIMESTAMP,), "a TIMESTAMP"), BIGINT)


def timestamp_micros(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMP_MICROS: the instant so many microseconds after 1970-01-01 UTC."""
    return Call(name, of_types(name, arguments, (BIGINT,), "a BIGINT"), TIMESTAMP)


def instant(name: str, argument: Expression) -> Expression:
    """The argument as a TIMESTAMP, if it is one or a DATE."""
    return make_cast(of_types(name, (argument,), (TIMESTAMP, DATE), "a TIMESTAMP or DATE")[0], TIMESTAMP)


def week_part(name: str, arguments: Arguments) -> Expression:
    """A part of a DATE's week or year."""
    return Call(name, (_date(name, arguments[0]),), BIGINT)


def last_day(name: str, arguments: Arguments) -> Expression:
    """LAST_DAY: the last day of a DATE's month."""
    return Call(name, (_date(name, arguments[0]),), DATE)


def moved_date(name: str, arguments: Arguments) -> Expression:
    """DATE_ADD(date, days), ADD_MONTHS(date, months), or DATE_ADD(unit, number, timestamp)."""
    if len(arguments) == 3:
        return timestamp_add("TIMESTAMPADD", arguments)
    return Call(name, (_date(name, arguments[0]), whole(name, arguments[1])), DATE)


def date_sub(name: str, arguments: Arguments) -> Expression:
    """DATE_SUB(date, days)."""
    back = intervals.negated(intervals.make_interval(whole(name, arguments[1]), "DAY"))
    return intervals.arithmetic("+", (_date(name, arguments[0]), back))


def date_diff(name: str, arguments: Arguments) -> Expression:
    """DATEDIFF(end, start) in days, or DATEDIFF(unit, start, end)."""
    if len(arguments) == 3:
        return timestamp_diff("TIMESTAMPDIFF", arguments)
    return Call(name, tuple(_date(name, part) for part in arguments), BIGINT)


def timestamp_add(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMPADD(unit, number, timestamp)."""
    unit, count, moment = arguments
    return Call(name, (_unit(name, unit), whole(name, count), instant(name, moment)), TIMESTAMP)


def timestamp_diff(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMPDIFF(unit, start, end): the whole units between two points in time."""
    unit, start, end = arguments
    return Call(name, (_unit(name, unit), instant(name, start), instant(name, end)), BIGINT)


def _unit(name: str, unit: Expression) -> Literal:
    written = unit.value.upper() if isinstance(unit, Literal) and isinstance(unit.value, str) else ""
    known = written.removesuffix("S")
    if known not in intervals.UNITS:
        raise LanguageError(
            f"the first argument of {name} must be a unit", hint="one of " + ", ".join(intervals.UNITS)
        )
    return Literal(known, STRING)


PARTS: Final = {
    **{
        part: part for part in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "DAYOFWEEK", "DAYOFYEAR")
    },
    "WEEK": "WEEKOFYEAR",
    "DAYOFMONTH": "DAY",
    "DOW": "DAYOFWEEK",
    "DOY": "DAYOFYEAR",
}
"""The function that gives each part that EXTRACT takes, but for SECOND, EPOCH and those of INTERVALs."""


def extract(name: str, arguments: Arguments) -> Expression:
    """EXTRACT(part FROM x), and DATE_PART('part', x).

    SECOND has a fraction, as in Spark. EPOCH is the number of seconds since 1970, or of an INTERVAL.
    """
    part, moment = arguments
    known = (
        part.value.upper().removesuffix("S")
        if isinstance(part, Literal) and isinstance(part.value, str)
        else ""
    )
    if known == "EPOCH" and moment.type == INTERVAL:
        return _seconds(intervals.microseconds(moment), 20)
    if known == "EPOCH":
        return _seconds(Call("UNIX_MICROS", (instant(name, moment),), BIGINT), 20)
    if known == "SECOND":
        at = instant(name, moment)
        minute = Call("DATE_TRUNC", (literal("MINUTE"), at), TIMESTAMP)
        return _seconds(Call("TIMESTAMPDIFF", (literal("MICROSECOND"), minute, at), BIGINT), 8)
    if known not in PARTS:
        names = (*PARTS, "SECOND", "EPOCH")
        hint = did_you_mean(known, names) or "one of " + ", ".join(sorted(names))
        raise LanguageError(f"{name} has no such part", hint=hint)
    function = PARTS[known]
    if function in ("HOUR", "MINUTE"):
        return time_part(function, (moment,))
    return (week_part if function in _OF_WEEKS else date_part)(function, (moment,))


_OF_WEEKS: Final = ("QUARTER", "WEEKOFYEAR", "DAYOFWEEK", "DAYOFYEAR")


def _seconds(microseconds: Expression, digits: int) -> Expression:
    """A number of microseconds as seconds, of so many digits with the six after the point."""
    count = make_cast(microseconds, pa.decimal128(digits, 0))
    return make_cast(arithmetic("*", (count, literal(Decimal("0.000001")))), pa.decimal128(digits, 6))


def unix_time(name: str, arguments: Arguments) -> Expression:
    """UNIX_SECONDS and UNIX_MILLIS: the whole units since 1970-01-01 UTC."""
    return Call(name, (instant(name, arguments[0]),), BIGINT)


def unix_date(name: str, arguments: Arguments) -> Expression:
    """UNIX_DATE: the days since 1970-01-01."""
    return Call("DATEDIFF", (_date(name, arguments[0]), make_cast(literal("1970-01-01"), DATE)), BIGINT)


def from_unix(name: str, arguments: Arguments) -> Expression:
    """TIMESTAMP_SECONDS and TIMESTAMP_MILLIS: the instant so many units after 1970-01-01 UTC."""
    (count,) = arguments
    unit = 10**6 if name == "TIMESTAMP_SECONDS" else 10**3
    if count.type == BIGINT or name == "TIMESTAMP_MILLIS":
        return Call(name, (whole(name, count),), TIMESTAMP)
    exact = arithmetic("*", (count, literal(float(unit) if count.type == DOUBLE else unit)))
    return Call("TIMESTAMP_MICROS", (make_cast(exact, BIGINT),), TIMESTAMP)


def make_date(name: str, arguments: Arguments) -> Expression:
    """MAKE_DATE(year, month, day)."""
    return Call(name, tuple(whole(name, part) for part in arguments), DATE)


def in_zone(name: str, arguments: Arguments) -> Expression:
    """FROM_UTC_TIMESTAMP: what clocks of a time zone show at an instant; TO_UTC_TIMESTAMP: the way back."""
    moment, zone = arguments
    if not (isinstance(zone, Literal) and (zone.value is None or isinstance(zone.value, str))):
        raise LanguageError(
            f"the time zone of {name} must be a string constant", hint="write 'Europe/Berlin'"
        )
    if isinstance(zone.value, str):
        check_zone(zone.value)
    return Call(name, (instant(name, moment), make_cast(zone, STRING)), TIMESTAMP)


_OF_THIS_MACHINE: Final = ("localtime", "posixrules")
"""Names of zones that mean another one on each machine."""


def check_zone(zone: str) -> None:
    """See that a time zone is known.

    Raises:
        LanguageError: it is not.
    """
    if fixed_distance(zone) is not None:
        return
    try:
        ZoneInfo(zone)
        # Arrow has fewer names: it computes, so it has to know the zone as well.
        pc.local_timestamp(pa.array([0], pa.timestamp("us", zone)))
        known = zone not in _OF_THIS_MACHINE
    except (KeyError, ValueError, OSError):
        known = False
    if not known:
        raise LanguageError(
            f"there is no time zone '{zone}'",
            hint="write its region and city, such as 'Europe/Berlin', 'UTC' or '+01:00'",
        )


def _date(name: str, argument: Expression) -> Expression:
    """The argument as a DATE, if it is one or a TIMESTAMP."""
    return make_cast(of_types(name, (argument,), (DATE, TIMESTAMP), "a DATE or TIMESTAMP")[0], DATE)
