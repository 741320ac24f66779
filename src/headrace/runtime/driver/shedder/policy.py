"""Which share of the rows of queries that bear loss is to be kept: a pure function.

Aurora's greedy over loss graphs (*Monitoring Streams*, VLDB 2002, 7.2): what is left out next is what costs
its readers least for the processor time that it saves. Aurora asks for graphs that are convex. Here a graph
may have any form that does not fall, and the greedy walks along its convex hull. Rows that are left out by
their values are a share, too: that of those which are worth enough, of which there are few to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from headrace.runtime.driver.facts.capacity import HEADROOM
from headrace.steps import WHOLE

TOO_MUCH: Final = 0.9
"""Rows are left out when more than this part of the capacity is needed."""
TOO_LITTLE: Final = 0.7
"""More rows are kept again when answers would be worth more with no more than this part of the capacity."""
LATE: Final = 0.5
"""Rows are left out when a run is behind by this part of the bound: the rest is for what comes meanwhile."""
EARLY: Final = 0.25
"""More are kept again only when it is behind by less than this part of it."""
LOWERED: Final = 4
"""A change leaves a quarter of a share at least."""
RAISED: Final = 2
"""A change doubles a share at most."""
LEAST: Final = WHOLE // 100
"""No share becomes smaller: with fewer rows bounds say nothing."""
_WORTH: Final = 0.02
"""A share is left as it is where all of its rows need no more than this part of the capacity."""
_POINTS: Final = WHOLE // 100
"""So far apart are the shares at which utility is looked at."""
_EVEN: Final = WHOLE // 1000
"""Shares between these points are rounded to thousandths."""
_MORE: Final = 1e-4
"""Where the graph does not say so, all rows are worth so much more than none."""


@dataclass(frozen=True)
class ShareKnob:
    """A share that may change.

    Attributes:
        share: the one that is in force (millionths).
        cost: the processor time that its rows would need if all were kept (seconds for each second).
        utility: the worth of an answer by the share that is kept (millionths), from 0 to 1; it does not fall.
        queries: so many queries have the share; each has the worth.
        least: the smallest share that keeps what was promised of the answer (millionths).
        drained: whether no row is in windows any more from before its last change.
        reachable: the shares that it may have, falling, the one in force and the smallest among them; any
            where there are none.
    """

    share: int
    cost: float
    utility: Callable[[int], float]
    queries: int = 1
    least: int = LEAST
    drained: bool = True
    reachable: tuple[int, ...] = ()

    def needs(self, share: int) -> float:
        """The processor time that the rows of a share need (seconds for each second)."""
        return self.cost * share / WHOLE

    def worth(self, share: int) -> float:
        """The worth of a share to all of its queries."""
        return self.queries * (self.utility(share) + _MORE * share / WHOLE)

    def floor(self, capacity: float) -> int:
        """The smallest share that it makes sense to keep (millionths)."""
        return self.least if self.cost > _WORTH * capacity else WHOLE

    def points(self, most: int, least: int) -> tuple[int, ...]:
        """The shares at which utility is looked at, from one down to another one (millionths)."""
        between = (*range(most, least, -_POINTS), least)
        return tuple(one for one in self.reachable if least <= one <= most) if self.reachable else between

    def rounded(self, share: float) -> int:
        """The largest share that it may have and that is no larger, but for what rounding adds."""
        if not self.reachable:
            return int((share + 1) // _EVEN * _EVEN)
        return next((one for one in self.reachable if one <= share + 1), self.reachable[-1])

    def number(self, share: int) -> int:
        """The number by which a share is kept (millionths): itself."""
        return share

    @property
    def lowest(self) -> int:
        """The smallest share that a change may leave: a quarter, or the next one below where that is less."""
        quarter = max(self.least, min(self.share, self.share // LOWERED))
        if not self.reachable:
            return quarter
        below = [one for one in self.reachable if one < self.share]
        return next((one for one in reversed(below) if one >= quarter), next(iter(below), self.share))

    @property
    def highest(self) -> int:
        """The largest share that a change may bring: twice as much, or the next one where that is more."""
        if not self.reachable:
            return RAISED * self.share
        above = next((one for one in reversed(self.reachable) if one > self.share), self.share)
        return self.rounded(max(RAISED * self.share, above))


@dataclass(frozen=True)
class Pressure:
    """The load of a run.

    Attributes:
        needed: the processor time that is needed for what comes (seconds for each second).
        behind: for how long rows wait that have come (seconds); None where that is not known.
        bound: for how long they may wait (seconds).
        capacity: the processor time that there is (seconds for each second).
    """

    needed: float
    behind: float | None
    bound: float
    capacity: float = 1.0

    @property
    def is_overload(self) -> bool:
        """Whether more is needed than there is, and rows wait because of that.

        A producer that waits for each answer before it sends more keeps a run busy, and is never behind.
        """
        is_late = self.behind is None or self.behind > LATE * self.bound
        return is_late and self.needed > TOO_MUCH * self.capacity

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits for long."""
        return self.behind is None or self.behind <= EARLY * self.bound


