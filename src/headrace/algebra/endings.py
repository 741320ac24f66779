"""The ends of windows and sessions: how far time must go for the last answers about rows that have come.

A window that slides and a session answer for their rows only once they have ended, a granule at its next
multiple. A window without SLIDE has no end: it answers at each instant, so that an instant after the newest
row is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from headrace.algebra.nodes import (
    GapFill,
    Granularity,
    Lifetime,
    Plan,
    SessionAggregate,
    SessionWindow,
    TimeWindow,
    inputs_of,
)
from headrace.algebra.properties import granule_start, lifetime_start, sources_of
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT


@dataclass(frozen=True)
class SlideEnd:
    """The end of the last window with a row in it; see `TimeWindow`.

    Attributes:
        size: of the windows (instants).
        slide: how often they move (instants), more than 1.
        offset: from a multiple of the slide to where one ends.
    """

    size: int
    slide: int
    offset: int

    def answered(self, instant: int) -> int:
        """The last instant of the last window that has an instant in it, or that instant if none has."""
        size = self.slide if self.size == INFINITY else self.size
        return max(instant, (instant - self.offset + size) // self.slide * self.slide + self.offset - 1)

    def needed(self, passed: int) -> int:
        """The smallest heartbeat of the input with which that of the output is beyond an instant."""
        return (passed + 1 - self.offset) // self.slide * self.slide + self.offset


@dataclass(frozen=True)
class SessionEnd:
    """The end of the session of a row, where no further row prolongs it.

    Attributes:
        gap: how long after its last row it ends (instants).
    """

    gap: int

    def answered(self, instant: int) -> int:
        """The last instant of the session whose last row is of an instant."""
        return instant + self.gap - 1

    def needed(self, passed: int) -> int:
        """The smallest heartbeat of the input with which that of the output is beyond an instant."""
        return passed + 1


@dataclass(frozen=True)
class GranuleEnd:
    """The next multiple of a granule, at which an answer is said.

    Attributes:
        granule: its length (instants), more than 1; within bounds that of the coarsest.
        finest: that of the finest, which divides it.
    """

    granule: int
    finest: int

    def answered(self, instant: int) -> int:
        """The first multiple at or after an instant."""
        return granule_start(instant, self.granule)

    def needed(self, passed: int) -> int:
        """The smallest heartbeat of the input with which that of the output is beyond an instant."""
        return passed // self.finest * self.finest + 1


@dataclass(frozen=True)
class LifetimeStart:
    """The instant at which the rows of a granule begin to be valid; see `Lifetime`.

    Attributes:
        granule: its length (instants).
        shift: how much later than the granule's beginning the rows begin, or earlier (instants).
    """

    granule: int
    shift: int

    def answered(self, instant: int) -> int:
        """When a row of an instant begins."""
        return lifetime_start(instant, self.granule, self.shift)

    def needed(self, passed: int) -> int:
        """The smallest heartbeat of the input with which that of the output is beyond an instant."""
        return ((passed - self.shift) // self.granule + 1) * self.granule


@dataclass(frozen=True)
class StepEnd:
    """The end of the step at which a row of a series counts; see `GapFill`.

    Attributes:
        step: its length (instants).
        ahead: how far ahead the answers at it look (instants).
    """

    step: int
    ahead: int

    def answered(self, instant: int) -> int:
        """The first multiple of the step at or after an instant."""
        return granule_start(instant, self.step)

    def needed(self, passed: int) -> int:
        """The smallest heartbeat of the input with which that of the output is beyond an instant."""
        return (passed + self.ahead) // self.step * self.step + 1


Ending: TypeAlias = SlideEnd | SessionEnd | GranuleEnd | LifetimeStart | StepEnd
"""One that rows wait for."""

Way: TypeAlias = tuple[str, tuple[Ending, ...]]
"""A stream, and what its rows wait for one after the other on the way to an answer."""


@dataclass(frozen=True)
class Endings:
    """The ends that the rows of some streams wait for, on all ways to an answer.

    Attributes:
        ways: at least one of each stream.
    """

    ways: frozenset[Way]

    @classmethod
    def of(cls, plan: Plan) -> Endings:
        """Those of a query's answer."""
        return cls(frozenset(_ways(plan, {})))

    @cached_property
    def wait(self) -> bool:
        """Whether rows wait for more than the instant after them."""
        return any(endings for _, endings in self.ways)

    def heartbeats(self, newest: Mapping[str, int]) -> dict[str, int]:
        """The smallest heartbeats with which the last windows that hold rows have ended.

        Args:
            newest: by stream, the largest timestamp that came (instant), BEGINNING before the first; all
                streams of the answer, and others that it is to be final with, such as refreshed relations.

        Returns:
            For the same streams (instants); nothing if no row came.
        """
        passed = max((_answered(newest[name], ends) for name, ends in self.ways), default=BEGINNING)
        if passed == BEGINNING:
            return {}
        found = dict.fromkeys(newest.keys() - {name for name, _ in self.ways}, passed + 1)
        for name, ends in self.ways:
            found[name] = max(found.get(name, BEGINNING), _needed(passed, ends))
        return {name: min(max(needed, MIN_INSTANT), MAX_INSTANT) for name, needed in found.items()}


def _answered(instant: int, ends: tuple[Ending, ...]) -> int:
    """The last instant of an answer that a row of an instant is new in."""
    if instant == BEGINNING:
        return BEGINNING
    for ending in ends:
        instant = ending.answered(instant)
    return instant


def _needed(passed: int, ends: tuple[Ending, ...]) -> int:
    for ending in reversed(ends):
        passed = ending.needed(passed) - 1
    return passed + 1


def _ways(plan: Plan, known: dict[int, frozenset[Way]]) -> frozenset[Way]:
    if id(plan) not in known:
        below = [_ways(one, known) for one in inputs_of(plan)]
        ways = frozenset[Way]().union(*below)
        if not below:
            ways = frozenset((source.name, ()) for source in sources_of(plan))
        ending = _ending(plan)
        if ending is not None:
            ways = frozenset((name, (*ends, ending)) for name, ends in ways)
        known[id(plan)] = ways
    return known[id(plan)]


def _ending(plan: Plan) -> Ending | None:
    """The end that rows wait for in one node; None where they wait for none."""
    match plan:
        case TimeWindow(size=size, slide=slide, offset=offset) if slide.length > 1:
            return SlideEnd(size.length, slide.length, offset.length)
        case SessionWindow(gap=gap) | SessionAggregate(gap=gap):
            return SessionEnd(gap.length)
        case Granularity(granule=granule, longest=longest) if longest.length > 1:
            return GranuleEnd(longest.length, granule.length)
        case GapFill(step=step, ahead=ahead) if step.length > 1 or ahead:
            return StepEnd(step.length, ahead)
        case Lifetime(granule=granule, shift=shift) if granule.length > 1 or shift:
            return LifetimeStart(granule.length, shift)
        case _:
            return None
