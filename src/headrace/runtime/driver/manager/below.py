"""Which windows are below the operators of a graph, with which granules, and of which shares of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headrace.algebra.nodes import BoundedRowWindow, Granularity, Join, Shed, TimeWindow
from headrace.algebra.properties import is_stateful, sources_of
from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, granules_of, tuning_of
from headrace.elements import BoolArray, Float64Array, Int64Array
from headrace.lowering.costs import row_bytes
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.runtime.driver.manager.policy import STEPS
from headrace.steps import WHOLE, StepFunction, value_at
from headrace.time import INFINITY, TimeDomain


@dataclass(frozen=True)
class WindowBelow:
    """The rows of a stream in windows of one size.

    Attributes:
        stream: the stream's name.
        length: the largest size, which it has if it never changes (instants, or rows).
        tuning: what says the size if it may change, or None.
        operator: of a window of rows the identity of its operator, which knows its rows; empty for others.
        is_partitioned: whether a window of rows has them of each partition.
        granule: the finest granule above it, which it has if that never changes (instants).
        granules: what says the granule if it may change, or None.
        share: what says which share of the rows is kept below it, or None.
    """

    stream: str
    length: int
    tuning: Tuning | None
    operator: str = ""
    is_partitioned: bool = False
    granule: int = 1
    granules: Tuning | None = None
    share: Tuning | None = None


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
        tunings: what says sizes and granules that may change, each once, with what its instants count.
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
        return self._numbers([one.tuning for one in self.windows])[self.below]

    @cached_property
    def granule_knobs(self) -> Int64Array:
        """int64[m]: of each window below an operator which tuning says its granule, -1 for none."""
        return self._numbers([one.granules for one in self.windows])[self.below]

    def _numbers(self, tunings: list[Tuning | None]) -> Int64Array:
        numbers = {tuning: number for number, (tuning, _) in enumerate(self.tunings)}
        found = [-1 if tuning is None else numbers[tuning] for tuning in tunings]
        return np.array(found, dtype=np.int64)

    @cached_property
    def granules(self) -> Float64Array:
        """float64[m]: the finest granules above these windows (instants)."""
        return np.array([one.granule for one in self.windows], dtype=np.float64)[self.below]

    @cached_property
    def lengths(self) -> Float64Array:
        """float64[m]: the largest sizes of these windows (instants, or rows)."""
        return np.array([one.length for one in self.windows], dtype=np.float64)[self.below]

    @cached_property
    def of_stream(self) -> dict[str, list[int]]:
        """By stream the numbers of the windows of time that have its rows."""
        found: dict[str, list[int]] = {}
        for number, window in enumerate(self.windows):
            if not window.operator:
                found.setdefault(window.stream, []).append(number)
        return found

    @cached_property
    def of_rows(self) -> tuple[int, ...]:
        """The numbers of the windows of rows."""
        return tuple(number for number, window in enumerate(self.windows) if window.operator)

    @cached_property
    def over_rows(self) -> BoolArray:
        """bool[n]: whether a window of rows is below each operator."""
        found = np.zeros(len(self.operators), dtype=np.bool_)
        found[self.owners[np.isin(self.below, np.array(self.of_rows, dtype=np.int64))]] = True
        return found

    @cached_property
    def shortest(self) -> dict[str, int]:
        """By stream the smallest size that a window of time of it may have (instants)."""
        found: dict[str, int] = {}
        for one in self.windows:
            if not one.operator:
                length = one.length if one.tuning is None else one.tuning.smallest
                found[one.stream] = min(length, found.get(one.stream, length))
        return found

    @cached_property
    def bounds(self) -> tuple[Int64Array, Int64Array]:
        """Two int64[k]: the numbers that the tunings allow with which the least is needed, and the most.

        The smallest and the largest sizes; the coarsest and the finest granules.
        """
        found = [(_other(tuning), tuning.first) for tuning, _ in self.tunings]
        least, most = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return least, most

    @cached_property
    def granule_steps(self) -> tuple[Int64Array, Int64Array]:
        """Which tunings are granules, and those they come to; see `Knobs.places` and `Knobs.steps`."""
        granules = [tuning.kind is TuningKind.GRANULE for tuning, _ in self.tunings]
        places = np.flatnonzero(granules)
        steps = np.zeros((STEPS + 1, len(places)), dtype=np.int64)
        for column, place in enumerate(places.tolist()):
            tuning = self.tunings[place][0]
            allowed = np.array(granules_of(tuning), dtype=np.int64)
            for step in range(STEPS + 1):
                goal = tuning.largest - (tuning.largest - tuning.smallest) * step // STEPS
                steps[step, column] = allowed[np.abs(allowed - goal).argmin()]
        return places, steps

    @cached_property
    def above_granules(self) -> dict[Tuning, int]:
        """For how long rows stay at most that have a granule (instants), by what says the granule."""
        found: dict[Tuning, int] = {}
        for one in self.windows:
            if one.granules is not None:
                found[one.granules] = max(one.length, found.get(one.granules, 0))
        return found


def _other(tuning: Tuning) -> int:
    """The bound that is not the first value."""
    return tuning.largest if tuning.first == tuning.smallest else tuning.smallest


@dataclass(frozen=True, eq=False)
class SizedRows:
    """Which rows of a stream have which sizes in its windows, which granules, and which share is kept.

    Attributes:
        owners: int64[s], the windows.
        begins, ends: float64[s], from which instant on, and up to which one, rows have these.
        sizes: float64[s], the size (instants).
        granules: float64[s], the granule (instants).
        shares: float64[s], the share, from 0 to 1.
    """

    owners: Int64Array
    begins: Float64Array
    ends: Float64Array
    sizes: Float64Array
    granules: Float64Array
    shares: Float64Array


def sized_rows(below: WindowsBelow, tunings: Tunings) -> dict[str, SizedRows]:
    """By stream which of its rows have which sizes in the windows below operators.

    Args:
        below: the windows.
        tunings: the numbers that have changed.
    """
    found = {}
    for stream, numbers in below.of_stream.items():
        segments: list[tuple[float, ...]] = []
        for number in numbers:
            window = below.windows[number]
            changes = [
                (window.length, _steps(window.tuning, tunings)),
                (window.granule, _steps(window.granules, tunings)),
                (WHOLE, _steps(window.share, tunings)),
            ]
            begins = sorted({step.begin for _, steps in changes for step in steps})
            for begin, end in zip([-np.inf, *begins], [*begins, np.inf], strict=True):
                values = (
                    first if begin == -np.inf else value_at(first, steps, int(begin))
                    for first, steps in changes
                )
                segments.append((number, begin, end, *values))
        owners, *rest = np.array(segments, dtype=np.float64).T
        begins_, ends, sizes, granules, shares = rest
        found[stream] = SizedRows(owners.astype(np.int64), begins_, ends, sizes, granules, shares / WHOLE)
    return found


def _steps(tuning: Tuning | None, tunings: Tunings) -> StepFunction:
    known = None if tuning is None else tunings.get(tuning)
    return () if known is None else known.steps


@dataclass(frozen=True, eq=False)
class RowsUnder:
    """The windows under the nodes of a graph, by their numbers.

    Attributes:
        windows: those whose rows a node yields, or what follows from them.
        joins: how many joins of such rows are on the way up to it, itself included.
        tunings: what says sizes and granules that may change, with what its instants count.
    """

    windows: list[frozenset[WindowBelow]]
    joins: list[int]
    tunings: dict[Tuning, TimeDomain]


def rows_under(graph: Graph) -> RowsUnder:
    """The windows under the nodes of a graph."""
    found, joins, tunings = list[frozenset[WindowBelow]](), list[int](), dict[Tuning, TimeDomain]()
    shares = list[Tuning | None]()
    for node in graph.nodes:
        inputs, plan = [edge.producer for edge in node.inputs], node.plan
        under = frozenset[WindowBelow]().union(*(found[number] for number in inputs))
        share = next((shares[number] for number in inputs if shares[number] is not None), None)
        both = isinstance(plan, Join) and all(found[number] for number in inputs)
        match plan:
            case TimeWindow() | BoundedRowWindow():
                under = frozenset(_rows_in(node, share))
                tunings.update((one.tuning, plan.domain) for one in under if one.tuning is not None)
            case Granularity(granule=granule):
                tuning = tuning_of(plan)
                under = frozenset(replace(one, granule=granule.length, granules=tuning) for one in under)
                tunings.update(() if tuning is None else [(tuning, plan.domain)])
            case Shed():
                share = tuning_of(plan)
                under = frozenset(replace(one, share=share) for one in under)
        found.append(under)
        shares.append(share)
        joins.append(max((joins[number] for number in inputs), default=0) + both)
    return RowsUnder(found, joins, tunings)


def windows_below(graph: Graph) -> WindowsBelow:
    """The operators of a graph that keep what is in windows of a finite size."""
    under = rows_under(graph)
    kept = [node for node in graph.nodes if is_stateful(node.plan) and rows_below(node, under)]
    degrees = [1.0 + max(under.joins[edge.producer] for edge in node.inputs) for node in kept]
    return windows_of(graph, kept, [rows_below(node, under) for node in kept], degrees, under.tunings)


def windows_of(
    graph: Graph,
    nodes: Sequence[Node],
    windows: Sequence[frozenset[WindowBelow]],
    degrees: Sequence[float],
    tunings: Mapping[Tuning, TimeDomain],
) -> WindowsBelow:
    """Some operators of a graph as their needs depend on windows.

    Args:
        graph: the graph.
        nodes: the operators.
        windows: for each of them those that it depends on.
        degrees: for each of them how it does.
        tunings: what says sizes and granules that may change.
    """
    numbers: dict[WindowBelow, int] = {}
    owners: list[int] = []
    below: list[int] = []
    for place, found in enumerate(windows):
        for one in sorted(found, key=_order):
            owners.append(place)
            below.append(numbers.setdefault(one, len(numbers)))
    return WindowsBelow(
        tuple(node.identity for node in nodes),
        tuple(node.shape for node in nodes),
        np.array(degrees, dtype=np.float64),
        np.array([row_bytes(graph, node) for node in nodes], dtype=np.float64),
        tuple(numbers),
        np.array(owners, dtype=np.int64),
        np.array(below, dtype=np.int64),
        tuple(tunings.items()),
    )


def rows_below(node: Node, under: RowsUnder) -> frozenset[WindowBelow]:
    """The windows whose rows an operator keeps: of a window of rows its own."""
    if isinstance(node.plan, BoundedRowWindow):
        return under.windows[node.number]
    return frozenset[WindowBelow]().union(*(under.windows[edge.producer] for edge in node.inputs))


def _order(one: WindowBelow) -> tuple[object, ...]:
    tunings = (one.tuning, one.granules, one.share)
    return (one.stream, one.length, one.operator, one.granule, *(tuning or () for tuning in tunings))


def _rows_in(node: Node, share: Tuning | None) -> Iterator[WindowBelow]:
    window = node.plan
    assert isinstance(window, TimeWindow | BoundedRowWindow)
    tuning = tuning_of(window)
    names = sorted({source.name for source in sources_of(window)})
    if isinstance(window, BoundedRowWindow):
        yield WindowBelow(names[0], window.rows, tuning, node.identity, bool(window.keys))
    elif window.size.length != INFINITY:
        # The size that it has now is not what names it.
        for name in names:
            yield WindowBelow(name, window.size.length, tuning, share=share)
