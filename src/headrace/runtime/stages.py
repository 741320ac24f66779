"""The stages of an epoch, as plain functions from chunks to chunks; a runner only moves the chunks.

Level 0 reads the sources, runs what needs no state, and routes. Every further level loads the state of its
buckets, runs its operators, writes one segment, and routes. What reaches the end are the tasks' reports.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Source
from headrace.elements import (
    Batch,
    BoolArray,
    Int64Array,
    concat,
    decode,
    decode_rows,
    empty,
    encode_rows,
    integers,
    record_batch,
)
from headrace.errors import ExecutionError, UserError
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.contract import Operator, Progress
from headrace.operators.graph import Edge, Exchange, Node, create_operator, is_stateful
from headrace.operators.runs import Run, RunRef, stored_run
from headrace.operators.stateless import Stateless, apply, is_stateless
from headrace.runtime.outbox import DeadLetters, Outbox
from headrace.runtime.profile import Stopwatch
from headrace.runtime.sources.rows import typed_rows
from headrace.runtime.store import SegmentWriter, read_part
from headrace.runtime.work import (
    ARRIVALS_CHANNEL,
    REPORT_CHANNEL,
    Chunk,
    EpochWork,
    ResultRef,
    StreamInput,
    TaskReport,
    merge_arrivals,
    pickled,
)
from headrace.schema import BIGINT
from headrace.time import MAX_INSTANT, MIN_INSTANT, TimeDomain, format_instant


def run_sources(work: EpochWork, task: int, attempt: int) -> Iterator[Chunk]:
    """Level 0, or a report of the user's error that stopped it; see `_read_and_route`."""
    return _reporting(work, task, _read_and_route(work, task, attempt))


