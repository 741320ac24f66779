"""Bounded disorder: what a stream promises when no element is older than the newest by more than a bound.

The skew bound of a stream with itself (Srivastava and Widom, *Flexible Time Management in Data Stream
Systems*, PODS 2004, section 3); their heartbeat tau ("all later tuples are greater than tau") is our tau + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Arrivals:
    """What arrived on a stream in one epoch, before any filter.

    Attributes:
        rows: rows with a usable timestamp that were in time.
        latest: their largest timestamp (instant), BEGINNING if there are none.
        late: rows below the heartbeat at the start of the epoch.
        rejected: rows that did not parse, or whose timestamp is NULL or out of range.
    """

    rows: int = 0
    latest: int = BEGINNING
    late: int = 0
    rejected: int = 0

    def __add__(self, other: Arrivals) -> Arrivals:
        return Arrivals(
            self.rows + other.rows,
            max(self.latest, other.latest),
            self.late + other.late,
            self.rejected + other.rejected,
        )


def advance(heartbeat: int, arrivals: Arrivals, disorder: int, ended: bool) -> int:
    """The heartbeat after an epoch: no later element starts before it.

    Args:
        heartbeat: the promise so far (instant).
        arrivals: what this epoch brought.
        disorder: how much older than the newest element an element may be.
        ended: whether the stream has no more elements; then everything is final.
    """
    if ended:
        return INFINITY
    if arrivals.latest == BEGINNING:
        return heartbeat
    return max(heartbeat, arrivals.latest - disorder)
