"""What heartbeats are generated from: bounds and policies of some streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from headrace.algebra.endings import Endings
from headrace.elements import BoolArray, Int64Array
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.groups import GroupedMatrix
from headrace.heartbeats.steps import BoundSteps
from headrace.heartbeats.together import Together
from headrace.time import INFINITY


@dataclass(frozen=True)
class SilencePolicy:
    """What is assumed of a stream that sends nothing, though no bound says it.

    Attributes:
        idle_after: after how long without rows it no longer holds others back (microseconds of counted time):
            its heartbeat then is the smallest of the streams read with it that are not idle. None: never.
        behind: how far the timestamp of a row may be behind the clock when the row comes (microseconds).
            None: any.
        timeout: after how long without rows on it and all the streams read with it its heartbeat passes all
            rows that came on them (microseconds of counted time; section 3.4), and the windows that hold
            them. None: never. The same holds once all of them are idle.
    """

    idle_after: int | None = None
    timeout: int | None = None
    behind: int | None = None


class Awaited(NamedTuple):
    """The windows and sessions of a query, which a silence of all its streams ends.

    Attributes:
        places: the numbers of the streams, by name.
        endings: what their rows wait for.
    """

    places: dict[str, int]
    endings: Endings


class TimedBounds(NamedTuple):
    """Time-based bounds as arrays.

    Attributes:
        steps: from rows to what they promise.
        second: int64[kinds], the stream that each kind is to.
        wait: int64[kinds], of the bounds and the latency of that stream (microseconds).
        own: bool[kinds], whether the bounds are from that stream to itself.
    """

    steps: BoundSteps
    second: Int64Array
    wait: Int64Array
    own: BoolArray


class Counted(NamedTuple):
    """Tuple-based bounds as arrays.

    Attributes:
        steps: from rows to what they promise once others are counted.
        starts: per kind the stream it is to, and its counting with nothing counted yet.
    """

    steps: BoundSteps
    starts: tuple[tuple[int, Counting], ...]


@dataclass(frozen=True)
class Rules:
    """Bounds and policies of some streams.

    Attributes:
        matrix: the bounds, with what follows from them if that is wanted.
        policies: of each stream.
        together: the numbers of the streams that each query reads.
        awaited: of queries with windows or sessions that end.
        granule: promises that are due later hold at a multiple of this (microseconds of counted time): a
            larger one costs less memory and up to that much time (section 5.1).
        follows_on: whether promises that are not timestamps of rows, such as heartbeats that a source
            sends, say something of other streams too: what closure is for bounds.
    """

    matrix: GroupedMatrix
    policies: tuple[SilencePolicy, ...]
    granule: int
    follows_on: bool = True
    together: tuple[tuple[int, ...], ...] = ()
    awaited: tuple[Awaited, ...] = ()

    @cached_property
    def timed(self) -> TimedBounds:
        """The time-based bounds."""
        steps = BoundSteps.of(self.matrix, lambda bound: not bound.rows)
        columns = np.array(steps.kinds, dtype=np.int64).reshape(-1, 4)
        second, wait, _, own = np.ascontiguousarray(columns.T)
        return TimedBounds(steps, second, wait, own.astype(bool))

    @cached_property
    def counted(self) -> Counted:
        """The tuple-based bounds."""
        steps = BoundSteps.of(self.matrix, lambda bound: bound.rows > 0)
        starts = ((kind.second, Counting(kind.wait, kind.rows, kind.own)) for kind in steps.kinds)
        return Counted(steps, tuple(starts))

    @cached_property
    def width(self) -> int:
        """How many granules after the present one something can be due."""
        longest: int = max((0, *self.timed.wait.tolist(), *self.matrix.matrix.latencies))
        return -(-longest // self.granule) + 1

    @cached_property
    def meeting(self) -> Together:
        """Which streams are read together."""
        return Together.of(self.together, len(self.policies))

    @cached_property
    def has_policies(self) -> bool:
        """Whether anything is assumed of streams that send nothing."""
        return any(policy != SilencePolicy() for policy in self.policies)

    @cached_property
    def needs_clocks(self) -> bool:
        """Whether heartbeats depend on time, or on which streams are caught up."""
        return self.has_policies or self.width > 1 or bool(self.matrix.pairs)

    @cached_property
    def idle_after(self) -> Int64Array:
        """int64[streams] (microseconds), INFINITY for never."""
        return _or_never(policy.idle_after for policy in self.policies)

    @cached_property
    def timeouts(self) -> Int64Array:
        """int64[streams] (microseconds), INFINITY for never."""
        return _or_never(policy.timeout for policy in self.policies)

    @cached_property
    def behind(self) -> Int64Array:
        """int64[streams] (microseconds), INFINITY for any."""
        return _or_never(policy.behind for policy in self.policies)


def _or_never(lengths: Iterable[int | None]) -> Int64Array:
    return np.array([INFINITY if length is None else length for length in lengths], dtype=np.int64)


def granule_for(matrix: GroupedMatrix) -> int:
    """A granule of which 64 are enough, or fewer where there are very many streams (microseconds)."""
    bounds = matrix.matrix.bounds.values()
    waits = (bound.wait for some in bounds for bound in some)
    longest: int = max((0, *waits)) + max((0, *matrix.matrix.latencies))
    granules = min(_GRANULES, max(_CELLS // max(matrix.size, 1), 1))
    return max(1, (longest + granules - 1) // granules)


_GRANULES: Final = 64
"""Into how many parts the longest wait is divided."""

_CELLS: Final = 2**18
"""How many promises the arrays of all streams have room for, about; then there are fewer granules."""
