"""The stages of an epoch, as plain functions from chunks to chunks; a runner only moves the chunks.

Level 0 reads the sources, runs what needs no state, and routes. Every further level loads the state of its
buckets, runs its operators, writes one segment, and routes. What reaches the end are the tasks' reports.

Every stage gets the epoch, the task's number in its level, and an attempt, which makes the names of its
segments unique among repeats of the task; and whether the next level runs in its process, so that what is
sent need not be encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, wraps
from itertools import chain
from typing import Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from headrace.errors import UserError
from headrace.heartbeats.bounded import Arrivals, advance, judge_in_order, judge_together
from headrace.operators.state.runs import WEIGHT
from headrace.runtime.sources.rows.rows import typed_rows
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.fence import NEVER, CancelFlag
from headrace.runtime.tasks.level import Inbox, Level
from headrace.runtime.tasks.measuring import measured
from headrace.runtime.tasks.memory import Memories
from headrace.runtime.tasks.messages import (
    Chunk,
    EpochWork,
    Manifest,
    SplitRange,
    StateKey,
    TaskReport,
    ValuesPoint,
)
from headrace.runtime.tasks.positions import CountedRows
from headrace.runtime.tasks.reading import Judge, by_time, take_in, take_in_relation
from headrace.runtime.tasks.tallying import TalliedRows
from headrace.runtime.tasks.task import Task, report_chunk
from headrace.runtime.tasks.values import Values
from headrace.time import BEGINNING

P = ParamSpec("P")
T = TypeVar("T")

Each = Callable[[Sequence[Callable[[], list[Chunk]]]], list[list[Chunk]]]
"""Runs the tasks of a stage; what each sends, in their order."""

StageFunction = Callable[Concatenate[EpochWork, int, P], Iterator[Chunk]]


def _reporting(stage: StageFunction[P]) -> StageFunction[P]:
    """The stage with a report in place of a user's error, so that it reaches the user as it was raised."""

    @wraps(stage)
    def run(work: EpochWork, number: int, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Chunk]:
        try:
            yield from stage(work, number, *args, **kwargs)
        except UserError as error:
            yield report_chunk(work, number, TaskReport(error=error))

    return run


