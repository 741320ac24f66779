"""The number of rows of a stream by their time, as far as that is remembered: counts at some instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from headrace.elements import Float64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.time import BEGINNING, INFINITY

_REMEMBERED: Final = 1024
"""At so many instants counts are remembered; then of the older half every other one is forgotten."""
_QUIET: Final = 8
"""Where no rows come at all, so many times as long is waited for some."""


@dataclass
class RowsByTime:
    """The rows of a stream so far, as a function of time.

    What came in one epoch is taken to be spread evenly over the time that it brought. Of what had come when
    it was noted first, before a restart, no more is known than its first and last instant. It is taken to
    have come evenly until a few rows were counted, and from then on as these have.

    Attributes:
        instants: increasing (instants).
        rows: so many rows are of those instants, and earlier ones.
        lag: how far the heartbeat is behind the last instant (instants).
        is_followed: whether it has been noted before, with rows or without.
        uncounted: up to which instant rows had come when it was noted first, and how many; None if none.
        resumed: the same when the first later ones had come; None before.
    """

    instants: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    lag: int = 0
    is_followed: bool = False
    uncounted: tuple[int, int] | None = None
    resumed: tuple[int, int] | None = None

    def note(self, seen: Arrivals, heartbeat: int) -> None:
        """Take in what has come by now.

        Args:
            seen: a summary of all rows.
            heartbeat: no later row is older (instant).
        """
        is_first, self.is_followed = not self.is_followed, True
        if seen.latest == BEGINNING or seen.earliest == INFINITY:
            return
        if self.rows and seen.rows < self.rows[-1]:
            # It is another stream of the name.
            self.instants, self.rows, self.uncounted, self.resumed = [], [], None, None
        if not self.instants:
            self.instants, self.rows = [seen.earliest - 1], [0]
        now = seen.latest if heartbeat == INFINITY else max(seen.latest, heartbeat)
        if now > self.instants[-1]:
            self.instants.append(now)
            self.rows.append(seen.rows)
        else:
            self.rows[-1] = seen.rows
        if is_first:
            self.uncounted = now, seen.rows
        elif self.uncounted is not None and self.resumed is None and now > self.uncounted[0]:
            self.resumed = now, seen.rows
        self.lag = 0 if heartbeat in (BEGINNING, INFINITY) else max(0, now - heartbeat)
        if len(self.instants) > _REMEMBERED:
            for known in (self.instants, self.rows):
                del known[1 : _REMEMBERED // 2 : 2]

    def waits(self, span: int) -> bool:
        """Whether rows have gone on coming after those not counted, but too few to say how these have come.

        Args:
            span: so many instants of counted rows are enough.
        """
        if self.resumed is None:
            return False
        passed = self.now - self.resumed[0]
        return passed < span or (self.total == self.resumed[1] and passed < _QUIET * span)

    def settle(self) -> bool:
        """Take rows that were not counted to have come as those counted since have; whether that is new."""
        if self.uncounted is None or self.resumed is None:
            return False
        (instant, rows), (begin, before) = self.uncounted, self.resumed
        rate, first = (self.total - before) / max(1, self.now - begin), self.instants[0] + 1
        self.uncounted = self.resumed = None
        if first < instant:
            # Others are older than any of these, however old that is.
            older = rows - rate * (instant - first)
            self.instants[0] = first if older > 0 else min(instant - 1, instant - round(rows / rate))
            self.rows[0] = max(0, round(older))
        return True

    @property
    def now(self) -> int:
        """Up to which instant rows have come; BEGINNING before the first."""
        return self.instants[-1] if self.instants else BEGINNING

    @property
    def total(self) -> int:
        """The number of all."""
        return self.rows[-1] if self.rows else 0

    @property
    def span(self) -> int:
        """For how long rows have come (instants); 1 before the first."""
        return self.now - self.instants[0] if self.instants else 1

    def until(self, instants: Float64Array) -> Float64Array:
        """float64[n]: how many rows are of some instants, and earlier ones."""
        if not self.instants:
            return np.zeros(len(instants))
        return np.interp(instants, self.instants, self.rows, left=0)

    def since(self, instant: int) -> float:
        """The number of rows of an instant, and of later ones."""
        return self.total - float(self.until(np.array([instant - 1.0]))[0])

    def rate(self, span: int) -> float:
        """The rows per instant of the last so many instants, or of those up to the heartbeat if that is more.

        After the heartbeat more rows may come: a row far ahead of the others alone says nothing.
        """
        if not self.instants:
            return 0.0
        ends = np.array([self.now, self.now - self.lag], dtype=np.float64)
        return float((self.until(ends) - self.until(ends - span)).max()) / span
