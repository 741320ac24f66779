"""A forecast of processor time from the rows that come and what operators took for theirs, as a `Load`.

What is measured of an operator says how far the constants of the cost model are from this machine and these
rows; the model says how the time depends on what is taken, yielded and kept. So the time that is expected
with other sizes is what was measured, times the model with these sizes, by the model with those of then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from headrace.algebra.by_object import ByObject
from headrace.algebra.nodes import Join
from headrace.algebra.properties import is_stateful
from headrace.elements import Float64Array, Int64Array
from headrace.lowering.costs import unit_seconds
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.capacity import Box, from_streams, rates_in
from headrace.runtime.driver.facts.looks import RecentLooks, RowsWaiting
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import WORKED, KeyedSums
from headrace.runtime.driver.manager.below import WindowsBelow, rows_below, rows_under, windows_of
from headrace.runtime.driver.manager.forecast import FEW_COMMITS, Forecast
from headrace.runtime.driver.manager.load import Load
from headrace.runtime.driver.manager.room import ExpectedOperator

FIRST_COMMITS: Final = 2
"""So many commits of a process are not looked at: they load and compile what later ones use."""
LOOKED_BACK: Final = 15.0
"""For so long a run is looked at before its rates are known, and at most for four times as long (seconds of
wall-clock time): rows may be pushed every few seconds."""

NOT_EXPECTED: Final[Mapping[str, ExpectedOperator]] = {}
_SECONDS, _MODELLED, _TAKEN, _GIVEN, _KEPT, _EPOCHS, _WEIGHTED = range(1, 8)
"""The columns of the sums for each operator, behind the time: what it took, what the model says that it took,
rows in and out, rows kept through epochs, epochs, and rows in the windows below times rows in."""
_BESIDE: Final = ("",)


class TimeTaken(NamedTuple):
    """The processor time of a run since its process began.

    Attributes:
        operators: float64[n], that of each operator, in the graph's order (seconds).
        everything: the time that its epochs took (seconds).
    """

    operators: Float64Array
    everything: float


def time_taken(run: PublishedRun) -> TimeTaken:
    """The processor time that a run has counted."""
    return TimeTaken(run.statistics.operators.total[:, WORKED], run.totals.seconds)


@dataclass(frozen=True, eq=False)
class PartsOfTime:
    """The parts of the time of operators that depend on the windows below them.

    Attributes:
        below: for each part the operator and the windows.
        nodes: int64[p], the number of the operator.
        kinds: int64[p], 0 for what it takes, 1 for what it yields, and 2 for what it keeps.
    """

    below: WindowsBelow
    nodes: Int64Array
    kinds: Int64Array


def parts_of_time(graph: Graph) -> PartsOfTime:
    """The parts of the time of a graph's operators that depend on the windows below them.

    A join yields more for a row that comes the more rows are in the windows of its inputs; so what is above a
    join has more to take, once more for each join on the way. An operator with state keeps what is in the
    windows below it. All else depends on how many rows come, and not on windows.
    """
    under = rows_under(graph)
    nodes, kinds, degrees = [], [], []
    for node in graph.nodes:
        inputs = [edge.producer for edge in node.inputs]
        windows = rows_below(node, under)
        if not inputs or not windows:
            continue
        taken = max(under.joins[number] for number in inputs)
        given = under.joins[node.number] if isinstance(node.plan, Join) else taken
        kept = taken + 1 if is_stateful(node.plan) else 0
        for kind, degree in enumerate((taken, given, kept)):
            if degree:
                nodes.append(node)
                kinds.append(kind)
                degrees.append(float(degree))
    windows_below = [rows_below(node, under) for node in nodes]
    below = windows_of(graph, nodes, windows_below, degrees, under.tunings)
    numbers = [node.number for node in nodes]
    return PartsOfTime(below, np.array(numbers, dtype=np.int64), np.array(kinds, dtype=np.int64))


class Processing:
    """Follows a run, and says what processor time it needs as a function of the sizes of its windows.

    Args:
        forecast: what is known of its windows.
    """

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast
        self._looks = RecentLooks()
        self._commits = 0
        self._units: dict[str, tuple[float, ...]] = {}
        self.forget()

    def forget(self) -> None:
        """Forget what was measured, where nobody measures any more."""
        self._sums, self._beside = KeyedSums.of(7), KeyedSums.of(2).keyed(_BESIDE)
        self._before: tuple[KeyedSums, KeyedSums, float, int] | None = None
        self._looks.looks.clear()

    def measure(self, run: PublishedRun, waiting: RowsWaiting) -> None:
        """Take in what a commit has brought; once for each.

        Args:
            run: what is to be seen of the run.
            waiting: the rows that wait for the next epoch, by live stream.
        """
        self._commits += 1
        if self._commits <= FIRST_COMMITS:
            return
        self._looks.note(run, waiting, LOOKED_BACK)
        graph, statistics = run.queries.graph, run.statistics
        counted, took = statistics.operators, time_taken(run)
        times = KeyedSums(counted.keys, took.operators[:, None], took.operators[:, None])
        before, self._before = self._before, (counted, times, took.everything, run.totals.epochs)
        if before is None:
            return
        brought = counted.total - before[0].keyed(counted.keys).total
        seconds = (times.total - before[1].keyed(counted.keys).total)[:, 0]
        passed, epochs = float(brought[:, 0].max(initial=0.0)), run.totals.epochs - before[3]
        stored = self._forecast.stored(run)
        kept = np.array([stored.get(name, 0) for name in counted.keys], dtype=np.float64) * epochs
        taken, given = _taken(graph, brought[:, 1], brought[:, 2]), brought[:, 2]
        lasted = np.full(len(taken), float(epochs))
        work = np.column_stack([taken, given, kept, lasted])
        modelled = (self._unit_seconds(graph) * work).sum(axis=1)
        inside = self._rows(run, graph)
        found = np.column_stack([seconds, modelled, work, taken * inside])
        self._sums = self._sums.keyed(counted.keys).after(passed, np.maximum(found, 0.0))
        others = max(0.0, took.everything - before[2] - float(seconds.sum()))
        rows = float(taken[_sources(graph)].sum())
        self._beside = self._beside.after(passed, np.array([[others, rows]]))

    def is_ready(self) -> bool:
        """Whether enough was seen of the run to say what it needs."""
        return self._looks.passed >= LOOKED_BACK and self._commits >= FIRST_COMMITS + FEW_COMMITS

    @property
    def used(self) -> float:
        """The cores that were needed lately."""
        passed = float(self._beside.recent[0, 0])
        seconds = float(self._sums.recent[:, _SECONDS].sum() + self._beside.recent[0, 1])
        return seconds / passed if passed else 0.0

    def load(self, run: PublishedRun) -> Load:
        """The processor time that is needed (cores); sizes are in the order of `Forecast.below`'s tunings.

        Args:
            run: the run, as it was measured last.
        """
        graph = run.queries.graph
        return self._load(run, graph, _parts_of_graph(graph), NOT_EXPECTED)

    def uses(
        self, run: PublishedRun, other: Graph | None, expected: Mapping[str, ExpectedOperator]
    ) -> tuple[float, float, float]:
        """The cores that are needed with the smallest windows, those of now, and the largest.

        Args:
            run: the run, as it was measured last.
            other: what would answer its queries instead; if None, what does.
            expected: operators that are not measured yet, by their shapes.
        """
        graph = run.queries.graph if other is None else other
        parts = _parts_of_graph(graph)
        return self._forecast.at_bounds(run, self._load(run, graph, parts, expected), parts.below)

    def _load(
        self, run: PublishedRun, graph: Graph, parts: PartsOfTime, expected: Mapping[str, ExpectedOperator]
    ) -> Load:
        sums = self._sums.keyed(tuple(node.identity for node in graph.nodes)).recent
        is_measured = (sums[:, _TAKEN] > 0) & (sums[:, _MODELLED] > 0) & (sums[:, _EPOCHS] > 0)
        rates = self._looks.rates()
        work = self._work(graph, sums, is_measured, rates, expected)
        needed = _factors(sums, is_measured)[:, None] * self._unit_seconds(graph) * work
        among = needed[parts.nodes, parts.kinds]
        beside, rows = self._beside.recent[0, 1:].tolist()
        fixed = float(needed.sum() - among.sum())
        fixed += beside / rows * sum(rates.values()) if rows else 0.0
        full = np.full(len(sums), np.nan)
        inside = np.divide(sums[:, _WEIGHTED], sums[:, _TAKEN], out=full, where=is_measured)
        return self._forecast.load_by(run, parts.below, max(0.0, fixed), among, inside[parts.nodes])

    def _work(
        self,
        graph: Graph,
        sums: Float64Array,
        is_measured: np.ndarray,
        rates: Mapping[str, float],
        expected: Mapping[str, ExpectedOperator],
    ) -> Float64Array:
        """float64[n, 4]: what operators take, yield, keep through epochs, and the epochs (per second)."""
        passed = float(self._beside.recent[0, 0])
        epochs = float(self._sums.recent[:, _EPOCHS].max(initial=0.0)) / passed if passed else 0.0
        boxes, kept = [], []
        for number, node in enumerate(graph.nodes):
            taken, given, stored, lasted = sums[number, [_TAKEN, _GIVEN, _KEPT, _EPOCHS]].tolist()
            guess = expected.get(node.shape, ExpectedOperator(0.0, 0.0, 1.0))
            measured = bool(is_measured[number])
            inputs = tuple(edge.producer for edge in node.inputs)
            boxes.append(Box(inputs, 0.0, given / taken if measured else guess.selectivity))
            kept.append(stored / lasted if measured else guess.rows)
        taken_each = rates_in(boxes, from_streams(graph, rates))
        given_each = taken_each * np.array([box.selectivity for box in boxes])
        lasting = np.full(len(boxes), epochs)
        return np.column_stack([taken_each, given_each, np.array(kept) * epochs, lasting])

    def _rows(self, run: PublishedRun, graph: Graph) -> Float64Array:
        """float64[n]: the rows in the windows below each operator, 0 where its time depends on none."""
        parts, found = _parts_of_graph(graph), np.zeros(len(graph.nodes))
        found[parts.nodes] = self._forecast.present(run, parts.below)
        return found

    def _unit_seconds(self, graph: Graph) -> Float64Array:
        """float64[n, 4]: by the model the time for a row in, a row out, a row kept, and an epoch."""
        if any(node.identity not in self._units for node in graph.nodes):
            known = self._units
            self._units = {
                node.identity: known.get(node.identity) or unit_seconds(graph, node) for node in graph.nodes
            }
        return np.array([self._units[node.identity] for node in graph.nodes]).reshape(-1, 4)


_parts_of_graph: Final = ByObject(parts_of_time, 4)


def _factors(sums: Float64Array, is_measured: np.ndarray) -> Float64Array:
    """float64[n]: how many times as long as by the model each takes; all together where it is new."""
    took, modelled = sums[is_measured][:, [_SECONDS, _MODELLED]].sum(axis=0).tolist()
    usual = took / modelled if modelled else 1.0
    found = np.full(len(sums), usual)
    np.divide(sums[:, _SECONDS], sums[:, _MODELLED], out=found, where=is_measured)
    return found


def _sources(graph: Graph) -> Sequence[int]:
    return [node.number for node in graph.nodes if not node.inputs]


def _taken(graph: Graph, taken: Float64Array, given: Float64Array) -> Float64Array:
    """float64[n]: what each operator takes; of what is read, what it yields."""
    found, sources = taken.copy(), _sources(graph)
    found[sources] = given[sources]
    return found
