"""What functions of points in time mean for one row, by Python's own calendar and time zones."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from headrace.reference.casts import RowError

_WRITTEN: Final = {
    "yyyy": "{0.year:04}", "y": "{0.year}", "yy": "{0:%y}", "M": "{0.month}", "MM": "{0:%m}", "MMM": "{0:%b}",
    "MMMM": "{0:%B}", "d": "{0.day}", "dd": "{0:%d}", "E": "{0:%a}", "EE": "{0:%a}", "EEE": "{0:%a}",
    "EEEE": "{0:%A}", "H": "{0.hour}", "HH": "{0:%H}", "hh": "{0:%I}", "m": "{0.minute}", "mm": "{0:%M}",
    "s": "{0.second}", "ss": "{0:%S}", "SSSSSS": "{0:%f}", "a": "{0:%p}",
}  # fmt: skip
"""How Python writes the parts of a point in time."""


def _date_format(moment: datetime, pattern: str) -> str:
    text = ""
    for quoted, letters, _, plain in re.findall(r"('(?:[^']|'')*')|(([A-Za-z])\3*)|(.)", pattern, re.DOTALL):
        if quoted:
            text += "'" if quoted == "''" else quoted[1:-1].replace("''", "'")
        elif letters == "h":
            text += _WRITTEN["hh"].format(moment).lstrip("0")
        elif letters.startswith("S"):
            text += _WRITTEN["SSSSSS"].format(moment)[: len(letters)]
        else:
            text += _WRITTEN[letters].format(moment) if letters else plain
    return text


_UNITS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 10**3,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _date_trunc(unit: str, moment: datetime) -> datetime:
    if unit in _UNITS:
        return _EPOCH + timedelta(microseconds=instant_of(moment) // _UNITS[unit] * _UNITS[unit])
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "WEEK":
            return day - timedelta(days=day.weekday())
        case "MONTH":
            return day.replace(day=1)
        case "QUARTER":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case _:
            return day.replace(day=1, month=1)


def instant_of(moment: datetime) -> int:
    """The microseconds since the epoch."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


_OUTSIDE: Final = "a point in time outside the years 1 to 9999"


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results end with the year 9999, and so fail beyond it."""

    def guarded(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (OverflowError, ValueError):
            raise RowError(_OUTSIDE) from None

    return guarded


def _months_later(moment: Any, months: int) -> Any:
    """The same day of a later month, or its last one where it has fewer."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    for day in range(moment.day, moment.day - 4, -1):
        try:
            return moment.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    raise OverflowError


_OF_CALENDAR: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _add(unit: str, count: int, moment: datetime) -> datetime:
    if unit in _OF_CALENDAR:
        return _months_later(moment, count * _OF_CALENDAR[unit])  # type: ignore[no-any-return]
    length = 7 * _UNITS["DAY"] if unit == "WEEK" else _UNITS[unit]
    return moment + timedelta(microseconds=count * length)


