"""Tuple-based skew bounds at work: what becomes of them as rows are counted.

Srivastava and Widom, PODS 2004, section 3.1. A bound `(n, delta)` from a stream to a second promises
something once the second has emitted `n` rows after a row of the first. Rows that come more than the
latency bound of the second after it was seen have certainly been emitted later; those are counted.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Final

from headrace.time import BEGINNING, INFINITY

_STEPS: Final = 32
"""How many promises of a bound are counted for at once, about; larger numbers of rows are rounded up."""


def step_of(rows: int) -> int:
    """To multiples of what a number of rows is rounded up, counted from the stream's first row."""
    return max(1, rows // _STEPS)


Due = tuple[tuple[int, int], ...]
"""When promises hold, and the promises (instants); both rise."""


def rounded_up(number: int, granule: int) -> int:
    """The smallest multiple of a granule that is not less than a number."""
    return -(-number // granule) * granule


def added(due: Due, when: int, promise: int) -> Due:
    """The promises with one more, none of which is due later than it."""
    if due and due[-1][1] >= promise:
        return due
    return (*(due[:-1] if due and due[-1][0] == when else due), (when, promise))


def merged(one: Due, other: Due) -> Due:
    """The promises of both that no earlier one makes needless."""
    found: Due = ()
    for when, promise in sorted((*one, *other)):
        found = added(found, when, promise)
    return found


def taken(due: Due, until: int) -> tuple[int, Due]:
    """The largest promise that is due by then (instant), BEGINNING if there is none; and those that are
    not."""
    number = bisect_right(due, (until, INFINITY))
    return (due[number - 1][1], due[number:]) if number else (BEGINNING, due)


@dataclass(frozen=True)
class Counting:
    """What the bounds to a stream with one wait and one number of rows will promise.

    Attributes:
        wait: of the bounds, and the latency of the stream (microseconds).
        rows: the number.
        own: whether the bounds are from the stream to itself.
        ahead: promises for which the rows are counted later, by the stream's counted time (microseconds).
        counted: promises by the number of the stream's rows that will have come.
    """

    wait: int
    rows: int
    own: bool
    ahead: Due = ()
    counted: Due = ()

    def is_like(self, other: Counting) -> bool:
        """Whether it is for the same bounds."""
        return (self.wait, self.rows, self.own) == (other.wait, other.rows, other.own)

    def reach(self, count: int) -> tuple[int, Counting]:
        """What is promised once that many rows have come (instant), BEGINNING if nothing; and what is
        left."""
        reached, counted = taken(self.counted, count)
        return reached, self if counted is self.counted else replace(self, counted=counted)

    def begin(self, promise: int, clock: int, count: int, granule: int, caught_up: bool) -> Counting:
        """Begin to count for what an epoch's rows promise, and for what was to be begun by now.

        Args:
            promise: what the bounds say of the epoch's rows (instant), BEGINNING if nothing.
            clock: the stream's counted time (microseconds).
            count: how many of its rows have come, those of the epoch included: rows of two streams have no
                order in an epoch, so that only later ones count.
            granule: to whose multiples counted time is rounded up (microseconds).
            caught_up: whether all of its rows have been taken. Of those that wait, some may have been sent
                before the rows of the epoch, unless these are its own.
        """
        if promise == BEGINNING and not self.ahead:
            return self
        at_once = not self.wait and (self.own or caught_up)
        start = clock if at_once else rounded_up(clock + max(self.wait, 1), granule)
        ahead = added(self.ahead, start, promise) if promise > BEGINNING else self.ahead
        started, ahead = taken(ahead, clock)
        counted = self.counted
        if started > BEGINNING:
            counted = added(counted, rounded_up(count + self.rows, step_of(self.rows)), started)
        return replace(self, ahead=ahead, counted=counted)
