"""Policies: of all queues in which rows wait, which is served next, and how many of its rows.

A policy is a pure function. It keeps nothing between two turns; what it has to know of the past is in the
queues. So a run and a simulation, or a test, that show it the same queues get the same choice.

A queue whose weight is 0 is inactive (STREAM, section 2.4) and never chosen. Where a policy finds two queues
alike, the one whose oldest row has waited longer goes first, then the one that is first in the sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from headrace.qos_graph import QosGraph
from headrace.scheduling.progress import PathStep, first_slope, per_second

RESERVE: Final = 0.5
"""So much of a bound is left for what comes meanwhile."""

HASTE: Final = 9
"""So many turns in a row queues may have because of their bounds while one without a bound waits."""

_NEARLY: Final = 1e-9
"""A row fits whose time is longer than the rest of a turn by this part: quotients of doubles are inexact."""


@dataclass(frozen=True)
class QueuedRows:
    """A queue as a policy sees it.

    Attributes:
        name: of whom the rows wait for, such as a lane or an operator.
        rows: how many wait.
        oldest: how long the oldest of them has waited (seconds).
        cost: the processor time for a row (seconds).
        selectivity: rows that wait elsewhere afterwards, for a row that is taken; 0 where its answer leaves.
        weight: the share of the processor that it is due, beside those of others; 0 if it is inactive.
        passed: the processor time that it has had (seconds), divided by its weight: its pass.
        turn: the number of its last turn, counted from 1 over all queues; 0 if it has had none.
        bound: how long a row may wait (seconds); None for any time.
        delay: what an answer is worth by how late it is; None where that is all the same.
        steps: the operators that a row still has before it; empty for its own cost and selectivity.
    """

    name: str
    rows: int
    oldest: float
    cost: float
    selectivity: float
    weight: float = 1.0
    passed: float = 0.0
    turn: int = 0
    bound: float | None = None
    delay: QosGraph | None = None
    steps: tuple[PathStep, ...] = ()

    def fitting(self, seconds: float) -> int:
        """The number of rows that a turn takes: as many as fit, and at least one.

        Args:
            seconds: how long the turn may take.
        """
        if self.cost * self.rows <= seconds:
            return self.rows
        return min(self.rows, max(1, math.floor(seconds / self.cost + _NEARLY)))

    def latest(self, seconds: float) -> float:
        """The age of the oldest row when a turn that begins now is over (seconds)."""
        return self.oldest + self.cost * self.fitting(seconds)


@dataclass(frozen=True)
class NextTurn:
    """The next turn.

    Attributes:
        name: of the queue that is served.
        rows: how many of its rows are taken, the oldest first.
    """

    name: str
    rows: int


SchedulingPolicy = Callable[[Sequence[QueuedRows], float], NextTurn | None]
"""From all queues, and the seconds that a turn may take, to what is done next: None where nothing waits."""


def weighted(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Give each its share by weight, but keep bounds: stride scheduling, with earliest deadlines first.

    The queue with the smallest pass goes first, so passes of queues that always have rows differ by a turn
    at most (Waldspurger and Weihl, Stride Scheduling, 1995). If after its turn the rows of queues with
    bounds, in the order of their deadlines, could not all be done in half of their bounds, the earliest
    deadline goes first instead; so it is while a bound is broken. Of ten turns one at least is for queues
    without a bound, where rows wait in one, so bounds that cannot be kept starve nobody.
    """
    active = _active(queues)
    if not active:
        return None
    by_weight = min(active, key=lambda one: (one.passed, -one.oldest))
    if not _breaks(by_weight, active, seconds):
        return NextTurn(by_weight.name, by_weight.fitting(seconds))
    free = [one for one in active if one.bound is None]
    if free and _patient(queues):
        return _first(free, seconds, lambda one: one.passed)
    return _first([one for one in active if one.bound is not None], seconds, _deadline)


def _breaks(first: QueuedRows, active: Sequence[QueuedRows], seconds: float) -> bool:
    """True if the bound of another queue is at risk after the turn of one, or is broken."""
    done = first.cost * first.fitting(seconds)
    for one in sorted((one for one in active if one is not first and one.bound is not None), key=_deadline):
        done += one.cost * one.rows
        if one.oldest + done > (1 - RESERVE) * (one.bound or 0.0):
            return True
    return False