def _difference(unit: str, start: datetime, end: datetime) -> int:
    """The whole units from the start to the end, negative if that comes first."""
    if unit not in _OF_CALENDAR:
        length = 7 * _UNITS["DAY"] if unit == "WEEK" else _UNITS[unit]
        whole = abs(instant_of(end) - instant_of(start)) // length
        return whole if end >= start else -whole
    forward = 1 if end >= start else -1
    # As in java.time: a day that is not whole does not count, and then the days of the months are compared.
    first, last = start.date(), end.date()
    if last != first and (end.time() < start.time()) == (forward > 0) and end.time() != start.time():
        last -= timedelta(days=forward)
    months = abs((last.year - first.year) * 12 + last.month - first.month)
    if months and (last.day < first.day if forward > 0 else last.day > first.day):
        months -= 1
    return forward * (months // _OF_CALENDAR[unit])


def _make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise RowError("there is no such DATE") from None


_NAMED: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DIGITS: Final = {
    "y": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "h": "half",
    "m": "minute",
    "s": "second",
}


def _read(text: str, pattern: str) -> datetime:
    """A text that is written by a pattern, read from left to right."""
    found: dict[str, Any] = {}
    for quoted, letters, _, plain in re.findall(r"('(?:[^']|'')*')|(([A-Za-z])\3*)|(.)", pattern, re.DOTALL):
        literal = plain or ("'" if quoted == "''" else quoted[1:-1].replace("''", "'"))
        text = _after(text, re.escape(literal))[1] if not letters else _part(text, letters, found)
    if text:
        raise RowError(_UNREADABLE)
    hour = found.get("hour", 0)
    if "half" in found:
        if not 1 <= found["half"] <= 12:
            raise RowError(_UNREADABLE)
        hour = found["half"] % 12 + (12 if found.get("noon") == "PM" else 0)
    try:
        moment = datetime(
            found.get("year", 1970), found.get("month", 1), found.get("day", 1), hour,
            found.get("minute", 0), found.get("second", 0), found.get("micros", 0), UTC,
        )  # fmt: skip
    except ValueError:
        raise RowError(_UNREADABLE) from None
    return moment - timedelta(minutes=found.get("offset", 0))


_UNREADABLE: Final = "the text does not fit the pattern of TO_TIMESTAMP"


def _after(text: str, regex: str) -> tuple[str, str]:
    """What is at the beginning of a text, and the rest."""
    match = re.match(regex, text, re.ASCII)
    if match is None:
        raise RowError(_UNREADABLE)
    return match[0], text[match.end() :]


def _part(text: str, letters: str, found: dict[str, Any]) -> str:
    """Note what a part says, and give the rest of the text."""
    letter, count = letters[0], len(letters)
    if letter in "XZ":
        written, rest = _after(text, r"Z|[+-]\d\d:\d\d" if letter == "X" else r"[+-]\d\d\d\d")
        sign, digits = (-1 if written[0] == "-" else 1), written[1:].replace(":", "") or "0000"
        if int(digits[2:]) > 59 or int(digits) > 1800:
            raise RowError(_UNREADABLE)
        found["offset"] = sign * (int(digits[:2]) * 60 + int(digits[2:]))
    elif letter == "a":
        found["noon"], rest = _after(text, "AM|PM")
    elif letters == "MMM":
        name, rest = _after(text, "|".join(_NAMED))
        found["month"] = _NAMED.index(name) + 1
    elif letter == "S":
        digits, rest = _after(text, rf"\d{{1,{count}}}")
        found["micros"] = int(digits.ljust(6, "0"))
    else:
        most = 4 if letters == "y" else 2
        digits, rest = _after(text, rf"\d{{1,{most}}}" if count == 1 else rf"\d{{{count}}}")
        found[_DIGITS[letter]] = int(digits) + (2000 if letters == "yy" else 0)
    return rest


def _clocks(zone: str) -> tzinfo:
    """A zone by its name, or one that is so many hours and minutes ahead of UTC."""
    distance = zone.removeprefix("UTC").removeprefix("GMT").removeprefix("UT")
    if distance[:1] not in ("+", "-"):
        return ZoneInfo(zone)
    hours, _, minutes = distance[1:].partition(":")
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(ahead if distance[0] == "+" else -ahead)


def _to_utc(moment: datetime, zone: str) -> datetime:
    return moment.replace(tzinfo=_clocks(zone), fold=0).astimezone(UTC)


def _from_utc(moment: datetime, zone: str) -> datetime:
    return moment.astimezone(_clocks(zone)).replace(tzinfo=UTC, fold=0)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "DATE_FORMAT": _date_format,
    "YEAR": lambda moment: moment.year,
    "MONTH": lambda moment: moment.month,
    "DAY": lambda moment: moment.day,
    "HOUR": lambda moment: moment.hour,
    "MINUTE": lambda moment: moment.minute,
    "SECOND": lambda moment: moment.second,
    "DATE_TRUNC": _date_trunc,
    "UNIX_MICROS": instant_of,
    "TIMESTAMP_MICROS": _guarded(lambda count: _EPOCH + timedelta(microseconds=count)),
    "QUARTER": lambda day: (day.month + 2) // 3,
    "WEEKOFYEAR": lambda day: day.isocalendar().week,
    "WEEKDAY": lambda day: day.weekday(),
    "DAYOFWEEK": lambda day: day.isoweekday() % 7 + 1,
    "DAYOFYEAR": lambda day: day.timetuple().tm_yday,
    "LAST_DAY": lambda day: day.replace(day=monthrange(day.year, day.month)[1]),
    "DATE_ADD": _guarded(lambda day, count: day + timedelta(days=count)),
    "ADD_MONTHS": _guarded(_months_later),
    "DATEDIFF": lambda end, start: (end - start).days,
    "TIMESTAMPADD": _guarded(_add),
    "TIMESTAMPDIFF": _difference,
    "MAKE_DATE": _make_date,
    "TO_TIMESTAMP": _read,
    "UNIX_SECONDS": lambda moment: instant_of(moment) // 10**6,
    "UNIX_MILLIS": lambda moment: instant_of(moment) // 10**3,
    "TIMESTAMP_SECONDS": _guarded(lambda count: _EPOCH + timedelta(seconds=count)),
    "TIMESTAMP_MILLIS": _guarded(lambda count: _EPOCH + timedelta(milliseconds=count)),
    "FROM_UTC_TIMESTAMP": _guarded(_from_utc),
    "TO_UTC_TIMESTAMP": _guarded(_to_utc),
}
"""The functions, by name; none of their arguments is NULL."""
