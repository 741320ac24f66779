"""Lengths of time in clauses: those that do not fit the time of a stream are refused."""

from __future__ import annotations

from typing import Final

from headrace.errors import LanguageError, Position
from headrace.time import INFINITY, MAX_INSTANT, Duration, TimeDomain


def check_behind(duration: Duration, domain: TimeDomain, what: str, position: Position | None = None) -> None:
    """Refuse what cannot say how far rows are behind others: what `check_duration` does, and too much.

    Raises:
        LanguageError: the duration does not fit the domain, or no row could be later than that.
    """
    check_duration(duration, domain, what, position)
    if duration.length > _FURTHEST_BEHIND:
        longest = _FURTHEST_BEHIND if duration.unit is None else "53375995 DAYS"
        raise LanguageError(
            f"{what} {duration} is too long", position=position, hint=f"write {longest}, the most, or less"
        )


_FURTHEST_BEHIND: Final = MAX_INSTANT - 1
"""The furthest a row may be behind, so that the length up to the first row that is late is one as well."""


def check_duration(
    duration: Duration, domain: TimeDomain, what: str, position: Position | None = None
) -> None:
    """Refuse a unit on integer timestamps, and a bare number on TIMESTAMPs.

    Raises:
        LanguageError: the duration does not fit the domain.
    """
    if duration.length in (0, INFINITY):
        return
    if domain is TimeDomain.TIMESTAMP and duration.unit is None:
        raise LanguageError(
            f"{what} {duration} needs a unit, since the stream is timed by a TIMESTAMP",
            position=position,
            hint=f"write {what} {duration} SECONDS",
        )
    if domain is TimeDomain.INTEGER and duration.unit is not None:
        raise LanguageError(
            f"{what} {duration} has a unit, but the stream is timed by an integer",
            position=position,
            hint=f"write the number alone, such as {what} {duration.length // 1_000_000 or 1}",
        )
