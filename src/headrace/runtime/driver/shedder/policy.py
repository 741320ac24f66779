"""Which share of the rows of queries that bear loss is to be kept: a pure function.

Aurora's greedy over loss graphs (*Monitoring Streams*, VLDB 2002, 7.2): what is left out next is what costs
its readers least for the processor time that it saves. Aurora asks for graphs that are convex. Here the graph
may have any form that does not fall: of each query the step is looked for that is best up to any of its
points, which walks along the convex hull.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.runtime.driver.shedder.capacity import HEADROOM
from headrace.steps import WHOLE

TOO_MUCH: Final = 0.9
"""Rows are left out when more than this part of the capacity is needed."""
TOO_LITTLE: Final = 0.7
"""More rows are kept again when no more than this part of the capacity would be needed with them."""
LATE: Final = 0.5
"""Rows are left out when a run is behind by this part of the bound: the rest is for what comes meanwhile."""
EARLY: Final = 0.25
"""More are kept again only when it is behind by less than this part of it."""
FACTOR: Final = 2
"""A change halves a share at most, or doubles it."""
LEAST: Final = WHOLE // 100
"""No share becomes smaller: with fewer rows bounds say nothing."""
_WORTH: Final = 0.02
"""A share is left as it is where all of its rows need no more than this part of the capacity."""
_POINTS: Final = 50
"""So many shares are looked at between a present share and the smallest or largest that may follow."""


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
    """

    share: int
    cost: float
    utility: Callable[[int], float]
    queries: int = 1
    least: int = LEAST
    drained: bool = True

    def saved(self, share: int) -> float:
        """The processor time that another share saves (seconds for each second); below 0 for a larger one."""
        return self.cost * (self.share - share) / WHOLE

    def floor(self, capacity: float) -> int:
        """The smallest share that it makes sense to keep (millionths)."""
        return self.least if self.cost > _WORTH * capacity else WHOLE

    def lost(self, share: int) -> float:
        """The worth that is lost to all of its queries by another share."""
        return self.queries * (self.utility(self.share) - self.utility(share))


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
    # Where more has to be kept for what was promised, no load is a reason against it.
    promised = tuple(max(knob.share, knob.least) for knob in knobs)
    needed = pressure.needed - sum(map(ShareKnob.saved, knobs, promised))
    if pressure.is_overload:
        floors = [max(knob.floor(pressure.capacity), knob.share // FACTOR) for knob in knobs]
        return _lowered(knobs, promised, floors, needed - HEADROOM * pressure.capacity)
    if pressure.is_calm:
        return _raised(knobs, promised, needed, pressure.capacity)
    return promised


def shares_at(needed: float, capacity: float, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """The shares that changes would come to in the end at another load, in millionths.

    Args:
        needed: what would be needed with the shares in force (seconds for each second).
        capacity: the processor time that there is.
        knobs: the shares, with the costs that they would have then.
    """
    full = tuple(WHOLE for _ in knobs)
    everything = needed - sum(map(ShareKnob.saved, knobs, full))
    floors = [knob.floor(capacity) for knob in knobs]
    return _lowered(knobs, full, floors, everything - HEADROOM * capacity)


def _lowered(
    knobs: Sequence[ShareKnob], shares: tuple[int, ...], floors: Sequence[int], missing: float
) -> tuple[int, ...]:
    """Shares with which so much less is needed, as far as floors let them, at the least loss."""
    found = list(shares)
    while missing > 0:
        best: tuple[float, int, int] | None = None
        for place, knob in enumerate(knobs):
            for share in _between(found[place], floors[place]):
                saved = knob.saved(share) - knob.saved(found[place])
                if saved > 0:
                    lost = knob.lost(share) - knob.lost(found[place])
                    # Of two that are as good the larger step, so that the ends of straight lines are found.
                    rated = (lost / saved, share, place)
                    best = rated if best is None or rated < best else best
        if best is None:
            break
        _, share, place = best
        share = _enough(knobs[place], found[place], share, missing)
        missing -= knobs[place].saved(share) - knobs[place].saved(found[place])
        found[place] = share
    return tuple(found)


def _enough(knob: ShareKnob, present: int, share: int, missing: float) -> int:
    """The largest share from a smaller one up to the present one that saves what is missing."""
    if knob.saved(share) - knob.saved(present) <= missing:
        return share
    return max(share, int(present - missing / knob.cost * WHOLE))


def _raised(
    knobs: Sequence[ShareKnob], shares: tuple[int, ...], needed: float, capacity: float
) -> tuple[int, ...]:
    """Shares that are as large as there is room for, where there is enough of it; else the same ones."""
    if _grown(knobs, shares, TOO_LITTLE * capacity - needed) == shares:
        return shares
    return _grown(knobs, shares, HEADROOM * capacity - needed)


def _grown(knobs: Sequence[ShareKnob], shares: tuple[int, ...], left: float) -> tuple[int, ...]:
    """Shares that need no more than is left, at the largest gain."""
    found = list(shares)
    while left > 0:
        best: tuple[float, int, int] | None = None
        for place, knob in enumerate(knobs):
            if not knob.drained:
                continue
            for share in _between(found[place], min(WHOLE, FACTOR * knob.share)):
                taken = knob.saved(found[place]) - knob.saved(share)
                gained = knob.lost(found[place]) - knob.lost(share)
                if taken <= left:
                    rated = (-gained / max(taken, 1e-12), -share, place)
                    best = rated if best is None or rated < best else best
        if best is None:
            break
        _, share, place = best
        left -= knobs[place].saved(found[place]) - knobs[place].saved(-share)
        found[place] = -share
    return tuple(found)


def _between(present: int, last: int) -> Iterator[int]:
    """Some shares from a present one, without it, to the last that it may become."""
    for part in range(1, _POINTS + 1):
        share = present + (last - present) * part // _POINTS
        if share != present and (share < present) == (last < present):
            yield share