def shares_wanted(pressure: Pressure, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """The shares that are to be kept, in millionths.

    The effect of a change is predicted, so that more can be left out before an earlier change has had its
    effect. More is kept again only when that has drained, so that shares do not go to and fro.

    Args:
        pressure: the load.
        knobs: the shares that may change.
    """
    capacity, present = pressure.capacity, [knob.share for knob in knobs]
    rest = pressure.needed - _needs(knobs, present)
    # Where more has to be kept for what was promised, no load is a reason against it.
    promised = [max(knob.share, knob.least) for knob in knobs]
    if pressure.is_overload:
        goal = _goal(knobs, promised, capacity, HEADROOM * capacity - rest)
        return tuple(max(wanted, knob.lowest) for wanted, knob in zip(goal, knobs, strict=True))
    if not pressure.is_calm:
        return tuple(promised)
    most = [WHOLE if knob.drained else known for knob, known in zip(knobs, promised, strict=True)]
    modest = _goal(knobs, most, capacity, TOO_LITTLE * capacity - rest)
    if _worth(knobs, modest) <= _worth(knobs, promised) + _MORE**2:
        return tuple(promised)
    goal = _goal(knobs, most, capacity, HEADROOM * capacity - rest)
    return tuple(_moved(knobs, promised, goal, HEADROOM * capacity - rest))


def shares_at(needed: float, capacity: float, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """The shares that changes would come to in the end at another load, in millionths.

    Args:
        needed: what would be needed with the shares in force (seconds for each second).
        capacity: the processor time that there is.
        knobs: the shares, with the costs that they would have then.
    """
    rest = needed - _needs(knobs, [knob.share for knob in knobs])
    return tuple(_goal(knobs, [WHOLE] * len(knobs), capacity, HEADROOM * capacity - rest))


def _needs(knobs: Sequence[ShareKnob], shares: Sequence[int]) -> float:
    return sum(map(ShareKnob.needs, knobs, shares))


def _worth(knobs: Sequence[ShareKnob], shares: Sequence[int]) -> float:
    return sum(map(ShareKnob.worth, knobs, shares))


def _goal(knobs: Sequence[ShareKnob], most: Sequence[int], capacity: float, budget: float) -> list[int]:
    """The shares, as large as some at most, that keep to a budget as far as that goes, at the least loss.

    Args:
        knobs: what may change.
        most: the largest shares (millionths).
        capacity: the processor time that there is.
        budget: so much of it is for what the shares need.
    """
    found, missing = list(most), _needs(knobs, most) - budget
    steps = [
        (lost / (knob.cost * (begin - end)), place, begin, end)
        for place, knob in enumerate(knobs)
        for begin, end, lost in _hull(knob, most[place], min(most[place], knob.floor(capacity)))
    ]
    for _, place, begin, end in sorted(steps, key=lambda step: (*step[:2], -step[2])):
        if missing <= 0:
            break
        knob = knobs[place]
        saved = knob.needs(begin - end)
        found[place] = (
            end if saved <= missing else max(end, knob.rounded(begin - missing / knob.cost * WHOLE))
        )
        missing -= saved
    return found


def _hull(knob: ShareKnob, most: int, least: int) -> Iterator[tuple[int, int, float]]:
    """The convex hull of what is lost from a share down to another one: pieces, each with its loss."""
    if most <= least:
        return
    corners: list[tuple[int, float]] = []
    for share in knob.points(most, least):
        point = (share, -knob.worth(share))
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) >= _slope(corners[-1], point):
            corners.pop()
        corners.append(point)
    for one, other in pairwise(corners):
        yield one[0], other[0], other[1] - one[1]


def _slope(one: tuple[int, float], other: tuple[int, float]) -> float:
    """The loss for each row less."""
    return (other[1] - one[1]) / (one[0] - other[0])


def _moved(
    knobs: Sequence[ShareKnob], present: Sequence[int], goal: Sequence[int], budget: float
) -> list[int]:
    """Shares as near to a goal as one change may bring them, and as a budget lets them be raised."""
    found = [
        max(wanted, knob.lowest) if wanted < known else known
        for knob, known, wanted in zip(knobs, present, goal, strict=True)
    ]
    left = budget - _needs(knobs, found)
    for place, knob in enumerate(knobs):
        if goal[place] > found[place]:
            reach = min(goal[place], max(found[place], knob.highest))
            if knob.needs(reach - found[place]) > left > 0:
                reach = max(found[place], knob.rounded(found[place] + left / knob.cost * WHOLE))
            if left > 0 or not knob.cost:
                left -= knob.needs(reach - found[place])
                found[place] = reach
    return found
