"""Line 4 of figure 2 for many bounds at once: what an epoch's rows promise of streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats.groups import GroupedMatrix
from headrace.heartbeats.skew import Bound
from headrace.kernels.instants.promises import promised


class BoundKind(NamedTuple):
    """Bounds that promise something of the same stream at the same time.

    Attributes:
        second: the number of the stream.
        wait: of the bounds, and the latency of the stream (microseconds).
        rows: how many of its rows have to be counted first.
        own: whether the bounds are from that stream to itself.
    """

    second: int
    wait: int
    rows: int
    own: bool


@dataclass(frozen=True, eq=False)
class BoundSteps:
    """Bounds as arrays, for `kernels.promises.promised`, which says what most of them hold.

    A stream's own bounds look at its own newest row; those from others of its group at the newest row of
    these; and those from other groups are worked out for its whole group at once.

    Attributes:
        kinds: of the bounds, in order.
        begins, source, delta: which bounds are of each kind, and what they look at.
        group_of: int64[streams].
        groups: how many groups there are.
        crossing, first, behind: the bounds between groups.
    """

    kinds: tuple[BoundKind, ...]
    begins: Int64Array
    source: Int64Array
    delta: Int64Array
    group_of: Int64Array
    groups: int
    crossing: Int64Array
    first: Int64Array
    behind: Int64Array

    @classmethod
    def of(cls, matrix: GroupedMatrix, taken: Callable[[Bound], bool]) -> BoundSteps:
        """The bounds of a matrix that are taken."""
        size, latencies = matrix.size, matrix.latencies.tolist()
        beside, crossing = _between(matrix, taken)
        found: list[tuple[BoundKind, int, int]] = []

        def add(stream: int, wait: int, rows: int, own: bool, source: int, delta: int) -> None:
            found.append((BoundKind(stream, wait + latencies[stream], rows, own), source, delta))

        for number, group in enumerate(matrix.groups):
            for bound in filter(taken, matrix.own(number)):
                for stream in group:
                    add(stream, bound.wait, bound.rows, True, stream, bound.delta)
            for bound in beside.get(number, ()):
                for stream in group:
                    add(stream, bound.wait, bound.rows, False, size + stream, bound.delta)
        for place, (number, wait, rows) in enumerate(crossing):
            for stream in matrix.groups[number]:
                add(stream, wait, rows, False, 2 * size + place, 0)
        found.sort()
        counts = Counter(kind for kind, _, _ in found)
        return cls(
            tuple(counts),
            _begins(counts.values()),
            _column(source for _, source, _ in found),
            _column(delta for _, _, delta in found),
            matrix.group_of,
            len(matrix.groups),
            _begins(map(len, crossing.values())),
            _column(first for part in crossing.values() for first, _ in part),
            _column(delta for part in crossing.values() for _, delta in part),
        )

    def promised(self, news: Int64Array) -> Int64Array:
        """What an epoch's rows promise: int64[kinds] (instants), BEGINNING where nothing.

        Args:
            news: int64[streams], the newest row of each in the epoch (instant), BEGINNING where none came.
        """
        return promised(
            news,
            self.group_of,
            self.groups,
            self.first,
            self.behind,
            self.crossing,
            self.source,
            self.delta,
            self.begins,
        )


Crossing = dict[tuple[int, int, int], list[tuple[int, int]]]
"""Bounds between groups: by the group they are to, wait and number of rows, those that they are from and how
far they are behind."""


def _between(
    matrix: GroupedMatrix, taken: Callable[[Bound], bool]
) -> tuple[dict[int, list[Bound]], Crossing]:
    """The bounds between the streams of each group, and those between groups."""
    beside: dict[int, list[Bound]] = {}
    crossing: Crossing = {}
    for first, second, bounds in matrix.pairs:
        for bound in filter(taken, bounds):
            if first == second:
                beside.setdefault(second, []).append(bound)
            else:
                crossing.setdefault((second, bound.wait, bound.rows), []).append((first, bound.delta))
    return beside, crossing


def _column(numbers: Iterable[int]) -> Int64Array:
    return np.fromiter(numbers, dtype=np.int64)


def _begins(sizes: Iterable[int]) -> Int64Array:
    """Where parts of these sizes begin, one after the other, and where the last one ends."""
    return np.cumsum([0, *sizes], dtype=np.int64)
