"""Instants, durations and clocks of application time.

An instant is an int64. For a stream timed by a TIMESTAMP it counts microseconds since 1970-01-01 UTC, for
one timed by an integer it is that integer. `INFINITY` is the end of an interval that has none.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from typing import Final, Protocol

from headrace.errors import UserError

INFINITY: Final = 2**63 - 1
"""The end of an interval that is open for ever, and the heartbeat of a stream that has ended."""

BEGINNING: Final = -(2**63)
"""The heartbeat of a stream that has promised nothing yet."""

MIN_INSTANT: Final = -(2**62)
"""The smallest timestamp a source may give; a smaller one is out of range."""

ALWAYS: Final = MIN_INSTANT - 1
"""The start of rows that have always been there: before every timestamp a source may give."""

MAX_INSTANT: Final = 2**62 - 1
"""The largest timestamp a source may give; a larger one is out of range."""

MICROSECONDS: Final[dict[str, int]] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""The length of each unit in microseconds; months and years have no fixed length and are refused."""

UNITS: Final = tuple(word for unit in MICROSECONDS for word in (f"{unit}S", unit))
"""The units of fixed lengths, as they are written out."""

CALENDAR: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
"""The months of the units that differ in length."""


_SHORT: Final = {
    "US": "MICROSECOND", "USEC": "MICROSECOND", "MS": "MILLISECOND", "MSEC": "MILLISECOND",
    "S": "SECOND", "SEC": "SECOND", "MIN": "MINUTE", "H": "HOUR", "HR": "HOUR", "D": "DAY", "W": "WEEK",
    "WK": "WEEK",
}  # fmt: skip
"""Units as they are shortened; M is not among them, since it may be minutes or months."""

_INEXACT: Final = {"MONTH": 30, "MON": 30, "QUARTER": 91, "YEAR": 365, "YR": 365}
"""Units of no fixed length, and about how many days they have."""


class TimeDomain(Enum):
    """What an instant counts."""

    TIMESTAMP = "timestamp"
    """Microseconds since 1970-01-01 UTC."""
    INTEGER = "integer"
    """Whatever the integer timestamp column counts."""


@dataclass(frozen=True)
class Duration:
    """A length of application time; `60 SECONDS` equals `1 MINUTE`.

    Attributes:
        length: in microseconds when `unit` is given, else in units of the integer timestamps; INFINITY for
            UNBOUNDED.
        unit: the unit as it was written, in singular and upper case, or None for a bare number.
    """

    length: int
    unit: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.length == INFINITY:
            return "UNBOUNDED"
        if self.unit is None:
            return str(self.length)
        count = self.length // MICROSECONDS[self.unit]
        return f"{count} {self.unit}" + ("" if count == 1 else "S")


