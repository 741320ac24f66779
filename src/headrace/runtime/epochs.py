"""The driver: cuts bounded inputs into epochs, runs them, commits what they did.

An epoch that did not commit has no effect: its segments are named by nothing. A commit holds the streams'
positions and heartbeats, the manifests of all state, and where the results lie.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headrace.algebra.nodes import Plan, Source
from headrace.algebra.properties import domain_of
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.graph import Graph
from headrace.operators.lowering import lower
from headrace.runtime.sources.contract import SplitSource
from headrace.runtime.store import Store
from headrace.runtime.work import (
    EpochWork,
    Manifest,
    ResultRef,
    Split,
    StateKey,
    StreamInput,
    TaskReport,
    merge_arrivals,
)
from headrace.time import BEGINNING, INFINITY, TimeDomain

DEFAULT_EPOCH_ROWS = 500_000
"""About how many rows an epoch takes, from all streams together."""


class Runner(Protocol):
    """Moves the chunks of an epoch between its stages; it has no semantics of its own."""

    @property
    def parallelism(self) -> int:
        """How many tasks can run at once."""
        ...

    def new_store(self) -> Store:
        """A store that the runner's tasks can reach."""
        ...

    def run_epoch(self, work: EpochWork) -> list[TaskReport]:
        """Run one epoch; the reports of its tasks."""
        ...

    def close(self) -> None:
        """Let go of whatever was started."""
        ...


@dataclass(frozen=True)
class BoundedStream:
    """A stream that is read to its end.

    Attributes:
        source: where its rows come from.
        timestamp: the column it is timed by.
        disorder: how much older than the newest row a row may be (instants).
    """

    source: SplitSource
    timestamp: str
    disorder: int = 0


