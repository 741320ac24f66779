"""The stages of an epoch, as plain functions from chunks to chunks; a runner only moves the chunks.

Level 0 reads the sources, runs what needs no state, and routes. Every further level loads the state of its
buckets, runs its operators, writes one segment, and routes. What reaches the end are the tasks' reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Source
from headrace.algebra.properties import is_stateless
from headrace.elements import (
    Batch,
    Int64Array,
    concat,
    integers,
    record_batch,
    take_rows,
)
from headrace.errors import UserError
from headrace.heartbeats.bounded import Arrivals, Judgement, advance, judge_in_order, judge_together
from headrace.operators.state.runs import RunRef
from headrace.operators.stateless import apply
from headrace.runtime.sources.contract import Read
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

Judge = Callable[[Int64Array], Judgement]
"""From the timestamps of some rows to which of them are late."""


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
        seen = Arrivals()
        for read in watch.each("read", source):
            heartbeat = advance(stream.heartbeat, max(split.before, seen.latest), stream.disorder)
            judge = partial(judge_in_order, heartbeat=heartbeat, disorder=stream.disorder)
            seen = seen.then(_take_in(work, split.stream, read, judge, outbox, letters, watch))
        arrivals[split.stream] = seen
    yield from _close_sources(work, task, attempt, outbox, letters, arrivals, watch)


def _take_rows(
    work: EpochWork, stream: str, task: int, attempt: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[Chunk]:
    """Level 0 for rows that come in a frame: as for splits, with the frame's columns brought to ours.

    Spark gives a frame's rows in no fixed order, so that they are judged together.
    """
    watch = Stopwatch(0)
    letters = DeadLetters(work.epoch)
    outbox = Outbox(work, 0, task, letters)
    seen, count = Arrivals(), 0
    judge = partial(judge_together, heartbeat=work.streams[stream].heartbeat)
    for batch in batches:
        read = typed_rows(batch, work.streams[stream].schema, stream, count)
        seen = seen.beside(_take_in(work, stream, read, judge, outbox, letters, watch))
        count += batch.num_rows
    yield from _close_sources(work, task, attempt, outbox, letters, {stream: seen}, watch)


def _take_in(
    work: EpochWork,
    stream: str,
    read: Read,
    judge: Judge,
    outbox: Outbox,
    letters: DeadLetters,
    watch: Stopwatch,
) -> Arrivals:
    """Run level 0 over some rows of a stream; what arrived."""
    letters.reject(stream, read.rejected)
    with watch("take in"):
        batch, seen = _timed(stream, work.streams[stream], read, judge, letters)
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
    if not inbox.is_certain:
        return
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
    name: str, stream: StreamInput, read: Read, judge: Judge, letters: DeadLetters
) -> tuple[Batch, Arrivals]:
    """Rows as chronon elements; those without a usable timestamp and those that are late are set apart."""
    rows, times = _usable(name, stream, read.rows, letters)
    unusable = read.rows.num_rows - rows.num_rows
    found = judge(times)
    if len(found.late):
        domain = _domain(stream)
        limits = (format_instant(limit, domain) for limit in found.heartbeats.tolist())
        reasons = [f"late: older than the heartbeat {limit}" for limit in limits]
        letters.drop(name, take_rows(rows, found.late), reasons)
        kept = np.delete(np.arange(len(times)), found.late)
        rows, times = take_rows(rows, kept), times[kept]
    seen = replace(found.arrivals, rejected=len(read.rejected) + unusable)
    return Batch(rows, times, times + 1, np.ones(len(times), dtype=np.int64)), seen


def _usable(
    name: str, stream: StreamInput, rows: pa.RecordBatch, letters: DeadLetters
) -> tuple[pa.RecordBatch, Int64Array]:
    """The rows with a usable timestamp, and those timestamps; the others are set apart."""
    column = rows.column(stream.timestamp)
    times = integers(column.fill_null(0)) if column.null_count else integers(column)
    inside = not len(times) or (times.min() >= MIN_INSTANT and times.max() <= MAX_INSTANT)
    if inside and not column.null_count:
        return rows, times
    outside = (times < MIN_INSTANT) | (times > MAX_INSTANT)
    empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    for mask, what in ((empty, "NULL"), (outside, "out of range")):
        bad = np.flatnonzero(mask)
        reason = f"the timestamp {stream.timestamp} is {what}"
        letters.drop(name, take_rows(rows, bad), [reason] * len(bad))
    kept = np.flatnonzero(~empty & ~outside)
    return take_rows(rows, kept), times[kept]


def _domain(stream: StreamInput) -> TimeDomain:
    field = stream.schema[stream.schema.names.index(stream.timestamp)]
    return TimeDomain.INTEGER if field.type == BIGINT else TimeDomain.TIMESTAMP


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
