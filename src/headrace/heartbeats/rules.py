"""What heartbeats are generated from: bounds and policies of some streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.skew import SkewMatrix
from headrace.time import INFINITY


@dataclass(frozen=True)
class Policy:
    """What is assumed of a stream that sends nothing, though no bound says it.

    Attributes:
        idle_after: after how long without rows it no longer holds others back (microseconds of counted time):
            its heartbeat then is the smallest of the streams beside it that are not idle. None: never.
        timeout: after how long without rows on it and all the streams beside it its heartbeat passes all rows
            that came on them (microseconds of counted time; section 3.4). None: never.
        beside: the numbers of the streams that it meets in some query.
    """

    idle_after: int | None = None
    timeout: int | None = None
    beside: tuple[int, ...] = ()


class Timed(NamedTuple):
    """Time-based bounds as arrays, by the stream they are to, then by wait, then by whether from itself.

    Attributes:
        first: int64[bounds], the stream they are from.
        delta: int64[bounds] (instants).
        groups: int64[groups], where those with one `second`, `wait` and `own` begin.
        second: int64[groups], the stream they are to.
        wait: int64[groups], of the bound and the latency of that stream (microseconds).
        own: int64[groups], 1 for bounds from that stream to itself, else 0.
    """

    first: Int64Array
    delta: Int64Array
    groups: Int64Array
    second: Int64Array
    wait: Int64Array
    own: Int64Array


class Counted(NamedTuple):
    """Tuple-based bounds as arrays, by the stream they are to, wait, number of rows, and whether from itself.

    Attributes:
        first: int64[bounds], the stream they are from.
        delta: int64[bounds] (instants).
        groups: int64[groups], where those that are counted together begin.
        starts: per group the stream they are to, and its counting with nothing counted yet.
    """

    first: Int64Array
    delta: Int64Array
    groups: Int64Array
    starts: tuple[tuple[int, Counting], ...]


@dataclass(frozen=True)
class Rules:
    """Bounds and policies of some streams.

    Attributes:
        matrix: the bounds, with what follows from them if that is wanted.
        policies: of each stream.
        granule: promises that are due later hold at a multiple of this (microseconds of counted time): a
            larger one costs less memory and up to that much time (section 5.1).
        follows_on: whether promises that are not timestamps of rows, such as heartbeats that a source
            sends, say something of other streams too: what closure is for bounds.
    """

    matrix: SkewMatrix
    policies: tuple[Policy, ...]
    granule: int
    follows_on: bool = True

    @cached_property
    def timed(self) -> Timed:
        """The time-based bounds."""
        found = sorted(
            (second, bound.wait + self.matrix.latencies[second], first == second, first, bound.delta)
            for (first, second), bounds in self.matrix.bounds.items()
            for bound in bounds
            if bound.rows == 0
        )
        columns = np.array(found, dtype=np.int64).reshape(-1, 5)
        kinds, groups = np.unique(columns[:, :3], axis=0, return_index=True)
        first, delta = np.ascontiguousarray(columns[:, 3:].T)
        return Timed(first, delta, groups, *np.ascontiguousarray(kinds.T))

    @cached_property
    def counted(self) -> Counted:
        """The tuple-based bounds."""
        latencies = self.matrix.latencies
        found = sorted(
            (second, bound.wait + latencies[second], bound.rows, first == second, first, bound.delta)
            for (first, second), bounds in self.matrix.bounds.items()
            for bound in bounds
            if bound.rows
        )
        columns = np.array(found, dtype=np.int64).reshape(-1, 6)
        kinds, groups = np.unique(columns[:, :4], axis=0, return_index=True)
        counting = ((second, Counting(wait, rows, bool(own))) for second, wait, rows, own in kinds.tolist())
        first, delta = np.ascontiguousarray(columns[:, 4:].T)
        return Counted(first, delta, groups, tuple(counting))

    @cached_property
    def width(self) -> int:
        """How many granules after the present one something can be due."""
        longest: int = max((0, *self.timed.wait.tolist(), *self.matrix.latencies))
        return -(-longest // self.granule) + 1

    @cached_property
    def beside(self) -> np.ndarray:
        """bool[streams, streams], which streams meet."""
        found = np.zeros((len(self.policies),) * 2, dtype=bool)
        for place, policy in enumerate(self.policies):
            found[place, list(policy.beside)] = True
        return found

    @cached_property
    def around(self) -> np.ndarray:
        """bool[streams, streams], which streams meet, each itself among them."""
        return self.beside | np.eye(len(self.policies), dtype=bool)

    @cached_property
    def has_policies(self) -> bool:
        """Whether anything is assumed of streams that send nothing."""
        return any(policy.idle_after is not None or policy.timeout is not None for policy in self.policies)

    @cached_property
    def needs_clocks(self) -> bool:
        """Whether heartbeats depend on time, or on which streams are caught up."""
        between = any(first != second for first, second in self.matrix.bounds)
        return self.has_policies or self.width > 1 or between

    @cached_property
    def idle_after(self) -> Int64Array:
        """int64[streams] (microseconds), INFINITY for never."""
        return _or_never(policy.idle_after for policy in self.policies)

    @cached_property
    def timeouts(self) -> Int64Array:
        """int64[streams] (microseconds), INFINITY for never."""
        return _or_never(policy.timeout for policy in self.policies)


def _or_never(lengths: Iterable[int | None]) -> Int64Array:
    return np.array([INFINITY if length is None else length for length in lengths], dtype=np.int64)


def granule_for(matrix: SkewMatrix, granules: int = 64) -> int:
    """A granule of which that many are enough (microseconds)."""
    waits = (bound.wait for bounds in matrix.bounds.values() for bound in bounds)
    longest: int = max((0, *waits)) + max((0, *matrix.latencies))
    return max(1, (longest + granules - 1) // granules)
