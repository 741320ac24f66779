"""What a run has counted, smoothed, in one place: of every operator, query and stream.

Operators are known by their identities, so that counts survive a change of the plan; what is gone from the
plan is gone from here. Counts begin anew with the process.

In a smoothed sum an epoch counts less as time goes on: half as much after every `HALF_LIFE` of wall-clock
time. The quotient of two such sums is a weighted mean, such as rows per second, or rows out per row in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.lowering.graph import Graph
from headrace.runtime.journal.records import Totals
from headrace.runtime.tasks.counts import Counts, together
from headrace.runtime.tasks.messages import TaskReport
from headrace.runtime.tasks.task import labelled
from headrace.time import BEGINNING, INFINITY, MICROSECONDS

HALF_LIFE: Final = 30.0
"""After so long an epoch counts half (seconds of wall-clock time)."""
GIVEN: Final = 2
"""The column of `Statistics.operators` with the rows out."""
MISSED: Final = 5
"""That with about how many rows were not yielded."""
WORKED: Final = 6
"""That with the seconds of tasks."""


@dataclass(frozen=True, eq=False)
class KeyedSums:
    """Sums for some keys.

    Attributes:
        keys: what the rows are for.
        total: float64[n, k], the sums over all epochs since the key has been there.
        recent: float64[n, k], the smoothed sums. Column 0 of both is the wall-clock time that has passed (s).
    """

    keys: tuple[str, ...]
    total: Float64Array
    recent: Float64Array

    @classmethod
    def of(cls, columns: int) -> KeyedSums:
        """No keys, and so many columns besides the time."""
        return cls((), np.zeros((0, columns + 1)), np.zeros((0, columns + 1)))

    def keyed(self, keys: tuple[str, ...]) -> KeyedSums:
        """The sums for other keys: what is new starts at zero, what is missing is gone."""
        if keys == self.keys:
            return self
        total, recent = (_moved(self.keys, sums, keys, 0.0) for sums in (self.total, self.recent))
        return KeyedSums(keys, total, recent)

    def after(self, passed: float, brought: Float64Array) -> KeyedSums:
        """The sums after an epoch.

        Args:
            passed: the wall-clock time since the epoch before (s).
            brought: float64[n, k - 1], what it brought.
        """
        amounts = np.empty(self.total.shape)
        amounts[:, 0], amounts[:, 1:] = passed, brought
        return KeyedSums(self.keys, self.total + amounts, self.recent * 0.5 ** (passed / HALF_LIFE) + amounts)


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a run has counted.

    Attributes:
        operators: per identity the rows in, the rows out, how many of those have no end, the sum of the
            lifetimes of the others (instants), about how many rows a join that remembers a share of its rows
            did not yield, and the seconds of tasks.
        first, last: int64[n], per operator the smallest and the largest `ts` that it yielded (instants).
        queries: per query the elements that it yielded.
        streams: per stream its rows, those that were set apart included.
        tallies: per identity what an operator counts besides, smoothed; see `Counts.tallies`.
        moved: per stream its heartbeat (instant), and since when it has been there (microseconds since 1970).
        at: when the last epoch was committed (microseconds since 1970).
        graph: the query graph that the operators and queries are those of.
    """

    at: int
    graph: Graph = field(default_factory=lambda: Graph((), ()))
    operators: KeyedSums = field(default_factory=lambda: KeyedSums.of(6))
    first: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    queries: KeyedSums = field(default_factory=lambda: KeyedSums.of(1))
    streams: KeyedSums = field(default_factory=lambda: KeyedSums.of(1))
    moved: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    tallies: Mapping[str, Float64Array] = field(default_factory=dict)

    def keyed(self, graph: Graph, streams: Mapping[str, int], at: int) -> Statistics:
        """The same for another plan.

        Args:
            graph: the query graph.
            streams: the heartbeats of the streams that it reads (instants).
            at: when they got there, if they were elsewhere before (microseconds since 1970).
        """
        moved = {name: _since(self.moved.get(name), heartbeat, at) for name, heartbeat in streams.items()}
        if graph is self.graph and moved.keys() == self.moved.keys():
            return replace(self, moved=moved)
        identities = tuple(node.identity for node in graph.nodes)
        known = self.operators.keys
        return Statistics(
            self.at,
            graph,
            self.operators.keyed(identities),
            _moved(known, self.first, identities, INFINITY),
            _moved(known, self.last, identities, BEGINNING),
            self.queries.keyed(tuple(name for name, _ in graph.outputs)),
            self.streams.keyed(tuple(streams)),
            moved,
            {one: self.tallies[one] for one in identities if one in self.tallies},
        )

    def after(self, reports: Sequence[TaskReport], before: Totals, then: Totals, at: int) -> Statistics:
        """The same after an epoch.

        Args:
            reports: of the epoch's tasks.
            before, then: the run's counters before and after it.
            at: when it was committed (microseconds since 1970).
        """
        passed = max(0, at - self.at) / MICROSECONDS["SECOND"]
        nodes, names = len(self.graph.nodes), self.operators.keys
        counts = together((part.counts for part in reports if part.counts is not None), nodes)
        rows = [_rows(then, name) - _rows(before, name) for name in self.streams.keys]
        return Statistics(
            max(at, self.at),
            self.graph,
            self.operators.after(passed, _brought(self.graph, counts, reports)),
            np.minimum(self.first, counts.first),
            np.maximum(self.last, counts.last),
            self.queries.after(passed, _emitted(self.graph, reports)),
            self.streams.after(passed, np.array(rows, dtype=np.float64).reshape(-1, 1)),
            self.moved,
            _smoothed(self.tallies, {names[node]: found for node, found in counts.tallies.items()}, passed),
        )


