"""Instants about which an answer says nothing, since its query was paused or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.time import BEGINNING, TimeDomain, format_instant


@dataclass(frozen=True)
class Gap:
    """Instants about which an answer says nothing: it looks empty there, and is not known to be.

    Attributes:
        begin: the first of them (instant); BEGINNING where nothing is said before.
        end: the first one after them (instant); None while the query is paused.
    """

    begin: int
    end: int | None

    def text(self, domain: TimeDomain) -> str:
        """It for people, such as `from 18 to before 28`."""
        begin = "" if self.begin == BEGINNING else f"from {format_instant(self.begin, domain)} "
        if self.end is None:
            return f"{begin}on" if begin else "at all"
        return f"{begin}to before {format_instant(self.end, domain)}"


def with_gap(gaps: Sequence[Gap], new: Gap) -> tuple[Gap, ...]:
    """Gaps in order, with one more that begins after the others began; what overlaps becomes one.

    Args:
        gaps: all of them, each with an end.
        new: the other one; left out if it has no instants.
    """
    if new.end is not None and new.end <= new.begin:
        return tuple(gaps)
    if gaps and gaps[-1].end is not None and gaps[-1].end >= new.begin:
        end = None if new.end is None else max(new.end, gaps[-1].end)
        return (*gaps[:-1], Gap(min(gaps[-1].begin, new.begin), end))
    return (*gaps, new)
