"""The stages of an epoch, as plain functions from chunks to chunks; a runner only moves the chunks.

Level 0 reads the sources, runs what needs no state, and routes. Every further level loads the state of its
buckets, runs its operators, writes one segment, and routes. What reaches the end are the tasks' reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Source
from headrace.algebra.properties import is_stateless
from headrace.elements import (
    Batch,
    BoolArray,
    Int64Array,
    concat,
    integers,
    record_batch,
)
from headrace.errors import UserError
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.state.runs import RunRef
from headrace.operators.stateless import apply
from headrace.runtime.sources.rows import typed_rows
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.level import Inbox, Level, label, store_state
from headrace.runtime.tasks.messages import (
    ARRIVALS_CHANNEL,
    REPORT_CHANNEL,
    Chunk,
    EpochWork,
    ResultRef,
    StreamInput,
    TaskReport,
    pickled,
)
from headrace.runtime.tasks.outbox import DeadLetters, Outbox
from headrace.runtime.tasks.profile import Stopwatch
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
    inbox = Inbox(work, level, task, chunks)
    yield from inbox.forwarded()
    letters = DeadLetters(work.epoch)
    outbox = Outbox(work, level, task, letters)
    name = _name(work, level, task, attempt)
    writer = SegmentWriter(work.store, f"segments/{name}")
    run = Level(work, level, inbox, outbox, letters, watch)
    state: dict[tuple[str, int], dict[str, tuple[RunRef, ...]]] = {}
    for bucket in range(task, work.buckets, work.tasks):
        for node, operator in run.run(bucket):
            with watch("store state"):
                state[node.identity, bucket] = store_state(operator, writer)
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
    for node in work.graph.by_level[0]:
        plan = node.plan
        if isinstance(plan, Source):
            if plan.name != stream:
                continue
            found = [_select(plan, batch)]
        else:
            inputs = [outputs[edge.producer] for edge in node.inputs if edge.producer in outputs]
            if not inputs or not is_stateless(plan):
                continue
            with watch(label(node)):
                found = [apply(plan, part, letters.reporter(node.number)) for part in inputs]
        outputs[node.number] = concat(plan.schema, found)
        with watch("route"):
            outbox.put(node.number, outputs[node.number])


def _select(plan: Source, batch: Batch) -> Batch:
    columns = [batch.payload.column(name) for name in plan.schema.names]
    return batch.with_payload(record_batch(columns, plan.schema, len(batch)))
