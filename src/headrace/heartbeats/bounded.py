"""Bounded disorder: a stream promises that no row is older than the newest before it by more than a bound.

The skew bound of a stream with itself (Srivastava and Widom, *Flexible Time Management in Data Stream
Systems*, PODS 2004, section 3); their heartbeat tau ("all later tuples are greater than tau") is our tau + 1.

A row that breaks the promise is *late*: it is below the heartbeat that the rows before it make. Tasks judge
parts of the rows, and do not know all rows before theirs; `Arrivals.certain` says whether that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.instants.disorder import furthest_behind
from headrace.time import BEGINNING, INFINITY

UNCERTAIN: Final = BEGINNING - 1
"""Of `Arrivals.certain`: less than any timestamp, and than that of no row at all."""

STRICT: Final = -1
"""The disorder of a stream whose timestamps only rise: a row has to be younger than all before it."""


@dataclass(frozen=True)
class Arrivals:
    """What arrived on a stream, before any filter: a summary of consecutive rows, to be joined by `then`.

    Attributes:
        rows: rows with a usable timestamp that were in time.
        late: rows below the heartbeat that the rows before them make.
        overdue: of these the changes of a relation that count from that heartbeat on; others are set apart.
        rejected: rows that did not parse, or whose timestamp is NULL or out of range.
        latest: the largest timestamp of rows that were not rejected (instant), BEGINNING if there are none.
        earliest: their smallest timestamp (instant), INFINITY if there are none.
        drop: how far one of them is behind the newest before it, at most: the DISORDER that would have
            taken all of them.
        certain: the largest timestamp that may come before these rows without one of them being judged
            otherwise (instant); `UNCERTAIN` if some have been judged wrongly for want of those before them.
        promise: the largest heartbeat that the source has sent with them, or that they make by their position
            (instant), BEGINNING if none.
        limit: the largest heartbeat that a late row is below (instant), BEGINNING if none is late.
        below: how many of the late rows are late by that heartbeat.
    """

    rows: int = 0
    late: int = 0
    rejected: int = 0
    latest: int = BEGINNING
    earliest: int = INFINITY
    drop: int = 0
    certain: int = INFINITY
    promise: int = BEGINNING
    limit: int = BEGINNING
    below: int = 0
    overdue: int = 0

    @property
    def is_certain(self) -> bool:
        """Whether no row was judged wrongly, if no others come before these."""
        return self.certain >= BEGINNING

    @property
    def everything(self) -> int:
        """All rows, late and rejected ones included."""
        return self.rows + self.late + self.rejected

    @property
    def newest(self) -> int:
        """The last instant at which something is new by them: late changes count from a heartbeat on."""
        return max(self.latest, self.limit) if self.overdue else self.latest

    def then(self, later: Arrivals) -> Arrivals:
        """These rows followed by others. Associative, and `Arrivals()` is neutral; not commutative."""
        held = self.latest <= later.certain
        behind = self.latest - later.earliest
        return Arrivals(
            self.rows + later.rows,
            self.late + later.late,
            self.rejected + later.rejected,
            max(self.latest, later.latest),
            min(self.earliest, later.earliest),
            max(self.drop, later.drop, behind),
            min(self.certain, later.certain) if held else UNCERTAIN,
            max(self.promise, later.promise),
            *self._limited(later),
            self.overdue + later.overdue,
        )

    def beside(self, other: Arrivals) -> Arrivals:
        """These rows together with others, where neither come before the others."""
        return Arrivals(
            self.rows + other.rows,
            self.late + other.late,
            self.rejected + other.rejected,
            max(self.latest, other.latest),
            min(self.earliest, other.earliest),
            max(self.drop, other.drop),
            min(self.certain, other.certain),
            max(self.promise, other.promise),
            *self._limited(other),
            self.overdue + other.overdue,
        )

    def _limited(self, other: Arrivals) -> tuple[int, int]:
        """The larger limit of the two, and how many rows are below it."""
        limit = max(self.limit, other.limit)
        return limit, sum(part.below for part in (self, other) if part.limit == limit)

    def apart(self) -> Arrivals:
        """The same counts, where the rows that follow are those of another stream of the name."""
        return Arrivals(self.rows, self.late, self.rejected, drop=self.drop, overdue=self.overdue)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Which of some rows are late.

    Attributes:
        arrivals: their summary.
        late: int64[n], the places of the late rows, increasing.
        heartbeats: int64[n], the heartbeat (instant) that each of them is below.
    """

    arrivals: Arrivals
    late: Int64Array
    heartbeats: Int64Array


LATE: Final = "late: older than the heartbeat "
"""How the reason of a late row begins in the dead letters; the heartbeat follows."""

_NONE: Int64Array = np.empty(0, dtype=np.int64)


def judge_in_order(times: Int64Array, heartbeat: int, disorder: int | None) -> Judgement:
    """Judge consecutive rows, each by the rows before it.

    Args:
        times: int64[n], their timestamps, none out of range.
        heartbeat: that of the rows before the first one (instant), as far as they are known.
        disorder: how much older than the newest row before it a row may be, `STRICT`, or None for any age.
    """
    if disorder is None:
        return judge_together(times, heartbeat)
    if not len(times):
        return Judgement(Arrivals(), _NONE, _NONE)
    earliest, latest, drop = int(times.min()), int(times[-1]), 0
    if (times[1:] < times[:-1]).any():
        drop, latest = furthest_behind(times)
    in_time = drop <= disorder if disorder >= 0 else bool((times[1:] > times[:-1]).all())
    if heartbeat <= earliest and in_time:
        seen = Arrivals(len(times), 0, 0, latest, earliest, drop, earliest + disorder)
        return Judgement(seen, _NONE, _NONE)
    limits = np.full(len(times), heartbeat)
    limits[1:] = np.maximum(np.maximum.accumulate(times)[:-1] - disorder, heartbeat)
    late = np.flatnonzero(times < limits)
    certain = int(np.maximum(times, limits).min()) + disorder
    seen = Arrivals(
        len(times) - len(late), len(late), 0, latest, earliest, drop, certain, **furthest_limit(limits[late])
    )
    return Judgement(seen, late, limits[late])


def judge_together(times: Int64Array, heartbeat: int) -> Judgement:
    """Judge rows that come in no order, all by the heartbeat before them.

    Args:
        times: int64[n], their timestamps, none out of range.
        heartbeat: that before them (instant).
    """
    if not len(times):
        return Judgement(Arrivals(), _NONE, _NONE)
    late = np.flatnonzero(times < heartbeat)
    limits = np.full(len(late), heartbeat)
    seen = Arrivals(
        len(times) - len(late), len(late), 0, int(times.max()), int(times.min()), **furthest_limit(limits)
    )
    return Judgement(seen, late, limits)


def furthest_limit(limits: Int64Array) -> dict[str, int]:
    """Of the heartbeats that late rows are below the largest one, and how many rows are below that."""
    limit = int(limits.max(initial=BEGINNING))
    return {"limit": limit, "below": int((limits == limit).sum())}


def advance(heartbeat: int, latest: int, disorder: int | None) -> int:
    """The heartbeat after some rows: no later element begins before it.

    Args:
        heartbeat: the promise so far (instant).
        latest: the largest timestamp of the rows (instant), BEGINNING if there are none.
        disorder: how much older than the newest row before it a row may be, `STRICT`, or None for any age.
    """
    if disorder is None or latest == BEGINNING:
        return heartbeat
    return max(heartbeat, latest - disorder)