def _deadline(one: QueuedRows) -> float:
    """The seconds in which the oldest row has to be done."""
    return math.inf if one.bound is None else one.bound - one.oldest


def _patient(queues: Sequence[QueuedRows]) -> bool:
    """True if those with a bound have had so many turns since one without that it is the latter's turn."""
    newest = max(one.turn for one in queues)
    return newest - max(one.turn for one in queues if one.bound is None) >= HASTE


def round_robin(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Serve them in turn: the one whose last turn is longest ago (STREAM's first scheduler, section 4.2)."""
    return _first(_active(queues), seconds, lambda one: one.turn)


def fifo(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Take rows in the order in which they came, each as far as it goes (STREAM, section 4.2, strategy 1)."""
    return _first(_active(queues), seconds, lambda one: (-one.oldest, len(one.steps)))


def greedy(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Serve whoever makes rows fewer the soonest: by (1 - selectivity) / cost (STREAM, section 4.2)."""
    return _first(_active(queues), seconds, lambda one: first_slope((PathStep(one.cost, one.selectivity),)))


def chain(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Serve the steepest descent of the progress charts: least memory, whatever comes.

    At every instant the rows in memory are at most one for each path more than the fewest that any order
    could have (Babcock and others, Chain, SIGMOD 2003, section 3; STREAM, section 4.2, has the idea). Unlike
    `greedy` it serves an operator that makes nothing fewer if what comes after it does. The envelope is that
    of the rest of a row's path, so a row that has begun a line of it goes before those that would begin it.
    """
    return _first(_active(queues), seconds, lambda one: first_slope(one.steps or (_step(one),)))


def utility(queues: Sequence[QueuedRows], seconds: float) -> NextTurn | None:
    """Serve whoever loses the most by waiting: the steepest fall of its delay graph for its processor time.

    Aurora's state-based priorities, by the utility that is sacrificed if an output is deferred (Carney and
    others, VLDB 2002, section 4.3): the fall of its graph while one more turn goes by, times its weight, for
    a second of its processor time. A whole train is taken. Of those that would lose nothing in that time the
    one whose utility falls the soonest goes first. What is late beyond its last point has nothing to lose and
    waits until the others are served.
    """

    def loss(one: QueuedRows) -> tuple[float, float]:
        if one.delay is None:
            return 0.0, math.inf
        late = one.latest(seconds)
        fall, soon = one.delay.slope(late, seconds), one.delay.falls_from(late) - late
        return per_second(fall * one.weight, one.cost), soon

    return _first(_active(queues), seconds, loss)


POLICIES: Final[Mapping[str, SchedulingPolicy]] = MappingProxyType(
    {
        "weighted": weighted,
        "round_robin": round_robin,
        "fifo": fifo,
        "greedy": greedy,
        "chain": chain,
        "utility": utility,
    }
)
"""The policies by the names that they have in settings."""

USUAL_POLICY: Final = "weighted"
"""The name of the one that holds where nothing is said."""


def joined(passed: float, queues: Iterable[QueuedRows]) -> float:
    """The pass of a queue in which rows wait again, or whose weight is no longer 0.

    It has no claim on the time that it did not want: it begins with the smallest pass of those that wait.

    Args:
        passed: its pass when it last had rows (seconds for a weight of 1); 0 for a new one.
        queues: the others.
    """
    return max(passed, min((one.passed for one in _active(queues)), default=passed))


def _step(one: QueuedRows) -> PathStep:
    return PathStep(one.cost, one.selectivity)


def _active(queues: Iterable[QueuedRows]) -> list[QueuedRows]:
    """Those that may be chosen."""
    return [one for one in queues if one.rows > 0 and one.weight > 0]


def _first(
    active: Sequence[QueuedRows], seconds: float, order: Callable[[QueuedRows], float | tuple[float, ...]]
) -> NextTurn | None:
    """The turn of the queue that comes first in an order."""
    if not active:
        return None
    found = min(active, key=lambda one: (order(one), -one.oldest))
    return NextTurn(found.name, found.fitting(seconds))
