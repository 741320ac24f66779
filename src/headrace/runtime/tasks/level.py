"""A level of an epoch after level 0: what a task is sent, and its operators' run over its buckets."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Early, Stateful, Stateless
from headrace.algebra.properties import is_stateful, is_stateless
from headrace.elements import Batch, concat, decode, empty, encode_rows, read_rows
from headrace.lowering.node import Edge, Node
from headrace.operators.before_exchange import part_for, reduction_for
from headrace.operators.contract import Operator, OperatorProgress, Report
from headrace.operators.create import create_operator, create_timeline_operator
from headrace.operators.early import Reach, Runs, Speaker, runs_of, unreported
from headrace.operators.hold import HoldingOperator
from headrace.operators.state.runs import RunPart, RunRef, SortedRun, stored_run
from headrace.operators.stateless import apply
from headrace.operators.windows.bloom_filters import BloomFilterOperator
from headrace.runtime.store.segments import SegmentReader, SegmentWriter
from headrace.runtime.tasks.at_hand import RunsAtHand, StatePlace
from headrace.runtime.tasks.messages import (
    ARRIVALS_CHANNEL,
    REPORT_CHANNEL,
    Chunk,
    EpochWork,
    Manifest,
    pickled,
)
from headrace.runtime.tasks.task import Task, label
from headrace.time import INFINITY


class Inbox:
    """The chunks of one task, sorted so that repeats see the same order.

    Args:
        work: the epoch.
        level: the task's, from 1.
        task: its number.
        chunks: everything that was sent to it.
    """

    def __init__(self, work: EpochWork, level: int, task: int, chunks: Sequence[Chunk]) -> None:
        self._level = level
        self._task = task
        self._levels = work.graph.levels
        self._inbound = work.graph.inbound
        self._reach = work.graph.last_levels
        self._reports: list[Chunk] = []
        self._data: dict[tuple[int, int], list[Chunk]] = {}
        summaries = []
        for chunk in sorted(chunks, key=lambda chunk: (chunk.channel, chunk.bucket, chunk.sender)):
            if chunk.channel == REPORT_CHANNEL:
                self._reports.append(chunk)
            elif chunk.channel == ARRIVALS_CHANNEL:
                summaries.append(pickle.loads(chunk.encoded))
            else:
                self._data.setdefault((chunk.channel, chunk.bucket), []).append(chunk)
        self.arrivals = work.joined(summaries)

    @property
    def is_certain(self) -> bool:
        """Whether level 0 has judged no row wrongly; if it has, the epoch runs again."""
        return all(seen.is_certain for seen in self.arrivals.values())

    def forwarded(self) -> Iterator[Chunk]:
        """What goes on unchanged: reports, the arrival summary, and exchanges that reach further levels."""
        yield from self._reports
        if self._level < self._levels:
            yield Chunk(self._task, 0, ARRIVALS_CHANNEL, self._task, pickled(self.arrivals))
        for (channel, _), chunks in self._data.items():
            if self._reach[channel] > self._level:
                yield from chunks

    def channels(self, bucket: int) -> Iterator[int]:
        """The exchanges that delivered something for a bucket."""
        return (channel for channel, place in self._data if place == bucket)

    def batches(self, node: Node, port: int, bucket: int) -> list[Batch]:
        """What an exchange delivered for a bucket, to an input of a node."""
        channel = self._inbound[node.number][port]
        assert channel is not None
        payloads = (chunk.payload for chunk in self._data.get((channel, bucket), []))
        return [part if isinstance(part, Batch) else decode(part) for part in payloads]


_Taken = list[tuple[int, Batch]]
"""What an operator has processed, with the ports."""

_Known = dict[int, tuple[Runs, Runs, _Taken]]
"""The state of operators before they ran and after, and what they took in, by their nodes."""


class Worklist:
    """Numbers of nodes in order, to which larger ones are added while they are gone over.

    Args:
        first: those that are known at first.
    """

    def __init__(self, first: Collection[int]) -> None:
        self._known = set(first)
        self._left = sorted(first)

    def add(self, numbers: Iterable[int]) -> None:
        """Add nodes that come later, as far as they are not known."""
        for number in numbers:
            if number not in self._known:
                self._known.add(number)
                heappush(self._left, number)

    def __iter__(self) -> Iterator[int]:
        while self._left:
            yield heappop(self._left)


class Level:
    """The run of one level's nodes over the buckets of one task.

    Args:
        task: of the level.
        inbox: what was sent to it.
        at_hand: state that need not be read, where there may be such.
    """

    def __init__(self, task: Task, inbox: Inbox, at_hand: RunsAtHand | None) -> None:
        self._task = task
        self._inbox = inbox
        self._at_hand = at_hand
        self._reader = SegmentReader(task.work.store)
        graph = task.work.graph
        before, after = task.work.heartbeats_before(), task.work.heartbeats_after(inbox.arrivals)
        self._exits = next(map(task.exits, task.work.replayed), None)
        newest = task.work.newest_before(), task.work.newest_after(inbox.arrivals)
        pasts = task.work.pasts, task.work.pasts_after(inbox.arrivals)
        self._before, self._after = map(graph.heartbeats, (before, after), newest, pasts)
        self._limits = tuple(map(graph.limits, (before, after), newest, pasts))
        self._horizons = tuple(map(graph.reaches, (before, after), newest, pasts))
        self._moved = self._moving()

    def _moving(self) -> tuple[int, ...]:
        """The nodes of the level whose time moves in the epoch, so that what they have may be due."""
        graph = self._task.work.graph
        times = [(self._before, self._after), self._limits]
        times += zip(*(horizons.values() for horizons in self._horizons), strict=True)
        found = set[int]()
        for before, after in times:
            if before is not after:
                moved = np.flatnonzero(np.array(before) != np.array(after)).tolist()
                found.update(moved, *map(graph.consumers.__getitem__, moved))
        return tuple(number for number in sorted(found) if graph.nodes[number].level == self._task.level)

    def _ready(self, bucket: int) -> Worklist:
        """The nodes that have something to do: the others yield nothing, and what they hold stays."""
        graph, level = self._task.work.graph, self._task.level
        reached = (graph.readers[channel] for channel in self._inbox.channels(bucket))
        first = {number for numbers in reached for number in numbers if graph.nodes[number].level == level}
        return Worklist({*first, *self._moved})

    def run(self, bucket: int) -> Iterator[tuple[Node, Operator]]:
        """Run a bucket; the operators with state, whose areas are to be stored."""
        outputs: dict[int, Batch] = {}
        known: _Known = {}
        fence, graph = self._task.fence, self._task.work.graph
        for node in map(graph.nodes.__getitem__, ready := self._ready(bucket)):
            if fence.has_failed(node.number):
                continue
            # What fails yields nothing, here and in further buckets; nothing of it counts.
            outputs[node.number] = empty(node.plan.schema)
            with fence.around(node.number):
                if is_stateful(node.plan):
                    operator = self._operator(node, node.plan, bucket)
                    state = runs_of(operator)
                    with self._task.watch(label(node)):
                        taken = self._process(node, operator, bucket, outputs)
                        outputs[node.number] = operator.advance(self._progress(node))
                    known[node.number] = state, runs_of(operator), taken
                elif isinstance(node.plan, Early) and node.plan.corrects:
                    with self._task.watch(label(node)):
                        outputs[node.number] = self._speak(node, node.plan, known, outputs)
                elif is_stateless(node.plan):
                    with self._task.watch(label(node)):
                        outputs[node.number] = self._apply(node, node.plan, bucket, outputs)
            if fence.has_failed(node.number):
                continue
            if is_stateful(node.plan):
                yield node, operator
            if node.number in known or len(outputs[node.number]):
                ready.add(graph.above_here[node.number])
            self._task.counter.give(node.number, outputs[node.number], node.plan)
            if is_stateful(node.plan) and isinstance(operator, BloomFilterOperator):
                self._task.counter.miss(node.number, operator.missed)
                self._task.counter.tally(node.number, operator.measured)
            with self._task.watch("route"):
                self._task.outbox.put(node.number, outputs[node.number])

    def store(self, node: Node, bucket: int, operator: Operator, writer: SegmentWriter) -> Manifest:
        """Append an operator's new state of a bucket to the task's segment; where all of it is."""

        def content(part: RunPart) -> pa.Buffer:
            written = writer.written(part)
            # A part that was read lies in a file that may be deleted by the next epoch.
            return pa.py_buffer(self._reader.read(part).to_pybytes()) if written is None else written

        with self._task.watch("store state"):
            manifest = store_state(operator, writer)
            if self._at_hand is not None:
                self._at_hand.keep(self._place(node, bucket), operator, content)
        return manifest

    def _operator(self, node: Node, plan: Stateful, bucket: int) -> Operator:
        manifest = self._task.work.state.get((node.identity, bucket), {})
        limit = self._limits[1][node.number]
        report = self._task.letters.reporter(node.number)
        operator = loaded_operator(node, plan, manifest, report, self._load, limit)
        if self._at_hand is not None:
            self._at_hand.lend(self._place(node, bucket), operator)
        return operator

    def _place(self, node: Node, bucket: int) -> StatePlace:
        return self._task.work.token, (node.identity, bucket)

    def _process(self, node: Node, operator: Operator, bucket: int, outputs: dict[int, Batch]) -> _Taken:
        taken = []
        for port, edge in enumerate(node.inputs):
            for batch in self._batches(node, port, edge, bucket, outputs):
                taken.append((port, self._reduced(node, edge, batch)))
                operator.process(*taken[-1])
        return taken

    def _progress(self, node: Node) -> OperatorProgress:
        producers = [edge.producer for edge in node.inputs]
        before, after = (limits[node.number] for limits in self._limits)
        return OperatorProgress(
            tuple(min(self._before[producer], before) for producer in producers),
            tuple(min(self._after[producer], after) for producer in producers),
        )

    def _speak(self, node: Node, plan: Early, reaches: _Known, outputs: dict[int, Batch]) -> Batch:
        """What an operator says up to its horizon, after it has run."""
        told = node.inputs[0].producer
        operator = self._task.work.graph.nodes[told]
        if told not in reaches:
            # It has had nothing to do, or has failed, and its queries end.
            return empty(plan.schema)
        self._task.counter.take(node.number, len(outputs[told]))
        assert is_stateful(operator.plan)
        *states, taken = reaches[told]
        how = operator.plan, operator.reduced_for is not None, unreported
        speaker = Speaker(
            plan.schema, partial(create_operator, *how), partial(create_timeline_operator, *how)
        )
        producers = [edge.producer for edge in operator.inputs]
        before, after = (
            Reach(
                runs,
                tuple(heartbeats[producer] for producer in producers),
                tuple(horizons[plan.horizon][producer] for producer in producers),
            )
            for runs, heartbeats, horizons in zip(
                states, (self._before, self._after), self._horizons, strict=True
            )
        )
        return speaker.speak(outputs[told], taken, before, after)

    def _reduced(self, node: Node, edge: Edge, batch: Batch) -> Batch:
        """The batch in the form in which the operator reads it: as its part of what travelled, or reduced."""
        if node.reduced_for is None:
            return batch
        if edge.exchange is not None:
            return part_for(node.plan, node.reduced_for, batch)
        return reduction_for(node.reduced_for).reduce(batch, self._task.letters.reporter(node.number))

    def _apply(self, node: Node, plan: Stateless, bucket: int, outputs: dict[int, Batch]) -> Batch:
        report = self._task.letters.reporter(node.number)
        inputs = [
            batch
            for port, edge in enumerate(node.inputs)
            for batch in self._batches(node, port, edge, bucket, outputs)
        ]
        self._task.counter.weigh(node.number, plan, inputs)
        return concat(plan.schema, [apply(plan, batch, report) for batch in inputs])

    def _batches(
        self, node: Node, port: int, edge: Edge, bucket: int, outputs: dict[int, Batch]
    ) -> list[Batch]:
        if edge.exchange is None:
            found = [outputs[edge.producer]] if edge.producer in outputs else []
        else:
            found = [] if self._is_withheld(node, edge) else self._inbox.batches(node, port, bucket)
        self._task.counter.take(node.number, sum(map(len, found)))
        return found

    def _is_withheld(self, node: Node, edge: Edge) -> bool:
        """Whether an exchange brings rows that other readers of it take once more, and the node does not."""
        exits = self._exits
        return exits is not None and edge.producer in exits.reached and node.number not in exits.readers

    def _load(self, ref: RunRef) -> pa.RecordBatch:
        with self._task.watch("load state"):
            return read_rows(self._reader.read(ref.part))


def loaded_operator(
    node: Node,
    plan: Stateful,
    manifest: Manifest,
    report: Report,
    load: Callable[[RunRef], pa.RecordBatch],
    limit: int = INFINITY,
) -> Operator:
    """A node's operator with its state of a bucket.

    Args:
        node: the node.
        plan: the plan that it carries out.
        manifest: where the state is.
        report: receives the elements for which an expression fails.
        load: reads a run when it is looked at.
        limit: up to where it takes elements if it waits for others (instant).
    """
    operator = create_operator(plan, node.reduced_for is not None, report)
    if node.waits_for:
        operator = HoldingOperator(operator, len(node.inputs), limit)
    for name, refs in manifest.items():
        operator.areas[name].runs = [stored_run(ref, load) for ref in refs]
    return operator


def store_state(operator: Operator, writer: SegmentWriter) -> dict[str, tuple[RunRef, ...]]:
    """The manifest of an operator's areas; new runs are appended to the task's segment."""
    return {name: tuple(_stored(run, writer) for run in area.runs) for name, area in operator.areas.items()}


def _stored(run: SortedRun, writer: SegmentWriter) -> RunRef:
    if run.ref is None:
        part = writer.add(encode_rows(run.batch))
        run.ref = RunRef(part, run.rows, run.first, run.last, run.reach)
    return run.ref
