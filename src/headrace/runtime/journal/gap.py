"""Instants about which an answer says nothing, or not all, since its query was paused or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant


@dataclass(frozen=True)
class Gap:
    """Instants about which an answer says nothing: it looks empty there, and is not known to be.

    After them its windows may lack rows from before for some time.

    Attributes:
        begin: the first of them (instant); BEGINNING where nothing is said before.
        end: the first one after them (instant), `begin` if there are none; None while the query is paused.
        exact: the first instant from which on the answer is that of a query that was never paused; INFINITY
            where none is known, None where it is `end`.
    """

    begin: int
    end: int | None
    exact: int | None = None

    @property
    def exact_from(self) -> int | None:
        """From which instant on nothing is missing; INFINITY where none is known, None while it is paused."""
        return self.end if self.exact is None else self.exact

    def text(self, domain: TimeDomain) -> str:
        """It for people, such as `nothing from 18 to before 28, and not all before 40`."""
        begin = "" if self.begin == BEGINNING else f"from {format_instant(self.begin, domain)} "
        if self.end is None:
            return f"nothing {begin}on" if begin else "nothing at all"
        said = (
            [] if self.end <= self.begin else [f"nothing {begin}to before {format_instant(self.end, domain)}"]
        )
        if self.exact is not None:
            since = "" if said else begin
            until = "on" if self.exact == INFINITY else f"to before {format_instant(self.exact, domain)}"
            said.append(f"not all {since or 'from there '}{until}")
        return ", and ".join(said)


def with_gap(gaps: Sequence[Gap], new: Gap) -> tuple[Gap, ...]:
    """Gaps in order, with one more that begins after the others began; what overlaps becomes one.

    Args:
        gaps: all of them, each with an end.
        new: the other one; left out if it has no instants, and lacks nothing afterwards.
    """
    if new.exact is not None and new.end is not None and new.exact <= max(new.begin, new.end):
        new = Gap(new.begin, new.end)
    if new.end is not None and new.end <= new.begin and new.exact is None:
        return tuple(gaps)
    if gaps and gaps[-1].end is not None and gaps[-1].end >= new.begin:
        last = gaps[-1]
        end = None if new.end is None else max(new.end, last.end or new.end)
        exact = max((one.exact for one in (last, new) if one.exact is not None), default=None)
        if end is None or (exact is not None and exact <= end):
            exact = None
        return (*gaps[:-1], Gap(min(last.begin, new.begin), end, exact))
    return (*gaps, new)
