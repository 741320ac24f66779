"""Level 0 of an epoch: the rows of streams become elements and run through what needs no state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.changes import HOW_LATE, Changes
from headrace.algebra.events import Events
from headrace.algebra.nodes import Match, Relation, Remember, Source
from headrace.algebra.properties import is_stateless
from headrace.elements import Batch, BoolArray, Int64Array, concat, integers, record_batch, take_rows
from headrace.heartbeats.bounded import LATE, Arrivals, Judgement
from headrace.lowering.exits import Exits
from headrace.lowering.node import Node
from headrace.operators.contract import Report
from headrace.operators.match import matched_parts
from headrace.operators.state.runs import WEIGHT
from headrace.operators.stateless import apply
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.tasks.changes import applicable
from headrace.runtime.tasks.counts import Extent
from headrace.runtime.tasks.events import elements_of, promised_by, sync_times, usable_events
from headrace.runtime.tasks.letters import DeadLetters, without_numbers
from headrace.runtime.tasks.memory import Left, Memories
from headrace.runtime.tasks.messages import RelationInput, StreamInput
from headrace.runtime.tasks.task import Task, label
from headrace.schema import BIGINT, TIMESTAMP
from headrace.time import (
    ALWAYS,
    BEGINNING,
    INFINITY,
    MAX_INSTANT,
    MIN_INSTANT,
    TimeDomain,
    format_instant,
    format_length,
)

Judge = Callable[[pa.RecordBatch, Int64Array], Judgement]
"""From some rows and their timestamps to which of them are late."""


def by_time(judge: Callable[[Int64Array], Judgement]) -> Judge:
    """What judges rows by their timestamps alone."""
    return lambda _, times: judge(times)


def take_in(task: Task, stream: str, read: Read, judge: Judge, memories: Memories, place: int) -> Arrivals:
    """Run level 0 over some rows of a stream; what arrived.

    Args:
        task: takes what nodes yield, and the rows that are set apart.
        stream: its name.
        read: the rows.
        judge: which of them are late.
        memories: which of the others are, for queries that remember the stream for less than it allows.
        place: of the first row in its source, or one between those of the rows before and after.
    """
    task.letters.reject(stream, read.rejected)
    with task.watch("take in"):
        batch, times, seen = _timed(stream, task.work.streams[stream], read, judge, task.letters)
        left, seen = memories.judge(times, seen)
    for memory, places in left.items():
        task.departed[memory] += len(places)
    chronons = task.work.streams[stream].has_chronons
    task.counter.know(batch, Extent.of_arrivals(seen) if chronons else None)
    task.retained.take(stream, batch)
    _run_prefix(task, stream, _numbered(task.work.streams[stream], batch, place), left)
    return seen


def take_in_relation(task: Task, reading: str, read: Read, place: int) -> Arrivals:
    """Run level 0 over some rows of a relation; what arrived, which moves no heartbeat.

    Args:
        task: takes what nodes yield, and the rows that are set apart.
        reading: the name of the relation's reading.
        read: the rows.
        place: as for a stream.
    """
    task.letters.reject(reading, read.rejected)
    with task.watch("take in"):
        rows = task.letters.numbered(read)
        batch, empty = _lasting(reading, task.work.relations[reading], rows, task.letters)
        batch = batch.with_payload(without_numbers(batch.payload))
    _run_prefix(task, reading, _numbered(task.work.relations[reading], batch, place), {})
    return Arrivals(rows=len(batch), rejected=len(read.rejected) + empty)


def _numbered(of: StreamInput | RelationInput, batch: Batch, place: int) -> Batch:
    """Changes with the column that says in which order they came; other rows as they are."""
    if not isinstance(of.changes, Changes) or of.changes.arrived is None:
        return batch
    places = np.arange(place, place + len(batch), dtype=np.int64)
    numbers = places * 0 if of.arrived is None else places + of.arrived
    field = pa.field(of.changes.arrived, BIGINT, nullable=False)
    return batch.with_payload(batch.payload.append_column(field, pa.array(numbers)))


def _lasting(
    name: str, relation: RelationInput, rows: pa.RecordBatch, letters: DeadLetters
) -> tuple[Batch, int]:
    """Rows as elements of their periods, and how many have none and are set apart."""
    count = rows.num_rows
    if relation.changed_at is not None:
        weights = integers(rows.column(WEIGHT))
        begin, end = np.full(count, relation.changed_at), np.full(count, INFINITY)
        return Batch(rows.drop_columns([WEIGHT]), begin, end, weights), 0
    rows = applicable(name, relation.changes, rows, letters)
    match relation.valid:
        case None:
            ts, te = np.full(count, ALWAYS), np.full(count, INFINITY)
            return Batch(rows, ts, te, np.ones(count, dtype=np.int64)), 0
        case (at, None):
            rows, ts = _usable(name, at, rows, letters)
            return Batch(rows, ts, ts + 1, np.ones(len(ts), dtype=np.int64)), count - len(ts)
        case (first, last):
            found = _in_periods(name, (first, last), rows, letters)
            return found, count - len(found)
        case _:
            assert_never(relation.valid)


def _in_periods(name: str, valid: tuple[str, str], rows: pa.RecordBatch, letters: DeadLetters) -> Batch:
    """Rows as elements of their periods; those without one are set apart."""
    count = rows.num_rows
    begin, end = map(rows.column, valid)
    ts, te = integers(begin.fill_null(ALWAYS)), integers(end.fill_null(INFINITY))
    known = begin.is_valid().to_numpy(zero_copy_only=False), end.is_valid().to_numpy(zero_copy_only=False)
    outside = np.zeros(count, dtype=np.bool_)
    for given, times in zip(known, (ts, te), strict=True):
        outside |= given & ((times < MIN_INSTANT) | (times >= MAX_INSTANT))
    empty = (ts >= te) & ~outside
    if not (outside.any() or empty.any()):
        return Batch(rows, ts, te, np.ones(count, dtype=np.int64))
    period = " TO ".join(valid)
    for mask, what in ((outside, "is out of range"), (empty, "is empty")):
        bad = np.flatnonzero(mask)
        letters.drop(name, take_rows(rows, bad), [f"the period {period} {what}"] * len(bad))
    kept = np.flatnonzero(~outside & ~empty)
    return Batch(take_rows(rows, kept), ts[kept], te[kept], np.ones(len(kept), dtype=np.int64))


def _run_prefix(task: Task, stream: str, batch: Batch, left: Left) -> None:
    """Run level 0's nodes over a batch of one input; nodes over others see nothing.

    Args:
        task: takes what they yield.
        stream: the input.
        batch: its rows.
        left: which of them some queries leave out.
    """
    exits = task.exits(stream)
    nodes: Sequence[Node] = task.work.graph.prefix_of(stream)
    if exits is not None:
        nodes = [node for node in nodes if node.number in exits.nodes]
    before = len(task.letters)
    _run_nodes(task, stream, batch, nodes, exits, left)
    if len(task.letters) > before and task.letters.keeps(stream):
        _keep_failed(task, stream, batch, nodes, left)


def _keep_failed(task: Task, stream: str, batch: Batch, nodes: Sequence[Node], left: Left) -> None:
    """Keep the rows of a stream for which an expression fails, with all their columns.

    Where it fails, an element may have other columns. Operators without state do not change multiplicities:
    they are run once more over elements whose multiplicity says which row each is.
    """
    failed: dict[tuple[int, str], list[Int64Array]] = {}
    numbered = replace(batch, w=np.arange(1, len(batch) + 1, dtype=np.int64))

    def reporter(node: int) -> Report:
        def report(part: Batch, bad: BoolArray, reason: str) -> None:
            failed.setdefault((node, reason), []).append(part.w[bad])

        return report

    outputs: dict[int, Batch] = {}
    for node in nodes:
        plan = node.plan
        if isinstance(plan, Match) or task.fence.has_failed(node.number):
            # No predicate of a Match can fail, nor anything above it.
            continue
        with task.fence.around(node.number):
            if isinstance(plan, Source):
                if node.reads == stream:
                    outputs[node.number] = _select(plan, numbered)
            elif is_stateless(plan) and any(edge.producer in outputs for edge in node.inputs):
                outputs[node.number] = _applied(node, outputs, left, reporter(node.number))
        if node.number in outputs:
            task.outbox.rehearse(node.number, outputs[node.number], reporter(node.number))
    by_row: dict[int, list[tuple[int, str]]] = {}
    for failure, places in failed.items():
        for number in np.unique(np.concatenate(places)).tolist():
            by_row.setdefault(number - 1, []).append(failure)
    rows = take_rows(batch.payload, np.array(sorted(by_row), dtype=np.int64))
    task.letters.keep_failed(stream, rows, [by_row[place] for place in sorted(by_row)])


def _run_nodes(
    task: Task, stream: str, batch: Batch, nodes: Sequence[Node], exits: Exits | None, left: Left
) -> None:
    """Run nodes of level 0 over a batch of one input, and route what they yield."""
    _run_above(task, stream, batch, nodes, exits, left, {})


def _run_above(
    task: Task,
    stream: str,
    batch: Batch,
    nodes: Sequence[Node],
    exits: Exits | None,
    left: Left,
    outputs: dict[int, Batch],
) -> None:
    """The same where what some nodes yield is known.

    Args:
        outputs: what they yield; that of others is added.
    """
    done, fence = set[int](), task.fence
    for node in nodes:
        plan = node.plan
        if node.number in done or fence.has_failed(node.number):
            continue
        if isinstance(plan, Match):
            # One part after the other, up to the results: of many rows thousands of queries may select many.
            above = [other for other in nodes if other.number in task.work.graph.above(node.number)]
            done |= {other.number for other in above}
            for part in _matched(task, node, plan, outputs):
                _run_above(task, stream, part, above, exits, left, {node.number: part})
            continue
        if isinstance(plan, Source | Relation):
            if node.reads != stream:
                continue
            with fence.around(node.number):
                outputs[node.number] = _select(plan, batch)
            task.counter.take(node.number, len(batch))
        else:
            inputs = [outputs[edge.producer] for edge in node.inputs if edge.producer in outputs]
            if not inputs or not is_stateless(plan):
                continue
            task.counter.take(node.number, sum(map(len, inputs)))
            task.counter.weigh(node.number, plan, inputs)
            with task.watch(label(node)), fence.around(node.number):
                outputs[node.number] = _applied(node, outputs, left, task.letters.reporter(node.number))
        if fence.has_failed(node.number):
            continue
        task.counter.give(node.number, outputs[node.number], node.plan)
        with task.watch("route"):
            task.outbox.put(node.number, outputs[node.number], exits)


def _matched(task: Task, node: Node, plan: Match, outputs: Mapping[int, Batch]) -> Iterator[Batch]:
    """What is selected of a batch, part after part."""
    (edge,) = node.inputs
    if edge.producer not in outputs:
        return
    task.counter.take(node.number, len(outputs[edge.producer]))
    parts = task.watch.each(label(node), matched_parts(plan, outputs[edge.producer]))
    while True:
        part: Batch | None = None
        with task.fence.around(node.number):
            part = next(parts, None)
        if part is None:
            return
        task.counter.give(node.number, part)
        with task.watch("route"):
            task.outbox.put(node.number, part)
        yield part


def _applied(node: Node, outputs: Mapping[int, Batch], left: Left, report: Report) -> Batch:
    """What a node without state yields.

    Args:
        node: the node.
        outputs: what those before it yield, as far as they yield anything.
        left: which rows of the source some queries leave out.
        report: receives the elements for which an expression fails.
    """
    plan = node.plan
    assert is_stateless(plan)
    inputs = [outputs[edge.producer] for edge in node.inputs if edge.producer in outputs]
    if isinstance(plan, Remember):
        # It is right above the source, so that its input has the rows in the places that they came in.
        inputs = [_without(part, left.get(plan.memory, _NONE)) for part in inputs]
    return concat(plan.schema, [apply(plan, part, report) for part in inputs])


_NONE: Final = np.empty(0, dtype=np.int64)


def _without(batch: Batch, places: Int64Array) -> Batch:
    """A batch without the elements at some places."""
    if not len(places):
        return batch
    kept = np.ones(len(batch), dtype=np.bool_)
    kept[places] = False
    return batch.filter(kept)


def _select(plan: Source | Relation, batch: Batch) -> Batch:
    columns = [batch.payload.column(name) for name in plan.schema.names]
    return batch.with_payload(record_batch(columns, plan.schema, len(batch)))


def _timed(
    name: str, stream: StreamInput, read: Read, judge: Judge, letters: DeadLetters
) -> tuple[Batch, Int64Array, Arrivals]:
    """Rows as elements, and the timestamps that they are judged by.

    Those without a usable timestamp and those that are late are set apart.
    """
    sent, promise = _without_heartbeats(stream, _stamped(stream, letters.numbered(read)))
    events = stream.changes if isinstance(stream.changes, Events) else None
    if events is not None:
        sent, promised = promised_by(events, sent, stream.newest)
        promise = max(promise, promised)
    known = _known(name, stream, sent, letters)
    rows, times = _usable(name, stream.timestamp, known, letters, stream)
    unusable = sent.num_rows - rows.num_rows
    times = sync_times(events, rows, times)
    found = judge(rows, times)
    overdue = 0
    if len(found.late):
        overdue, rows, times = _without_late(name, stream, rows, times, found, letters)
    seen = replace(
        found.arrivals,
        rejected=len(read.rejected) + unusable,
        promise=max(promise, found.arrivals.promise),
        overdue=overdue,
    )
    return elements_of(events, without_numbers(rows), times), times, seen


def _without_late(
    name: str,
    stream: StreamInput,
    rows: pa.RecordBatch,
    times: Int64Array,
    found: Judgement,
    letters: DeadLetters,
) -> tuple[int, pa.RecordBatch, Int64Array]:
    """The rows without late ones, which are set apart, and when they count (instants).

    A change of a row by its key says what there is from its instant on, and so also from the heartbeat on, if
    it is not below that by more than deletions are remembered. Its own instant stays in its column, by which
    the relation knows whether something newer has come. The number of these comes first.
    """
    domain, late, limits = _domain(stream), found.late, found.heartbeats
    how_late = HOW_LATE[domain] if isinstance(stream.changes, Changes) else 0
    counts = times[late] >= limits - how_late
    counts &= how_late > 0
    times = times.copy()
    times[late[counts]] = limits[counts]
    gone = late[~counts]
    reasons = [f"{LATE}{format_instant(limit, domain)}" for limit in limits[~counts].tolist()]
    letters.drop(name, take_rows(rows, gone), reasons)
    kept = np.delete(np.arange(len(times)), gone)
    return int(counts.sum()), take_rows(rows, kept), times[kept]


def _known(name: str, stream: StreamInput, rows: pa.RecordBatch, letters: DeadLetters) -> pa.RecordBatch:
    """The rows that say what they change, and for how long they are valid; the others are set apart."""
    if isinstance(stream.changes, Events):
        return usable_events(name, stream.changes, stream.timestamp, rows, letters)
    return applicable(name, stream.changes, rows, letters)


def _stamped(stream: StreamInput, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with the instant of the epoch, where they are timed by arrival."""
    if stream.arrival is None:
        return rows
    instants = np.full(rows.num_rows, stream.arrival)
    return rows.append_column(pa.field(stream.timestamp, TIMESTAMP), pa.array(instants).cast(TIMESTAMP))