def one_by_one(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in this thread, one after the other; what each gives."""
    return [task() for task in tasks]


def run_epoch(
    work: EpochWork,
    attempt: int,
    at_hand: RunsAtHand | None = None,
    flag: CancelFlag = NEVER,
    together: bool = False,
    each: Each = one_by_one,
) -> list[Chunk]:
    """All levels of an epoch, one after the other in one process; what reaches the end.

    Args:
        work: the epoch.
        attempt: see above.
        at_hand: the state of the epoch before, where that has run here too.
        flag: says what of the epoch is not wanted any more.
        together: whether tasks hand over what they yield as it is.
        each: runs the tasks of a stage.

    Raises:
        CancelledWorkError: nobody waits for the epoch.
    """
    in_place = together or work.tasks == 1
    if at_hand is not None:
        at_hand.forget_all_but(work.token, work.state, work.graph)

    def sources(task: int) -> list[Chunk]:
        return list(run_sources(work, task, attempt, in_place, flag))

    def levelled(task: int, level: int, box: list[Chunk]) -> list[Chunk]:
        return list(run_level(work, task, attempt, level, box, in_place, at_hand, flag))

    sent = each([partial(sources, task) for task in range(len(work.assignments))])
    for level in range(1, work.graph.levels + 1):
        boxes: list[list[Chunk]] = [[] for _ in range(work.tasks)]
        for chunk in chain.from_iterable(sent):
            boxes[chunk.task].append(chunk)
        sent = each([partial(levelled, task, level, box) for task, box in enumerate(boxes)])
    return list(chain.from_iterable(sent))


@_reporting
def run_sources(
    work: EpochWork, number: int, attempt: int, in_place: bool = False, flag: CancelFlag = NEVER
) -> Iterator[Chunk]:
    """Level 0: read this task's splits, run the stateless prefix of every query, route."""
    task = Task(work, 0, number, attempt, in_place, flag)
    arrivals: dict[str, Arrivals] = {}
    points: dict[str, ValuesPoint] = {}
    writer = task.state_writer()
    for split in work.assignments[number]:
        if split.stream in work.relations:
            arrivals[split.stream] = _take_in_relation(task, split)
            continue
        timing = work.streams[split.stream].timing
        if work.streams[split.stream].replayed is not None:
            _take_in_letters(task, split)
        elif timing.per is not None:
            values = Values(work, split.stream, timing.per)
            arrivals[split.stream] = _take_in_split(task, split, values.judge)
            if (point := values.stored(writer)) is not None:
                points[split.stream] = point
        elif bounds := timing.by_position(split.stream):
            counted = CountedRows(work, split.stream, bounds)
            arrivals[split.stream] = _take_in_split(task, split, counted.judge)
            task.counted[split.stream] = counted.counting
        elif timing.counts is not None:
            tallied = TalliedRows(task, split.stream)
            arrivals[split.stream] = tallied.counted(_take_in_split(task, split, tallied=tallied))
        else:
            arrivals[split.stream] = _take_in_split(task, split)
    writer.close()
    yield from _finished(task, arrivals, points)


def _take_in_relation(task: Task, split: SplitRange) -> Arrivals:
    """Run level 0 over a part of a relation; what arrived."""
    relation = task.work.relations[split.stream]
    assert relation.source is not None
    seen = Arrivals()
    added = () if relation.changed_at is None else (WEIGHT,)
    source = iter(relation.source.read(split.start, split.end, (*relation.schema.names, *added)))
    place = split.start
    for read in task.watch.each("read", source):
        seen = seen.beside(take_in_relation(task, split.stream, read, place))
        place += read.rows.num_rows
    return seen


def _take_in_letters(task: Task, split: SplitRange) -> None:
    """Run level 0 over dead letters of a stream that are taken once more.

    They come from before, so they say nothing of how far the stream is, nor of its disorder.
    """
    stream = task.work.streams[split.stream]
    assert stream.source is not None
    judge = by_time(partial(judge_together, heartbeat=stream.heartbeat))
    place = split.start
    for read in task.watch.each("read", stream.source.read(split.start, split.end, stream.schema.names)):
        take_in(task, split.stream, read, judge, Memories(task.work, split.stream, BEGINNING), place)
        place += read.rows.num_rows


def _take_in_split(
    task: Task, split: SplitRange, judge: Judge | None = None, tallied: TalliedRows | None = None
) -> Arrivals:
    """Run level 0 over a split; what arrived.

    Args:
        task: runs it.
        split: what is read.
        judge: which rows are late, where that depends on more than their timestamps.
        tallied: counts the rows, where external CTIs do.
    """
    stream = task.work.streams[split.stream]
    assert stream.source is not None
    disorder = stream.timing.disorder
    source = iter(stream.source.read(split.start, split.end, stream.schema.names))
    seen, place = Arrivals(), split.start
    for read in task.watch.each("read", source):
        if tallied is not None:
            read = tallied.read(read)
        memories = Memories(task.work, split.stream, max(split.before, seen.latest))
        if stream.in_order:
            heartbeat = advance(stream.heartbeat, max(split.before, seen.latest), disorder)
            in_order = judge or by_time(partial(judge_in_order, heartbeat=heartbeat, disorder=disorder))
            newest = max(stream.latest, split.before, seen.latest)
            in_order = measured(task, split.stream, in_order, newest)
            in_order = in_order if tallied is None else tallied.watching(in_order)
            seen = seen.then(take_in(task, split.stream, read, in_order, memories, place))
        else:
            together = judge or by_time(partial(judge_together, heartbeat=stream.heartbeat))
            together = measured(task, split.stream, together, stream.latest)
            seen = seen.beside(take_in(task, split.stream, read, together, memories, place))
        place += read.rows.num_rows
    return seen


@_reporting
def run_rows(
    work: EpochWork, number: int, attempt: int, stream: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[Chunk]:
    """Level 0 for the rows of a frame: as for splits, with the frame's columns brought to the stream's.

    Spark gives a frame's rows in no fixed order, so that they are judged together.
    """
    task = Task(work, 0, number, attempt)
    seen, count = Arrivals(), 0
    judge = by_time(partial(judge_together, heartbeat=work.streams[stream].heartbeat))
    judge = measured(task, stream, judge, work.streams[stream].latest)
    memories = Memories(work, stream, BEGINNING)
    columns, wanted = work.streams[stream].columns, work.streams[stream].schema.names
    needed = columns.needed(wanted)
    given = columns.given.select(tuple(map(columns.given.names.index, needed)))
    for batch in batches:
        read = columns.computed(typed_rows(batch, given, stream, count), wanted)
        # Where a row is in a task's share of a frame tells nobody anything.
        read = replace(read, places=None)
        seen = seen.beside(take_in(task, stream, read, judge, memories, count))
        count += batch.num_rows
    yield from _finished(task, {stream: seen}, {})


def _finished(task: Task, arrivals: dict[str, Arrivals], values: dict[str, ValuesPoint]) -> Iterator[Chunk]:
    """What level 0 sends when it has read everything."""
    yield from task.summaries(arrivals)
    yield from task.routed()
    yield task.report(arrivals, values=values)


@_reporting
def run_level(
    work: EpochWork,
    number: int,
    attempt: int,
    level: int,
    chunks: Sequence[Chunk],
    in_place: bool = False,
    at_hand: RunsAtHand | None = None,
    flag: CancelFlag = NEVER,
) -> Iterator[Chunk]:
    """A further level, from 1: the operators of this task's buckets, over what the levels before sent it.

    A task's buckets are those that equal its number modulo `work.tasks`.
    """
    inbox = Inbox(work, level, number, chunks)
    yield from inbox.forwarded()
    if not inbox.is_certain:
        return
    task = Task(work, level, number, attempt, in_place, flag)
    writer = task.state_writer()
    run = Level(task, inbox, at_hand)
    state: dict[StateKey, Manifest] = {}
    for bucket in range(number, work.buckets, work.tasks):
        for node, operator in run.run(bucket):
            with task.fence.around(node.number):
                state[node.identity, bucket] = run.store(node, bucket, operator, writer)
    yield from task.routed()
    with task.watch("store state"):
        writer.close()
    yield task.report(state=state)