def parse_duration(text: str) -> Duration:
    """Read `10`, `5 seconds`, `1 MINUTE`, `5s`: a whole number and, for TIMESTAMPs, a unit.

    Raises:
        UserError: the text is not a valid duration.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+)?\s*", text)
    if match is None:
        found = _summed(text)
        hint = "write a number and a unit, such as 5 SECONDS" if found is None else f"write {found}"
        raise UserError(f"'{text}' is not a valid duration", hint=hint)
    return make_duration(int(match[1]), match[2])


def make_duration(count: int, unit: str | None) -> Duration:
    """A duration of `count` units; a missing unit means the units of an integer timestamp.

    Raises:
        UserError: the unit is unknown or the duration is too long to add to an instant.
    """
    if unit is None:
        length = count
        name = None
    else:
        found = unit_of(unit)
        if found is None:
            raise UserError(f"unknown unit of time {unit}", hint=_instead(count, unit))
        name = found
        length = count * MICROSECONDS[name]
    if length > MAX_INSTANT:
        raise too_long(f"{count} {unit}" if unit else str(count))
    return Duration(length, name)


def too_long(written: str) -> UserError:
    """What is said of a duration that is too long to add to an instant."""
    hint = f"the longest are {MAX_INSTANT}, and 53375995 DAYS; a window may be RANGE UNBOUNDED"
    return UserError(f"the duration {written} is too long", hint=hint)


def unit_of(written: str) -> str | None:
    """The unit that a word means, in singular and upper case: `SECOND` for `s`, `secs` and `SECONDS`."""
    upper = written.upper()
    singular = upper.removesuffix("S")
    return _SHORT.get(upper) or _SHORT.get(singular) or (singular if singular in MICROSECONDS else None)


def _instead(count: int, unit: str) -> str:
    """What to write instead of an unknown unit."""
    singular = unit.upper().removesuffix("S")
    if days := _INEXACT.get(singular):
        return f"months and years have no fixed length; write {count * days} DAYS"
    if singular == "M":
        return f"write {count} MINUTES, since M may be minutes or months"
    near = get_close_matches(singular, MICROSECONDS, n=1)
    if not near:
        return f"the units are {', '.join(f'{key}S' for key in MICROSECONDS)}"
    return f"write {Duration(count * MICROSECONDS[near[0]], near[0])}"


_PARTS: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_CLOCK: Final = re.compile(r"(\d+):(\d\d)(?::(\d\d))?")
_ISO: Final = re.compile(r"P(?:(?P<D>\d+)D)?(?:T(?:(?P<H>\d+)H)?(?:(?P<MIN>\d+)M)?(?:(?P<S>\d+)S)?)?")


def _summed(text: str) -> str | None:
    """The one number and unit that `1h30m`, `1.5 hours`, `01:30:00`, `PT90M` mean; None for other texts."""
    text = text.strip()
    if clock := _CLOCK.fullmatch(text):
        parts = list(zip(clock.groups("0"), ("HOUR", "MINUTE", "SECOND"), strict=True))
    elif (iso := _ISO.fullmatch(text)) and any(iso.groups()):
        parts = [(count, unit) for unit, count in iso.groupdict().items() if count is not None]
    elif re.fullmatch(rf"(?:{_PARTS.pattern})+", text):
        minutes = {"M": "MIN"} if re.search(r"[hs]", text, re.IGNORECASE) else {}
        parts = [(count, minutes.get(unit.upper(), unit)) for count, unit in _PARTS.findall(text)]
    else:
        return None
    units = [unit_of(unit) for _, unit in parts]
    pairs = zip(parts, units, strict=True)
    length = sum((Fraction(count) * MICROSECONDS[unit] for (count, _), unit in pairs if unit), Fraction(0))
    if None in units or length.denominator != 1 or not 0 < length <= MAX_INSTANT:
        return None
    return format_length(int(length), TimeDomain.TIMESTAMP)


def duration_of(length: timedelta) -> Duration:
    """A duration of TIMESTAMPs, of that many microseconds."""
    return Duration(length // timedelta(microseconds=1), "MICROSECOND")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_instant(instant: int, domain: TimeDomain) -> str:
    """The text of an instant: ISO 8601 UTC for TIMESTAMPs, digits for integers, empty for INFINITY."""
    if instant == INFINITY:
        return ""
    if domain is TimeDomain.INTEGER:
        return str(instant)
    try:
        moment = _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return str(instant)
    text = moment.replace(microsecond=0, tzinfo=None).isoformat()
    return f"{text}.{moment.microsecond:06d}Z" if moment.microsecond else f"{text}Z"


def in_words(text: str) -> str:
    """The text of an instant as people say it: the last one before a second by that second.

    Windows end a microsecond before a round instant, which is the first one of the next window:
    `2024-05-01T09:59:59.999999Z` is `just before 2024-05-01T10:00:00Z`.
    """
    if not text.endswith(".999999Z"):
        return text
    try:
        after = datetime.fromisoformat(text) + timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return text
    return f"just before {after.replace(tzinfo=None).isoformat()}Z"


def format_length(length: int, domain: TimeDomain) -> str:
    """A length of time as text, in the largest unit that divides it: `5 SECONDS`; `5` for integers."""
    if domain is TimeDomain.INTEGER:
        return str(length)
    divides = (unit for unit, size in MICROSECONDS.items() if length % size == 0)
    return str(Duration(length, max(divides, key=MICROSECONDS.__getitem__) if length else "SECOND"))


class Clock(Protocol):
    """Wall-clock time, injected so that tests need not wait."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000


@dataclass
class ManualClock:
    """A clock that moves only when set, for tests."""

    instant: int = 0

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return self.instant

    def advance(self, microseconds: int) -> None:
        """Move the clock forward by so many microseconds."""
        self.instant += microseconds
