"""The driver: cuts bounded inputs into epochs, runs them, commits what they did.

An epoch that did not commit has no effect: its segments are named by nothing. A commit holds the streams'
positions and heartbeats, the manifests of all state, and where the results lie.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.nodes import Plan, Source
from headrace.algebra.properties import domain_of
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.graph import Graph
from headrace.operators.lowering import lower
from headrace.runtime.commits import (
    Commit,
    EpochResults,
    StreamPoint,
    Totals,
    is_checkpoint,
    result_files,
    segments_of,
    state_after,
)
from headrace.runtime.faults import reach
from headrace.runtime.journal import Journal
from headrace.runtime.retention import retained_from, since_of
from headrace.runtime.runner import Runner
from headrace.runtime.store import FolderStore, Store
from headrace.runtime.streams import BoundedStream, Intake, LiveStream
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
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain

DEFAULT_EPOCH_ROWS = 500_000
"""About how many rows an epoch takes, from all streams together."""


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


class Run:
    """One run of some queries over some streams.

    Args:
        runner: where the epochs run.
        store: where segments lie.
        streams: by name; those that no query reads are left alone.
        queries: optimized plans by query name.
        epoch_rows: about how many rows an epoch takes.
        buckets: how many buckets state is spread over; the runner's parallelism if None.
        keep_results: whether results are stored, or only counted.
        retain: of how many epochs results are kept; of all if None.
    """

    def __init__(
        self,
        runner: Runner,
        store: Store,
        streams: Mapping[str, BoundedStream | LiveStream],
        queries: Mapping[str, Plan],
        epoch_rows: int = DEFAULT_EPOCH_ROWS,
        buckets: int | None = None,
        keep_results: bool = True,
        retain: int | None = None,
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
        self._retain = retain
        self._token = secrets.token_hex(4)
        self._points = dict.fromkeys(self._streams, StreamPoint(0, BEGINNING))
        self._state: dict[StateKey, Manifest] = {}
        self._journal: Journal | None = None
        self._oldest_needed: Callable[[], int] = lambda: INFINITY
        self.results: list[EpochResults] = []
        self.failed: dict[str, tuple[str, str | None]] = {}
        self.totals = Totals()

    def resume(self, journal: Journal) -> None:
        """Go on where a durable store's last commit was, and commit to it from now on.

        Args:
            journal: the store's commits; held until the journal is closed.

        Raises:
            StoreError: a record is damaged.
        """
        commits = journal.load()
        self._journal = journal
        if commits:
            last = commits[-1]
            self.results = [commit.results for commit in commits if commit.epoch >= last.retained]
            self._state = state_after(commits)
            self._points = dict(last.streams)
            self.totals = last.totals
            self._end_queries(dict(last.failed))
        self._sweep_strays()

    def keep_for(self, oldest_needed: Callable[[], int]) -> None:
        """Keep the results of further epochs than the retained ones.

        Args:
            oldest_needed: tells, after every commit, from which epoch on results are still to be read.
        """
        self._oldest_needed = oldest_needed

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Read all streams to their end, epoch by epoch.

        Args:
            progress: told after every epoch.
        """
        for intakes in self._intakes():
            self.step(intakes)
            if progress is not None:
                progress(self.progress())

    def step(self, intakes: Mapping[str, Intake]) -> None:
        """Run and commit one epoch.

        Args:
            intakes: what it takes of each stream; a stream that is not named brings nothing.
        """
        started = time.perf_counter()
        work = self._work(intakes)
        frames = {name: intake.frame for name, intake in intakes.items() if intake.frame is not None}
        self._commit(work, intakes, self._runner.run_epoch(work, frames), started)

    def point(self, name: str) -> StreamPoint:
        """How far a stream has been read."""
        return self._points[name]

    @property
    def streams(self) -> Mapping[str, BoundedStream | LiveStream]:
        """The streams that some query reads."""
        return self._streams

    @property
    def total_rows(self) -> int:
        """About how many rows there are in all bounded streams together."""
        return sum(stream.source.rows for _, stream in self._bounded())

    def next_share(self) -> dict[str, Intake]:
        """What the next epoch takes of the bounded streams, as a function of how far they have been read.

        Every epoch takes the same share of what is left of every stream, so that streams which cover the same
        time advance together and little has to wait.
        """
        left = sum(self._rows_left(name, stream) for name, stream in self._bounded())
        epochs = max(1, -(-left // self._epoch_rows))
        share = {}
        for name, stream in self._bounded():
            point, size = self._points[name], stream.source.size
            if point.heartbeat != INFINITY:
                end = min(point.position - (point.position - size) // epochs, point.position + _most(stream))
                share[name] = Intake(end, stream.source, point.position, end, ended=end == size)
        return share

    def _intakes(self) -> Iterator[Mapping[str, Intake]]:
        while share := self.next_share():
            yield share

    def _bounded(self) -> Iterator[tuple[str, BoundedStream]]:
        for name, stream in self._streams.items():
            if isinstance(stream, BoundedStream):
                yield name, stream

    def _rows_left(self, name: str, stream: BoundedStream) -> int:
        size = stream.source.size
        return stream.source.rows * (size - self._points[name].position) // max(size, 1)

    def _work(self, intakes: Mapping[str, Intake]) -> EpochWork:
        inputs = {
            name: StreamInput(
                intakes[name].source if name in intakes else None,
                stream.schema.select(tuple(_find(stream.schema, column) for column in self._columns[name])),
                stream.timestamp,
                stream.disorder,
                self._points[name].heartbeat,
                name in intakes and intakes[name].ended,
            )
            for name, stream in self._streams.items()
        }
        parts = self._runner.parallelism
        spans = {name: (take.start, take.end) for name, take in intakes.items() if take.source is not None}
        assignments = tuple(
            tuple(Split(name, *_part(span, part, parts)) for name, span in spans.items())
            for part in range(parts)
        )
        return EpochWork(
            epoch=self.totals.epochs + 1,
            token=self._token,
            graph=self._graph,
            buckets=self._buckets,
            tasks=min(parts, self._buckets),
            streams=inputs,
            assignments=assignments,
            state=self._state,
            store=self._store,
            keep_results=self._keep_results,
        )

    def _commit(
        self,
        work: EpochWork,
        intakes: Mapping[str, Intake],
        reports: list[TaskReport],
        started: float,
    ) -> None:
        """Make an epoch count: first on disk, then here; then forget what it made needless."""
        for report in reports:
            if report.error is not None:
                raise report.error
        reach("epoch.reported")
        arrivals = merge_arrivals([report.arrivals for report in reports])
        heartbeats = work.heartbeats_after(arrivals)
        failed = self.failed | _failures(work.graph, reports)
        changed = {key: value for report in reports for key, value in report.state.items()}
        state = self._state | changed
        checkpoint = is_checkpoint(work.epoch) or failed != self.failed
        if failed != self.failed:
            # A delta cannot say that state is gone; this record holds what the other queries need.
            state = _state_of(lower(_without(self._queries, failed)), state)
        results = _results(work, reports, work.graph.heartbeats(heartbeats), failed, self.results)
        commit = Commit(
            epoch=work.epoch,
            streams=self._points_after(intakes, heartbeats),
            state=state if checkpoint else changed,
            checkpoint=checkpoint,
            retained=self._retained_after(results),
            results=results,
            failed=failed,
            totals=self._counted(work, arrivals, reports, state, started),
        )
        if self._journal is not None:
            self._journal.append(commit)
        before = segments_of(self._state) | segments_of(changed)
        self._state, self._points, self.totals = state, dict(commit.streams), commit.totals
        self.results.append(commit.results)
        self._end_queries(dict(commit.failed))
        self._sweep((before - segments_of(self._state)) | self._outlived(commit.retained))

    def _points_after(
        self, intakes: Mapping[str, Intake], heartbeats: Mapping[str, int]
    ) -> dict[str, StreamPoint]:
        """How far each stream has been read once an epoch is committed."""
        taken = {
            name: StreamPoint(
                take.position, heartbeats[name], {**self._points[name].producers, **take.producers}
            )
            for name, take in intakes.items()
        }
        return self._points | taken

    def _sweep(self, segments: set[str]) -> None:
        reach("sweep.begun")
        for segment in segments:
            self._store.delete(segment)
        reach("sweep.done")

    def _retained_after(self, last: EpochResults) -> int:
        """The oldest epoch whose results are kept once an epoch is committed."""
        if self._retain is None:
            return (self.results or [last])[0].epoch
        results = [*self.results, last]
        return max(results[0].epoch, min(retained_from(self._retain, results), self._oldest_needed()))

    def _outlived(self, oldest: int) -> set[str]:
        """The files of results that are no longer retained, and the commit records that nobody needs."""
        gone = [part for part in self.results if part.epoch < oldest]
        if not gone:
            return set()
        self.results = self.results[len(gone) :]
        files = set[str]().union(*map(result_files, gone))
        if self._journal is not None:
            files |= self._journal.outlived(oldest)
        return files

    def _sweep_strays(self) -> None:
        """Remove the files of epochs that did not commit."""
        if isinstance(self._store, FolderStore):
            kept = segments_of(self._state).union(*map(result_files, self.results))
            for folder in ("segments", "results"):
                self._store.drop_drafts(folder)
                for name in self._store.names(folder):
                    if name not in kept:
                        self._store.delete(name)

    def _counted(
        self,
        work: EpochWork,
        arrivals: dict[str, Arrivals],
        reports: list[TaskReport],
        state: Mapping[StateKey, Manifest],
        started: float,
    ) -> Totals:
        """The counters after an epoch."""
        totals = self.totals
        emitted = dict(totals.emitted)
        for name, node in work.graph.outputs:
            emitted[name] = emitted.get(name, 0) + sum(part.emitted.get(node, 0) for part in reports)
        runs = [run for manifest in state.values() for area in manifest.values() for run in area]
        letters = sum(part.dead_letters.rows for part in reports if part.dead_letters is not None)
        return Totals(
            epochs=work.epoch,
            seconds=totals.seconds + time.perf_counter() - started,
            arrivals=merge_arrivals([dict(totals.arrivals), arrivals]),
            emitted=emitted,
            dead_letters=totals.dead_letters + letters,
            state_rows_peak=max(totals.state_rows_peak, sum(run.rows for run in runs)),
            state_bytes_peak=max(totals.state_bytes_peak, sum(run.part.length for run in runs)),
        )

    def _end_queries(self, failed: dict[str, tuple[str, str | None]]) -> None:
        """End the queries that failed; the others go on with their state."""
        if failed == self.failed:
            return
        self.failed = failed
        self._queries = _without(self._queries, failed)
        self._graph = lower(self._queries)
        self._state = _state_of(self._graph, self._state)
        self._streams = {name: self._streams[name] for name in _columns_read(self._graph)}

    def progress(self) -> Progress:
        """How far the run has come."""
        rows = sum(seen.rows + seen.late + seen.rejected for seen in self.totals.arrivals.values())
        plans = list(self._queries.values())
        runs = (run for manifest in self._state.values() for area in manifest.values() for run in area)
        return Progress(
            epoch=self.totals.epochs,
            rows=rows,
            total_rows=max(self.total_rows, rows),
            seconds=self.totals.seconds,
            heartbeat=min((self._points[name].heartbeat for name in self._streams), default=INFINITY),
            domain=domain_of(plans[0]) if plans else TimeDomain.INTEGER,
            buffered=sum(run.rows for run in runs),
        )


def _without(queries: Mapping[str, Plan], failed: Mapping[str, object]) -> dict[str, Plan]:
    """The queries that have not failed."""
    return {name: plan for name, plan in queries.items() if name not in failed}


def _state_of(graph: Graph, state: Mapping[StateKey, Manifest]) -> dict[StateKey, Manifest]:
    """The state of a graph's operators."""
    kept = {node.identity for node in graph.nodes}
    return {key: value for key, value in state.items() if key[0] in kept}


def _columns_read(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Per stream the columns that some node reads, and the timestamp."""
    wanted: dict[str, dict[str, None]] = {}
    for node in graph.nodes:
        if isinstance(node.plan, Source):
            columns = wanted.setdefault(node.plan.name, {})
            columns.update(dict.fromkeys((*node.plan.schema.names, node.plan.timestamp)))
    return {name: tuple(sorted(columns)) for name, columns in wanted.items()}


def _most(stream: BoundedStream) -> int:
    """How many positions of a stream an epoch may take."""
    size, rows = stream.source.size, stream.source.rows
    return size if stream.max_rows is None else max(1, size * stream.max_rows // max(rows, 1))


def _find(schema: Schema, name: str) -> int:
    index = schema.find(name)
    assert index is not None
    return index


def _part(span: tuple[int, int], part: int, parts: int) -> tuple[int, int]:
    start, end = span
    return start + (end - start) * part // parts, start + (end - start) * (part + 1) // parts


def _results(
    work: EpochWork,
    reports: list[TaskReport],
    heartbeats: tuple[int, ...],
    failed: Container[str],
    before: Sequence[EpochResults],
) -> EpochResults:
    """What readers see; a query that failed has no heartbeat, since what it yielded is no answer."""
    refs: dict[int, list[ResultRef]] = {}
    for report in reports:
        for ref in report.results:
            refs.setdefault(ref.node, []).append(ref)
    going_on = [(name, node) for name, node in work.graph.outputs if name not in failed]
    return EpochResults(
        epoch=work.epoch,
        heartbeats={name: heartbeats[node] for name, node in going_on},
        results={name: tuple(refs.get(node, ())) for name, node in work.graph.outputs},
        dead_letters=tuple(part.dead_letters for part in reports if part.dead_letters is not None),
        users={node.number: work.graph.queries_of(node.number) for node in work.graph.nodes},
        since={name: since_of(name, before, work.epoch) for name, _ in going_on},
    )


def _failures(graph: Graph, reports: list[TaskReport]) -> dict[str, tuple[str, str | None]]:
    """The queries that depend on a node that failed."""
    return {
        name: (message, hint)
        for report in reports
        for node, message, hint in report.failures
        for name in graph.queries_of(node)
    }
