"""Which windows are below the operators of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.algebra.nodes import Join, TimeWindow
from headrace.algebra.properties import is_stateful, sources_of
from headrace.algebra.tunings.tunings import Tuning, Tunings, tuning_of
from headrace.elements import Float64Array, Int64Array
from headrace.lowering.costs import row_bytes
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.time import INFINITY, TimeDomain


@dataclass(frozen=True)
class WindowBelow:
    """The rows of a stream in windows of one size.

    Attributes:
        stream: the stream's name.
        length: the size if it never changes (instants).
        tuning: what says the size if it may change, or None.
    """

    stream: str
    length: int
    tuning: Tuning | None


@dataclass(frozen=True, eq=False)
class WindowsBelow:
    """The operators of a graph that keep what is in windows.

    Attributes:
        operators: their identities.
        shapes: what they compute, whoever asks for it.
        degrees: float64[n], see `Load.degrees`.
        guesses: float64[n], about how many bytes they keep for a row of their inputs.
        windows: the windows below them, each once.
        owners: int64[m], for each operator and each window below it the operator, increasing.
        below: int64[m], for each of these the window.
        tunings: what says the sizes of windows, each once, with what its instants count.
    """

    operators: tuple[str, ...]
    shapes: tuple[str, ...]
    degrees: Float64Array
    guesses: Float64Array
    windows: tuple[WindowBelow, ...]
    owners: Int64Array
    below: Int64Array
    tunings: tuple[tuple[Tuning, TimeDomain], ...]

    @cached_property
    def knobs(self) -> Int64Array:
        """int64[m]: of each window below an operator which tuning says its size, -1 for none."""
        numbers = {tuning: number for number, (tuning, _) in enumerate(self.tunings)}
        found = [-1 if one.tuning is None else numbers[one.tuning] for one in self.windows]
        return np.array(found, dtype=np.int64)[self.below]

    @cached_property
    def lengths(self) -> Float64Array:
        """float64[m]: the largest sizes of these windows (instants)."""
        return np.array([one.length for one in self.windows], dtype=np.float64)[self.below]

    @cached_property
    def of_stream(self) -> dict[str, list[int]]:
        """By stream the numbers of the windows that have its rows."""
        found: dict[str, list[int]] = {}
        for number, window in enumerate(self.windows):
            found.setdefault(window.stream, []).append(number)
        return found

    @cached_property
    def shortest(self) -> dict[str, int]:
        """By stream the smallest size that a window of it may have (instants)."""
        found: dict[str, int] = {}
        for one in self.windows:
            length = one.length if one.tuning is None else one.tuning.smallest
            found[one.stream] = min(length, found.get(one.stream, length))
        return found

    @cached_property
    def bounds(self) -> tuple[Int64Array, Int64Array]:
        """Two int64[k]: the smallest and the largest sizes that the tunings allow (instants)."""
        found = [(tuning.smallest, tuning.largest) for tuning, _ in self.tunings]
        smallest, largest = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return smallest, largest


@dataclass(frozen=True, eq=False)
class SizedRows:
    """Which rows of a stream have which sizes in its windows.

    Attributes:
        owners: int64[s], the windows.
        begins, ends: float64[s], from which instant on, and up to which one, rows have the size.
        sizes: float64[s], the size (instants).
    """

    owners: Int64Array
    begins: Float64Array
    ends: Float64Array
    sizes: Float64Array


def sized_rows(below: WindowsBelow, tunings: Tunings) -> dict[str, SizedRows]:
    """By stream which of its rows have which sizes in the windows below operators.

    Args:
        below: the windows.
        tunings: the sizes that have changed.
    """
    found = {}
    for stream, numbers in below.of_stream.items():
        segments: list[tuple[int, float, float, int]] = []
        for number in numbers:
            window = below.windows[number]
            known = None if window.tuning is None else tunings.get(window.tuning)
            steps = () if known is None else known.steps
            begins = [-np.inf, *(float(step.begin) for step in steps)]
            sizes = [window.length, *(step.value for step in steps)]
            segments += zip([number] * len(begins), begins, [*begins[1:], np.inf], sizes, strict=True)
        owners, *rest = zip(*segments, strict=True)
        found[stream] = SizedRows(np.array(owners), *(np.array(part, dtype=np.float64) for part in rest))
    return found


def windows_below(graph: Graph) -> WindowsBelow:
    """The operators of a graph that keep what is in windows of a finite size."""
    found: list[frozenset[WindowBelow]] = []
    joins: list[int] = []
    numbers: dict[WindowBelow, int] = {}
    tunings: dict[Tuning, TimeDomain] = {}
    kept: list[Node] = []
    owners: list[int] = []
    below: list[int] = []
    for node in graph.nodes:
        inputs = [edge.producer for edge in node.inputs]
        under = frozenset[WindowBelow]().union(*(found[number] for number in inputs))
        if is_stateful(node.plan) and under:
            for one in sorted(under, key=lambda one: (one.stream, one.length, one.tuning or ())):
                owners.append(len(kept))
                below.append(numbers.setdefault(one, len(numbers)))
            kept.append(node)
        if isinstance(node.plan, TimeWindow):
            under = frozenset(_rows_in(node.plan))
            tunings.update((one.tuning, node.plan.domain) for one in under if one.tuning is not None)
        found.append(under)
        powers = [joins[number] for number in inputs]
        both = isinstance(node.plan, Join) and all(found[number] for number in inputs)
        joins.append(max(powers, default=0) + both)
    degrees = [1.0 + max(joins[edge.producer] for edge in node.inputs) for node in kept]
    guesses = [row_bytes(graph, node) for node in kept]
    return WindowsBelow(
        tuple(node.identity for node in kept),
        tuple(node.shape for node in kept),
        np.array(degrees, dtype=np.float64),
        np.array(guesses, dtype=np.float64),
        tuple(numbers),
        np.array(owners, dtype=np.int64),
        np.array(below, dtype=np.int64),
        tuple(tunings.items()),
    )


def _rows_in(window: TimeWindow) -> Iterator[WindowBelow]:
    if window.size.length != INFINITY:
        tuning = tuning_of(window)
        # The size that it has now is not what names it.
        for source in sources_of(window):
            yield WindowBelow(source.name, window.size.length, tuning)
