"""Sources that obey given bounds, and otherwise send what they like: for tests and for looking at bounds.

Every source has a clock that jumps about as far as the bounds allow, sends rows out of order, pauses, and its
rows are delayed, reordered and lost on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from headrace.heartbeats.skew import SkewMatrix
from headrace.time import BEGINNING


class SentRow(NamedTuple):
    """A row of a simulated source.

    Attributes:
        arrives: when it arrives (microseconds of wall-clock time).
        stream: the number of the source.
        instant: its timestamp.
        emitted: when it was sent (microseconds of wall-clock time).
    """

    arrives: int
    stream: int
    instant: int
    emitted: int


@dataclass(frozen=True)
class Behaviour:
    """What simulated sources do besides obeying their bounds.

    Attributes:
        step: the time between two moments at which rows are sent (microseconds).
        activity: the share of moments at which a source that does not pause sends a row.
        pauses: the share of moments at which a source begins to pause, or ends it.
        lost: the share of rows that never arrive.
        spread: how far above the least timestamp that it may send a source goes (instants).
        rate: how far the clocks of the sources advance in each moment at least, even if all of them may send
            older rows (instants).
    """

    step: int = 1
    activity: float = 0.7
    pauses: float = 0.1
    lost: float = 0.1
    spread: int = 5
    rate: int = 0


@dataclass
class Sources:
    """Simulated sources as they run.

    Bounds hold between their clocks: what a source has promised binds others as its rows do.

    Attributes:
        matrix: the bounds that they obey; closed, if paths that begin with counted rows are not to be missed.
        behaviour: what else they do.
        random: decides.
        now: the wall clock (microseconds).
        least: per source, the instant that the timestamps of its further rows are above.
    """

    matrix: SkewMatrix
    behaviour: Behaviour
    random: Random
    now: int = 0
    least: list[int] = field(default_factory=list)
    _pausing: list[bool] = field(default_factory=list)
    _timed: list[tuple[int, int, int]] = field(default_factory=list)
    _counted: list[tuple[int, int, int, int]] = field(default_factory=list)
    _reached: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.least = [BEGINNING] * self.matrix.size
        self._pausing = [False] * self.matrix.size
        self._reached = [[] for _ in self.least]

    def run(self, moments: int) -> list[SentRow]:
        """What they send in so many moments, in order of arrival."""
        return sorted(row for _ in range(moments) for row in self._moment())

    def _moment(self) -> list[SentRow]:
        rows = []
        for stream in self.random.sample(range(self.matrix.size), self.matrix.size):
            if self.random.random() < self.behaviour.pauses:
                self._pausing[stream] = not self._pausing[stream]
            if not self._pausing[stream] and self.random.random() < self.behaviour.activity:
                rows.append(self._send(stream))
        self.now += self.behaviour.step
        self._settle()
        return [row for row in rows if self.random.random() >= self.behaviour.lost]

    def _send(self, stream: int) -> SentRow:
        spread = self.behaviour.spread
        passed = self.now // self.behaviour.step
        bottom = max(self.least[stream], passed * self.behaviour.rate - spread)
        row = SentRow(
            self.now + self.random.randint(0, self.matrix.latencies[stream]),
            stream,
            bottom + self.random.randint(1, spread),
            self.now,
        )
        self._counted = [
            (second, wait, rows - (second == stream and wait < self.now), promise)
            for second, wait, rows, promise in self._counted
        ]
        self._bind(stream, row.instant, self.now)
        return row

    def _bind(self, stream: int, instant: int, at: int) -> None:
        """What a row, or a promise, of that timestamp at some time makes the sources promise, and when."""
        reached = self._reached[stream]
        if any(when <= at and other >= instant for when, other in reached):
            return
        reached[:] = [one for one in reached if one[0] < at or one[1] > instant] + [(at, instant)]
        for (first, second), bounds in self.matrix.bounds.items():
            for bound in bounds if first == stream else ():
                promise, when = instant - bound.delta, at + bound.wait
                if bound.rows:
                    self._counted.append((second, when, bound.rows, promise))
                elif first == second and not bound.wait:
                    self.least[second] = max(self.least[second], promise)
                else:
                    self._timed.append((when, second, promise))

    def _settle(self) -> None:
        """Let the promises hold whose time has come, and what follows from them, until nothing more does."""
        while True:
            due = [one for one in self._timed if one[0] < self.now]
            sent = self.now - self.behaviour.step
            due += [(sent, second, promise) for second, _, rows, promise in self._counted if rows <= 0]
            self._timed = [one for one in self._timed if one[0] >= self.now]
            self._counted = [one for one in self._counted if one[2] > 0]
            if not due:
                return
            for when, second, promise in due:
                self.least[second] = max(self.least[second], promise)
                self._bind(second, promise, when)
