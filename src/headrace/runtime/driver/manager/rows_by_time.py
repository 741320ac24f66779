"""How many rows of a stream are of which time, as far as that is remembered: counts at some instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from headrace.elements import Float64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.time import BEGINNING, INFINITY

_REMEMBERED: Final = 1024
"""At so many instants counts are remembered; then of the older half every other one is forgotten."""


@dataclass
class RowsByTime:
    """The rows of a stream so far, as a function of time.

    What came in one epoch is taken to be spread evenly over the time that it brought. Of what had come before
    this process no more is known than its first and last instant.

    Attributes:
        instants: increasing (instants).
        rows: so many rows are of those instants, and earlier ones.
        lag: how far the heartbeat is behind the last instant (instants).
    """

    instants: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    lag: int = 0

    def note(self, seen: Arrivals, heartbeat: int) -> None:
        """Take in what has come by now.

        Args:
            seen: a summary of all rows.
            heartbeat: no later row is older (instant).
        """
        if seen.latest == BEGINNING or seen.earliest == INFINITY:
            return
        if self.rows and seen.rows < self.rows[-1]:
            # It is another stream of the name.
            self.instants, self.rows = [], []
        if not self.instants:
            self.instants, self.rows = [seen.earliest - 1], [0]
        now = seen.latest if heartbeat == INFINITY else max(seen.latest, heartbeat)
        if now > self.instants[-1]:
            self.instants.append(now)
            self.rows.append(seen.rows)
        else:
            self.rows[-1] = seen.rows
        self.lag = 0 if heartbeat in (BEGINNING, INFINITY) else max(0, now - heartbeat)
        if len(self.instants) > _REMEMBERED:
            for known in (self.instants, self.rows):
                del known[1 : _REMEMBERED // 2 : 2]

    @property
    def now(self) -> int:
        """Up to which instant rows have come; BEGINNING before the first."""
        return self.instants[-1] if self.instants else BEGINNING

    @property
    def total(self) -> int:
        """How many there are."""
        return self.rows[-1] if self.rows else 0

    def until(self, instants: Float64Array) -> Float64Array:
        """float64[n]: how many rows are of some instants, and earlier ones."""
        if not self.instants:
            return np.zeros(len(instants))
        return np.interp(instants, self.instants, self.rows)

    def rate(self, span: int) -> float:
        """The rows per instant of the last so many instants."""
        if not self.instants:
            return 0.0
        before, now = self.until(np.array([self.now - span, self.now], dtype=np.float64))
        return float(now - before) / span