def run_rows(
    work: EpochWork, stream: str, task: int, attempt: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[Chunk]:
    """Level 0 over the rows of a frame, or a report of the user's error; see `_take_rows`."""
    return _reporting(work, task, _take_rows(work, stream, task, attempt, batches))


def run_level(
    work: EpochWork, level: int, task: int, attempt: int, chunks: Sequence[Chunk]
) -> Iterator[Chunk]:
    """A further level, or a report of the user's error that stopped it; see `_run_operators`."""
    return _reporting(work, task, _run_operators(work, level, task, attempt, chunks))


def _reporting(work: EpochWork, task: int, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks, and a report in place of an error, so that it reaches the user as it was raised."""
    try:
        yield from chunks
    except UserError as error:
        yield Chunk(task % work.tasks, 0, REPORT_CHANNEL, task, pickled(TaskReport(error=error)))


def _read_and_route(work: EpochWork, task: int, attempt: int) -> Iterator[Chunk]:
    """Level 0: read this task's splits, run the stateless prefix of every query, route.

    Args:
        work: the epoch.
        task: which of `work.assignments` is ours.
        attempt: makes the segment's name unique among repeats of a task.
    """
    watch = Stopwatch(0)
    letters = DeadLetters(work.epoch)
    outbox = Outbox(work, 0, task, letters)
    arrivals: dict[str, Arrivals] = {}
    for split in work.assignments[task]:
        stream = work.streams[split.stream]
        assert stream.source is not None
        source = iter(stream.source.read(split.start, split.end, stream.schema.names))
        for read in watch.each("read", source):
            letters.reject(split.stream, read.rejected)
            seen = Arrivals(rejected=len(read.rejected)) + _take_in(
                work, split.stream, read.rows, outbox, letters, watch
            )
            arrivals[split.stream] = arrivals.get(split.stream, Arrivals()) + seen
    yield from _close_sources(work, task, attempt, outbox, letters, arrivals, watch)


def _take_rows(
    work: EpochWork, stream: str, task: int, attempt: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[Chunk]:
    """Level 0 for rows that come in a frame: as for splits, with the frame's columns brought to ours."""
    watch = Stopwatch(0)
    letters = DeadLetters(work.epoch)
    outbox = Outbox(work, 0, task, letters)
    arrivals = {stream: Arrivals()}
    count = 0
    for batch in batches:
        read = typed_rows(batch, work.streams[stream].schema, stream, count)
        letters.reject(stream, read.rejected)
        seen = Arrivals(rejected=len(read.rejected)) + _take_in(
            work, stream, read.rows, outbox, letters, watch
        )
        count += batch.num_rows
        arrivals[stream] += seen
    yield from _close_sources(work, task, attempt, outbox, letters, arrivals, watch)


def _take_in(
    work: EpochWork,
    stream: str,
    rows: pa.RecordBatch,
    outbox: Outbox,
    letters: DeadLetters,
    watch: Stopwatch,
) -> Arrivals:
    """Run level 0 over some rows of a stream; what arrived."""
    with watch("take in"):
        batch, seen = _timed(stream, work.streams[stream], rows, letters)
    _run_prefix(work, stream, batch, outbox, letters, watch)
    return seen


def _close_sources(
    work: EpochWork,
    task: int,
    attempt: int,
    outbox: Outbox,
    letters: DeadLetters,
    arrivals: dict[str, Arrivals],
    watch: Stopwatch,
) -> Iterator[Chunk]:
    """Send what level 0 routed, write its results, report."""
    yield from _arrival_chunks(work, task, arrivals)
    yield from watch.each("route", outbox.chunks())
    with watch("write results"):
        results, emitted, dead = _write_results(work, outbox, letters, _name(work, 0, task, attempt))
    report = TaskReport(arrivals, results, emitted, dead, time=watch.time(outbox.sent))
    yield Chunk(task % work.tasks, 0, REPORT_CHANNEL, task, pickled(report))


def _run_operators(
    work: EpochWork, level: int, task: int, attempt: int, chunks: Sequence[Chunk]
) -> Iterator[Chunk]:
    """A further level: the operators of this task's buckets, over what the levels before sent.

    Args:
        work: the epoch.
        level: from 1.
        task: its buckets are those that equal it modulo `work.tasks`.
        attempt: makes the segment's name unique among repeats of a task.
        chunks: everything that was sent to this task.
    """
    watch = Stopwatch(level)
    inbox = _Inbox(work, level, task, chunks)
    yield from inbox.forwarded()
    letters = DeadLetters(work.epoch)
    outbox = Outbox(work, level, task, letters)
    name = _name(work, level, task, attempt)
    writer = SegmentWriter(work.store, f"segments/{name}")
    run = _Level(work, level, inbox, outbox, letters, watch)
    state: dict[tuple[str, int], dict[str, tuple[RunRef, ...]]] = {}
    for bucket in range(task, work.buckets, work.tasks):
        for node, operator in run.run(bucket):
            with watch("store state"):
                state[node.identity, bucket] = _store_state(operator, writer)
    yield from watch.each("route", outbox.chunks())
    with watch("store state"):
        writer.close()
    with watch("write results"):
        results, emitted, dead = _write_results(work, outbox, letters, name)
    report = TaskReport({}, results, emitted, dead, state, tuple(run.failures), time=watch.time(outbox.sent))
    yield Chunk(task, 0, REPORT_CHANNEL, task, pickled(report))


def _name(work: EpochWork, level: int, task: int, attempt: int) -> str:
    return f"e{work.epoch}-l{level}-t{task}-a{attempt}-{work.token}"


def _write_results(
    work: EpochWork, outbox: Outbox, letters: DeadLetters, name: str
) -> tuple[tuple[ResultRef, ...], dict[int, int], ResultRef | None]:
    """Write a task's results and dead letters to a file of their own: state goes, results stay."""
    writer = SegmentWriter(work.store, f"results/{name}")
    results, emitted = outbox.write(writer)
    dead = letters.write(writer)
    writer.close()
    return results, emitted, dead


def _arrival_chunks(work: EpochWork, task: int, arrivals: dict[str, Arrivals]) -> Iterator[Chunk]:
    if work.graph.levels:
        payload = pickled(arrivals)
        for target in range(work.tasks):
            yield Chunk(target, 0, ARRIVALS_CHANNEL, task, payload)


# --- level 0 ---------------------------------------------------------------------------------------------


def _timed(
    name: str, stream: StreamInput, rows: pa.RecordBatch, letters: DeadLetters
) -> tuple[Batch, Arrivals]:
    """Rows as chronon elements; those without a usable timestamp and those that are late are set apart."""
    column = rows.column(stream.timestamp)
    times = integers(column.fill_null(0)) if column.null_count else integers(column)
    if not column.null_count and len(times):
        first, last = int(times.min()), int(times.max())
        if first >= max(stream.heartbeat, MIN_INSTANT) and last <= MAX_INSTANT:
            return _chronons(rows, times), Arrivals(len(times), last)
    empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    outside = ~empty & ((times < MIN_INSTANT) | (times > MAX_INSTANT))
    late = ~empty & ~outside & (times < stream.heartbeat)
    bad = empty | outside | late
    if bad.any():
        _set_apart(name, stream, rows, letters, (empty, outside, late))
        kept = np.flatnonzero(~bad)
        rows, times = rows.take(pa.array(kept)), times[kept]
    rejected = int(empty.sum() + outside.sum())
    seen = Arrivals(late=int(late.sum()), rejected=rejected)
    if len(times):
        seen += Arrivals(len(times), int(times.max()))
    return _chronons(rows, times), seen


def _chronons(rows: pa.RecordBatch, times: Int64Array) -> Batch:
    return Batch(rows, times, times + 1, np.ones(len(times), dtype=np.int64))


def _set_apart(
    name: str,
    stream: StreamInput,
    rows: pa.RecordBatch,
    letters: DeadLetters,
    masks: tuple[BoolArray, BoolArray, BoolArray],
) -> None:
    integer = rows.column(stream.timestamp).type == BIGINT
    domain = TimeDomain.INTEGER if integer else TimeDomain.TIMESTAMP
    reasons = (
        f"the timestamp {stream.timestamp} is NULL",
        f"the timestamp {stream.timestamp} is out of range",
        f"late: older than the heartbeat {format_instant(stream.heartbeat, domain)}",
    )
    for mask, reason in zip(masks, reasons, strict=True):
        if mask.any():
            letters.drop(name, rows, mask, reason)


def _run_prefix(
    work: EpochWork, stream: str, batch: Batch, outbox: Outbox, letters: DeadLetters, watch: Stopwatch
) -> None:
    """Run level 0's nodes over a batch of one stream; nodes that stand over other streams see nothing."""
    outputs: dict[int, Batch] = {}
    for node in work.graph.at(0):
        plan = node.plan
        if isinstance(plan, Source):
            if plan.name != stream:
                continue
            found = [_select(plan, batch)]
        else:
            inputs = [outputs[edge.producer] for edge in node.inputs if edge.producer in outputs]
            if not inputs or not is_stateless(plan):
                continue
            with watch(_label(node)):
                found = [apply(plan, part, letters.reporter(node.number)) for part in inputs]
        outputs[node.number] = concat(plan.schema, found)
        with watch("route"):
            outbox.put(node.number, outputs[node.number])


def _label(node: Node) -> str:
    return f"#{node.number} {type(node.plan).__name__}"


def _select(plan: Source, batch: Batch) -> Batch:
    columns = [batch.payload.column(name) for name in plan.schema.names]
    return batch.with_payload(record_batch(columns, plan.schema, len(batch)))


# --- further levels --------------------------------------------------------------------------------------


class _Inbox:
    """The chunks of one task, sorted so that repeats see the same order."""

    def __init__(self, work: EpochWork, level: int, task: int, chunks: Sequence[Chunk]) -> None:
        self._level = level
        self._task = task
        self._levels = work.graph.levels
        channels = work.graph.channels()
        self._numbers = {channel: number for number, channel in enumerate(channels)}
        self._reach = [_last_level(work, channel) for channel in channels]
        self._reports: list[Chunk] = []
        self._data: dict[tuple[int, int], list[Chunk]] = {}
        summaries = []
        for chunk in sorted(chunks, key=lambda chunk: (chunk.channel, chunk.bucket, chunk.sender)):
            if chunk.channel == REPORT_CHANNEL:
                self._reports.append(chunk)
            elif chunk.channel == ARRIVALS_CHANNEL:
                summaries.append(pickle.loads(chunk.payload))
            else:
                self._data.setdefault((chunk.channel, chunk.bucket), []).append(chunk)
        self.arrivals = merge_arrivals(summaries)

    def forwarded(self) -> Iterator[Chunk]:
        """What goes on unchanged: reports, the arrival summary, and exchanges that reach further levels."""
        yield from self._reports
        if self._level < self._levels:
            yield Chunk(self._task, 0, ARRIVALS_CHANNEL, self._task, pickled(self.arrivals))
        for (channel, _), chunks in self._data.items():
            if self._reach[channel] > self._level:
                yield from chunks

    def batches(self, edge: Edge, bucket: int) -> list[Batch]:
        """What an exchange delivered for a bucket."""
        assert edge.exchange is not None
        channel = self._numbers[edge.producer, edge.exchange]
        return [decode(chunk.payload) for chunk in self._data.get((channel, bucket), [])]


def _last_level(work: EpochWork, channel: tuple[int, Exchange]) -> int:
    return max(
        node.level
        for node in work.graph.nodes
        for edge in node.inputs
        if (edge.producer, edge.exchange) == channel
    )


class _Level:
    """The run of one level's nodes over the buckets of one task."""

    def __init__(
        self,
        work: EpochWork,
        level: int,
        inbox: _Inbox,
        outbox: Outbox,
        letters: DeadLetters,
        watch: Stopwatch,
    ) -> None:
        self._work = work
        self._nodes = work.graph.at(level)
        self._inbox = inbox
        self._outbox = outbox
        self._letters = letters
        self._watch = watch
        self._before = work.graph.heartbeats(work.heartbeats_before())
        self._after = work.graph.heartbeats(work.heartbeats_after(inbox.arrivals))
        self.failures: list[tuple[int, str, str | None]] = []

    def run(self, bucket: int) -> Iterator[tuple[Node, Operator]]:
        """Run a bucket; the operators with state, whose areas are to be stored."""
        outputs: dict[int, Batch] = {}
        for node in self._nodes:
            try:
                if is_stateful(node.plan):
                    operator = self._operator(node, bucket)
                    with self._watch(_label(node)):
                        outputs[node.number] = self._advance(node, operator, bucket, outputs)
                    yield node, operator
                elif is_stateless(node.plan):
                    with self._watch(_label(node)):
                        outputs[node.number] = self._apply(node, node.plan, bucket, outputs)
            except ExecutionError as error:
                self.failures.append((node.number, error.message, error.hint))
                outputs[node.number] = empty(node.plan.schema)
            with self._watch("route"):
                self._outbox.put(node.number, outputs[node.number])

    def _operator(self, node: Node, bucket: int) -> Operator:
        operator = create_operator(node, self._letters.reporter(node.number))
        for name, refs in self._work.state.get((node.identity, bucket), {}).items():
            operator.areas[name].runs = [stored_run(ref, self._load) for ref in refs]
        return operator

    def _advance(self, node: Node, operator: Operator, bucket: int, outputs: dict[int, Batch]) -> Batch:
        for port, edge in enumerate(node.inputs):
            for batch in self._batches(edge, bucket, outputs):
                operator.process(port, batch)
        producers = [edge.producer for edge in node.inputs]
        before = tuple(self._before[producer] for producer in producers)
        return operator.advance(Progress(before, tuple(self._after[producer] for producer in producers)))

    def _apply(self, node: Node, plan: Stateless, bucket: int, outputs: dict[int, Batch]) -> Batch:
        report = self._letters.reporter(node.number)
        found = [
            apply(plan, batch, report)
            for edge in node.inputs
            for batch in self._batches(edge, bucket, outputs)
        ]
        return concat(plan.schema, found)

    def _batches(self, edge: Edge, bucket: int, outputs: dict[int, Batch]) -> list[Batch]:
        if edge.exchange is None:
            return [outputs[edge.producer]]
        return self._inbox.batches(edge, bucket)

    def _load(self, ref: RunRef) -> pa.RecordBatch:
        with self._watch("load state"):
            return decode_rows(read_part(self._work.store, ref.part))


def _store_state(operator: Operator, writer: SegmentWriter) -> dict[str, tuple[RunRef, ...]]:
    """The manifest of an operator's areas; new runs are appended to the task's segment."""
    return {
        name: tuple(run.ref or _store_run(run, writer) for run in area.runs)
        for name, area in operator.areas.items()
    }


def _store_run(run: Run, writer: SegmentWriter) -> RunRef:
    part = writer.add(encode_rows(run.batch))
    return RunRef(part, run.rows, run.first, run.last, run.reach)