def _brought(graph: Graph, counts: Counts, reports: Sequence[TaskReport]) -> Float64Array:
    """float64[nodes, 6]: what an epoch brought to each operator; see `Statistics.operators`."""
    seconds = np.zeros(len(graph.nodes))
    for report in reports:
        for what, took in report.time.parts.items() if report.time is not None else ():
            if (number := labelled(what)) is not None:
                seconds[number] += took
    sums = (counts.taken, counts.given, counts.endless, counts.lifetimes, counts.missed)
    return np.column_stack([*sums, seconds])


def _smoothed(
    known: Mapping[str, Float64Array], brought: Mapping[str, Float64Array], passed: float
) -> Mapping[str, Float64Array]:
    """Smoothed sums after an epoch; see `KeyedSums.after`."""
    part = 0.5 ** (passed / HALF_LIFE)
    return {
        name: part * known.get(name, 0.0) + brought.get(name, 0.0)
        for name in dict.fromkeys((*known, *brought))
    }


def _emitted(graph: Graph, reports: Sequence[TaskReport]) -> Float64Array:
    """float64[queries, 1]: how many elements an epoch brought to each query."""
    found = np.zeros(len(graph.nodes) + len(graph.groups))
    for report in reports:
        size = len(report.emitted)
        outputs = np.fromiter(report.emitted, np.int64, size)
        found[outputs] += np.fromiter(report.emitted.values(), np.float64, size)
    return found[graph.output_numbers].reshape(-1, 1)


def _rows(totals: Totals, stream: str) -> int:
    seen = totals.arrivals.get(stream)
    return 0 if seen is None else seen.everything


def _since(known: tuple[int, int] | None, heartbeat: int, at: int) -> tuple[int, int]:
    """A heartbeat, and since when it has been there, given what was known before."""
    return known if known is not None and known[0] == heartbeat else (heartbeat, at)


def _moved(before: tuple[str, ...], rows: np.ndarray, keys: tuple[str, ...], absent: float) -> np.ndarray:
    """The rows of some keys in the order of others, and a value for those that are new."""
    if keys == before:
        return rows
    places = {key: place for place, key in enumerate(before)}
    found = np.full((len(keys), *rows.shape[1:]), absent, dtype=rows.dtype)
    kept = [place for place, key in enumerate(keys) if key in places]
    found[kept] = rows[[places[keys[place]] for place in kept]]
    return found
