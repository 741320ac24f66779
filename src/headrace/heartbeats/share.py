"""A disorder chosen so that at most a given share of the rows is late.

Where a deterministic bound would be very large, one that nearly all rows keep is often small (Srivastava and
Widom, PODS 2004, section 2, on bounds of some confidence). The disorder is read off a histogram of how far
recent rows were behind; whether it keeps the share is then measured by the rows that were really late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.time import BEGINNING, MAX_INSTANT

_EXACT: Final = 16
"""Lengths below this have a step of their own; each doubling from there on has half as many."""

STEPS: Final = _EXACT + 59 * _EXACT // 2
"""How many steps lengths up to 2^63 - 1 have."""


def step_of(lengths: Int64Array) -> Int64Array:
    """int64[n], the step of each length of int64[n]; none of the lengths is negative."""
    shift = np.maximum(np.frexp(lengths.astype(np.float64))[1] - 4, 0).astype(np.int64)
    # As a float, a large length just below a power of two is that power.
    shift -= (shift > 0) & (lengths >> shift < _EXACT // 2)
    steps: Int64Array = (lengths >> shift) + shift * (_EXACT // 2)
    return steps


def top_of(step: int) -> int:
    """The largest length of a step."""
    shift = max(step // (_EXACT // 2) - 1, 0)
    return ((step - shift * (_EXACT // 2) + 1) << shift) - 1


@dataclass(frozen=True)
class Lateness:
    """How far rows were behind the newest ones before them: a histogram, to be joined by `beside`.

    Attributes:
        counts: the steps that some rows have, rising, and how many have them; `STEPS` at most.
    """

    counts: tuple[tuple[int, int], ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(count for _, count in self.counts)

    def beside(self, other: Lateness) -> Lateness:
        """These rows together with others. Associative, commutative, and `Lateness()` is neutral."""
        found = dict(self.counts)
        for step, count in other.counts:
            found[step] = found.get(step, 0) + count
        return Lateness(tuple(sorted(found.items())))

    def covering(self, late: float) -> int:
        """The least length that at most so many rows exceed, rounded up to the end of its step."""
        above = 0
        for step, count in reversed(self.counts):
            if above + count > late:
                return top_of(step)
            above += count
        return 0


def lateness_of(times: Int64Array, newest: int) -> Lateness:
    """How far consecutive rows are behind.

    Args:
        times: int64[n], their timestamps.
        newest: the largest timestamp before them that is known (instant), BEGINNING for none. Rows are less
            far behind than they really are where rows before them are not known.
    """
    if not len(times):
        return Lateness()
    return _histogram(np.maximum(np.maximum.accumulate(times), newest) - times)


def lateness_together(times: Int64Array, newest: int) -> Lateness:
    """How far rows that come in no order are behind the newest one before all of them.

    Args:
        times: int64[n], their timestamps.
        newest: the largest timestamp before them (instant), BEGINNING for none.
    """
    return _histogram(np.maximum(times, newest) - times)


def _histogram(behind: Int64Array) -> Lateness:
    steps, counts = np.unique(step_of(behind), return_counts=True)
    return Lateness(tuple(zip(steps.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True)
class LateTarget:
    """How many rows may be late.

    Attributes:
        share: of all rows, between 0 and 1; 0.001 for `DISORDER FOR 99.9 PERCENT`.
        window: after how many rows older ones begin to be forgotten.
        learning: how many rows must have come before there is a heartbeat.
    """

    share: float
    window: int
    learning: int

    def describe(self) -> str:
        """What a durable store remembers of it."""
        return f"for {self.share}"


def target(share: float) -> LateTarget:
    """A target whose window holds enough rows to say something of the share."""
    window = max(10_000, int(100 / share) if share else 1_000_000)
    return LateTarget(share, window, min(1_000, window // 10))


@dataclass(frozen=True)
class ShareState:
    """What is remembered between epochs.

    Attributes:
        disorder: for the rows of the next epoch (instants); MAX_INSTANT while it is being learned.
        rows: all rows, late ones included.
        late: those of them that were late.
        latest: the largest timestamp that came (instant), BEGINNING before the first.
        furthest: how far a row was behind the newest one before it, at most (instants).
        recent: how far the rows of the window were behind.
        former: those of the window before.
    """

    disorder: int = MAX_INSTANT
    rows: int = 0
    late: int = 0
    latest: int = BEGINNING
    furthest: int = 0
    recent: Lateness = Lateness()
    former: Lateness = Lateness()

    def to_json(self) -> list[Any]:
        """Numbers and lists of numbers, for a commit record."""
        numbers = (self.disorder, self.rows, self.late, self.latest, self.furthest)
        return [*numbers, *([list(one) for one in part.counts] for part in (self.recent, self.former))]

    @classmethod
    def from_json(cls, found: Sequence[Any]) -> ShareState:
        """The state of which `to_json` made this.

        Raises:
            TypeError, ValueError: it made no such thing.
        """
        *numbers, recent, former = found
        disorder, rows, late, latest, furthest = map(int, numbers)
        parts = (
            Lateness(tuple((int(step), int(count)) for step, count in part)) for part in (recent, former)
        )
        return cls(disorder, rows, late, latest, furthest, *parts)


def after(rule: LateTarget, state: ShareState, arrivals: Arrivals, lateness: Lateness) -> ShareState:
    """The state after an epoch.

    While the share of late rows is at most the target, the disorder is the one that would have kept the
    target over the last one or two windows. While it is more, the disorder is twice what would have taken
    every row so far. A row that is late then is below a heartbeat from before, which cannot be taken back and
    which the stream leaves behind as it advances; or it is further behind than twice any row before it. If
    rows are never further behind than some length, the latter happens in few epochs only, as many as its
    logarithm. So in the long run the share of late rows is at or below the target, however the rows are
    distributed, if the stream advances and the length has a bound.

    Args:
        rule: the target.
        state: after the epoch before.
        arrivals: what the epoch brought, judged by `state.disorder` and the heartbeat before it.
        lateness: how far the same rows were behind, late ones included.
    """
    rows, late = state.rows + arrivals.rows + arrivals.late, state.late + arrivals.late
    recent, former = state.recent.beside(lateness), state.former
    seen = former.beside(recent)
    furthest = max(state.furthest, arrivals.drop, state.latest - arrivals.earliest)
    if rows < rule.learning:
        disorder = MAX_INSTANT
    elif late <= rule.share * rows:
        disorder = min(seen.covering(rule.share * seen.rows), furthest)
    else:
        disorder = min(2 * furthest, MAX_INSTANT)
    if recent.rows >= rule.window:
        recent, former = Lateness(), recent
    latest = max(state.latest, arrivals.latest)
    return ShareState(disorder, rows, late, latest, furthest, recent, former)