def _without_heartbeats(stream: StreamInput, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
    """The rows without those that are heartbeats only, and the largest heartbeat that the source has sent.

    A row without a timestamp that has a heartbeat brings nothing else. A heartbeat further ahead of the clock
    than a row may be promises nothing.
    """
    if stream.timing.heartbeats is None:
        return rows, BEGINNING
    column = rows.column(stream.timing.heartbeats)
    given = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    sent = integers(column.fill_null(0))[given]
    sent = sent[(sent >= MIN_INSTANT) & (sent <= stream.newest)]
    untimed = np.asarray(rows.column(stream.timestamp).is_null().to_numpy(zero_copy_only=False))
    kept = np.flatnonzero(~(given & untimed))
    return take_rows(rows, kept), int(sent.max(initial=BEGINNING))


def _usable(
    name: str, timestamp: str, rows: pa.RecordBatch, letters: DeadLetters, stream: StreamInput | None = None
) -> tuple[pa.RecordBatch, Int64Array]:
    """The rows with a usable timestamp, and those timestamps; the others are set apart.

    Args:
        name: the stream or the relation.
        timestamp: the column.
        rows: the rows.
        letters: takes what is set apart.
        stream: the stream, if its rows may be ahead of the clock so far only.
    """
    newest = MAX_INSTANT if stream is None else stream.newest
    column = rows.column(timestamp)
    times = integers(column.fill_null(0)) if column.null_count else integers(column)
    inside = not len(times) or (times.min() >= MIN_INSTANT and times.max() <= newest)
    if inside and not column.null_count:
        return rows, times
    outside = (times < MIN_INSTANT) | (times > MAX_INSTANT)
    empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    ahead = (times > newest) & ~outside
    for mask, what in ((empty, "NULL"), (outside, "out of range"), (ahead, _ahead_of_clock(stream))):
        bad = np.flatnonzero(mask)
        reason = f"the timestamp {timestamp} is {what}"
        letters.drop(name, take_rows(rows, bad), [reason] * len(bad))
    kept = np.flatnonzero(~empty & ~outside & ~ahead)
    return take_rows(rows, kept), times[kept]


def _ahead_of_clock(stream: StreamInput | None) -> str:
    """What is said of a timestamp that is too far in the future."""
    if stream is None:
        return ""
    limit = format_instant(stream.newest, TimeDomain.TIMESTAMP)
    length = format_length(stream.timing.ahead or 0, TimeDomain.TIMESTAMP)
    return f"more than {length} ahead of the clock, after {limit}"


def _domain(stream: StreamInput) -> TimeDomain:
    if stream.arrival is not None:
        return TimeDomain.TIMESTAMP
    field = stream.schema[stream.schema.names.index(stream.timestamp)]
    return TimeDomain.INTEGER if field.type == BIGINT else TimeDomain.TIMESTAMP