@dataclass(frozen=True)
class EpochResults:
    """What an epoch committed for the readers of results.

    Attributes:
        epoch: its number.
        heartbeats: per query, after the epoch (instants).
        results: per query where its new elements lie.
        dead_letters: where the rows lie that failed.
        users: for each node that dead letters name, the queries that use it.
    """

    epoch: int
    heartbeats: Mapping[str, int]
    results: Mapping[str, tuple[ResultRef, ...]]
    dead_letters: tuple[ResultRef, ...]
    users: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        epoch: epochs committed; total_rows: an estimate; seconds: since the run began.
        heartbeat: the smallest heartbeat of all streams (an instant of `domain`).
        buffered: rows of state held after the epoch.
    """

    epoch: int
    rows: int
    total_rows: int
    seconds: float
    heartbeat: int
    domain: TimeDomain
    buffered: int


@dataclass
class Totals:
    """Counters of a run.

    Attributes:
        arrivals: per stream.
        emitted: elements yielded per query.
        state_rows_peak, state_bytes_peak: the most state held after any epoch.
    """

    epochs: int = 0
    seconds: float = 0.0
    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    state_rows_peak: int = 0
    state_bytes_peak: int = 0


class Run:
    """One run of some queries over bounded streams.

    Args:
        runner: where the epochs run.
        store: where segments lie.
        streams: by name; those that no query reads are left alone.
        queries: optimized plans by query name.
        epoch_rows: about how many rows an epoch takes.
        buckets: how many buckets state is spread over; the runner's parallelism if None.
        keep_results: whether results are stored, or only counted.
    """

    def __init__(
        self,
        runner: Runner,
        store: Store,
        streams: Mapping[str, BoundedStream],
        queries: Mapping[str, Plan],
        epoch_rows: int = DEFAULT_EPOCH_ROWS,
        buckets: int | None = None,
        keep_results: bool = True,
    ) -> None:
        self._runner = runner
        self._store = store
        self._queries = dict(queries)
        self._graph = lower(self._queries)
        self._columns = _columns_read(self._graph)
        self._streams = {name: streams[name] for name in self._columns}
        self._epoch_rows = epoch_rows
        self._buckets = buckets or runner.parallelism
        self._keep_results = keep_results
        self._heartbeats = dict.fromkeys(self._streams, BEGINNING)
        self._state: dict[StateKey, Manifest] = {}
        self.results: list[EpochResults] = []
        self.failed: dict[str, tuple[str, str | None]] = {}
        self.totals = Totals()

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Read all streams to their end, epoch by epoch.

        Args:
            progress: told after every epoch.
        """
        started = time.perf_counter()
        for epoch, ranges in enumerate(self._ranges(), 1):
            if not self._queries:
                break
            work = self._work(epoch, ranges)
            self._commit(work, self._runner.run_epoch(work))
            self.totals.epochs = epoch
            self.totals.seconds = time.perf_counter() - started
            if progress is not None:
                progress(self._progress())

    @property
    def total_rows(self) -> int:
        """About how many rows there are in all streams together."""
        return sum(stream.source.rows for stream in self._streams.values())

    def _ranges(self) -> Iterator[dict[str, tuple[int, int]]]:
        """The stretch of each stream that each epoch reads.

        Every epoch takes the same share of every stream, so that streams which cover the same time advance
        together and little has to wait.
        """
        count = max(1, -(-self.total_rows // self._epoch_rows))
        for epoch in range(count):
            yield {
                name: (stream.source.size * epoch // count, stream.source.size * (epoch + 1) // count)
                for name, stream in self._streams.items()
            }

    def _work(self, epoch: int, ranges: dict[str, tuple[int, int]]) -> EpochWork:
        inputs = {
            name: StreamInput(
                stream.source,
                self._columns[name],
                stream.timestamp,
                stream.disorder,
                self._heartbeats[name],
                ranges[name][1] == stream.source.size,
            )
            for name, stream in self._streams.items()
        }
        parts = self._runner.parallelism
        assignments = tuple(
            tuple(Split(name, *_part(span, part, parts)) for name, span in ranges.items())
            for part in range(parts)
        )
        return EpochWork(
            epoch=epoch,
            graph=self._graph,
            buckets=self._buckets,
            tasks=min(parts, self._buckets),
            streams=inputs,
            assignments=assignments,
            state=self._state,
            store=self._store,
            keep_results=self._keep_results,
        )

    def _commit(self, work: EpochWork, reports: list[TaskReport]) -> None:
        for report in reports:
            if report.error is not None:
                raise report.error
        arrivals = merge_arrivals([report.arrivals for report in reports])
        self._heartbeats = work.heartbeats_after(arrivals)
        before = _segments(self._state) | {name for report in reports for name in _segments(report.state)}
        self._state = self._state | {key: value for report in reports for key, value in report.state.items()}
        self.results.append(_results(work, reports, work.graph.heartbeats(self._heartbeats)))
        self._count(work.graph, arrivals, reports)
        self._drop_failed(work.graph, reports)
        for segment in before - _segments(self._state):
            self._store.delete(segment)

    def _count(self, graph: Graph, arrivals: dict[str, Arrivals], reports: list[TaskReport]) -> None:
        totals = self.totals
        totals.arrivals = merge_arrivals([totals.arrivals, arrivals])
        for name, node in graph.outputs:
            emitted = sum(report.emitted.get(node, 0) for report in reports)
            totals.emitted[name] = totals.emitted.get(name, 0) + emitted
        totals.dead_letters += sum(
            report.dead_letters.rows for report in reports if report.dead_letters is not None
        )
        runs = [run for manifest in self._state.values() for area in manifest.values() for run in area]
        totals.state_rows_peak = max(totals.state_rows_peak, sum(run.rows for run in runs))
        totals.state_bytes_peak = max(totals.state_bytes_peak, sum(run.length for run in runs))

    def _drop_failed(self, graph: Graph, reports: list[TaskReport]) -> None:
        """End the queries that depend on a node that failed; the others go on with their state."""
        for report in reports:
            for node, message, hint in report.failures:
                for name in graph.queries_of(node):
                    self.failed.setdefault(name, (message, hint))
        if any(name in self._queries for name in self.failed):
            self._queries = {name: plan for name, plan in self._queries.items() if name not in self.failed}
            self._graph = lower(self._queries)
            kept = {node.identity for node in self._graph.nodes}
            self._state = {key: value for key, value in self._state.items() if key[0] in kept}
            self._streams = {name: self._streams[name] for name in _columns_read(self._graph)}
            self._heartbeats = {name: self._heartbeats[name] for name in self._streams}

    def _progress(self) -> Progress:
        rows = sum(seen.rows + seen.late + seen.rejected for seen in self.totals.arrivals.values())
        plans = list(self._queries.values())
        runs = (run for manifest in self._state.values() for area in manifest.values() for run in area)
        return Progress(
            epoch=self.totals.epochs,
            rows=rows,
            total_rows=max(self.total_rows, rows),
            seconds=self.totals.seconds,
            heartbeat=min(self._heartbeats.values(), default=INFINITY),
            domain=domain_of(plans[0]) if plans else TimeDomain.INTEGER,
            buffered=sum(run.rows for run in runs),
        )


def _columns_read(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Per stream the columns that some node reads, and the timestamp."""
    wanted: dict[str, dict[str, None]] = {}
    for node in graph.nodes:
        if isinstance(node.plan, Source):
            columns = wanted.setdefault(node.plan.name, {})
            columns.update(dict.fromkeys((*node.plan.schema.names, node.plan.timestamp)))
    return {name: tuple(sorted(columns)) for name, columns in wanted.items()}


def _part(span: tuple[int, int], part: int, parts: int) -> tuple[int, int]:
    start, end = span
    return start + (end - start) * part // parts, start + (end - start) * (part + 1) // parts


def _results(work: EpochWork, reports: list[TaskReport], heartbeats: tuple[int, ...]) -> EpochResults:
    refs: dict[int, list[ResultRef]] = {}
    for report in reports:
        for ref in report.results:
            refs.setdefault(ref.node, []).append(ref)
    return EpochResults(
        epoch=work.epoch,
        heartbeats={name: heartbeats[node] for name, node in work.graph.outputs},
        results={name: tuple(refs.get(node, ())) for name, node in work.graph.outputs},
        dead_letters=tuple(part.dead_letters for part in reports if part.dead_letters is not None),
        users={node.number: work.graph.queries_of(node.number) for node in work.graph.nodes},
    )


def _segments(state: Mapping[StateKey, Manifest]) -> set[str]:
    return {run.segment for manifest in state.values() for area in manifest.values() for run in area}
