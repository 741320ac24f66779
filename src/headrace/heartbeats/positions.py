"""Bounds of a stream with itself, row by row: which rows are late by those that came long enough before.

`DISORDER n ROWS` is the bound `(n, 1)`, which may hold besides others (Srivastava and Widom, PODS 2004,
section 3.1). A row is judged by its position in the stream, so that how the rows are cut into epochs does
not matter. It is late if any of the bounds forbids it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Arrivals, Judgement, advance, furthest_limit
from headrace.heartbeats.counting import Counting, Due, added, step_of, taken
from headrace.heartbeats.skew import Bound
from headrace.kernels.instants.disorder import furthest_behind
from headrace.time import BEGINNING


@dataclass(frozen=True)
class Positions:
    """How far the rows of a stream have been counted.

    Attributes:
        bounds: of the stream with itself, that count rows and wait for nothing else.
        disorder: how much older than the newest row before it a row may be (instants), or None for any age.
        counting: what the rows will promise by each of the bounds, by the number of rows that will have come.
        rows: how many have come.
        heartbeat: what they promise, or was promised otherwise (instant).
    """

    bounds: tuple[Bound, ...]
    disorder: int | None
    counting: tuple[Counting, ...]
    rows: int
    heartbeat: int

    def judge(self, times: Int64Array) -> tuple[Judgement, Positions]:
        """Judge consecutive rows, each by the rows before it.

        Args:
            times: int64[n], their timestamps, none out of range.

        Returns:
            Which are late, and how far the rows have been counted after them.
        """
        if not len(times):
            return Judgement(Arrivals(), times, times), self
        highest = np.maximum.accumulate(times)
        promised = self._promised(highest)
        limits = np.maximum(promised[:-1], self.heartbeat)
        if self.disorder is not None:
            limits[1:] = np.maximum(limits[1:], highest[:-1] - self.disorder)
        late = np.flatnonzero(times < limits)
        below, end = limits[late], int(promised[-1])
        seen = Arrivals(
            len(times) - len(late),
            len(late),
            0,
            int(highest[-1]),
            int(times.min()),
            furthest_behind(times)[0],
            promise=end,
            **furthest_limit(below),
        )
        counting = tuple(
            replace(one, counted=self._due(bound, one, highest))
            for bound, one in zip(self.bounds, self.counting, strict=True)
        )
        heartbeat = advance(max(self.heartbeat, end), int(highest[-1]), self.disorder)
        after = replace(self, counting=counting, rows=self.rows + len(times), heartbeat=heartbeat)
        return Judgement(seen, late, below), after

    def _promised(self, highest: Int64Array) -> Int64Array:
        """int64[n + 1], what the rows promise before each of n rows, and after the last one (instants).

        Args:
            highest: int64[n], the largest timestamp of the rows up to each.
        """
        come = self.rows + np.arange(len(highest) + 1)
        promised = np.full(len(come), BEGINNING)
        for bound, counting in zip(self.bounds, self.counting, strict=True):
            known = np.array([(0, BEGINNING), *counting.counted], dtype=np.int64)
            counted = known[np.searchsorted(known[:, 0], come, side="right") - 1, 1]
            step = step_of(bound.rows)
            newest = come // step * step - bound.rows - self.rows - 1
            of_these = newest >= 0
            counted[of_these] = np.maximum(counted[of_these], highest[newest[of_these]] - bound.delta + 1)
            promised = np.maximum(promised, counted)
        return promised

    def _due(self, bound: Bound, counting: Counting, highest: Int64Array) -> Due:
        """What the rows so far will promise by a bound, by the number of rows that will have come."""
        step, come = step_of(bound.rows), self.rows + len(highest)
        _, due = taken(counting.counted, come)
        first = max(0, len(highest) - bound.rows - step)
        numbers = self.rows + np.arange(first, len(highest)) + 1 + bound.rows
        when = -(-numbers // step) * step
        # The last row of each step has the largest timestamp.
        last = np.flatnonzero(np.append(when[1:] > when[:-1], True) & (when > come))
        for place in last.tolist():
            due = added(due, int(when[place]), int(highest[first + place]) - bound.delta + 1)
        return due
