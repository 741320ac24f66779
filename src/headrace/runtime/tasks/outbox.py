"""What a task sends and writes: exchanged chunks, results, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace.algebra.nodes import TimeWindow
from headrace.elements import Batch, BoolArray, concat, encode
from headrace.lowering.exits import Exits
from headrace.lowering.graph import Exchange, Graph, Panes, Spread
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.before_exchange import InPanes
from headrace.operators.contract import Report
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.channels import Channel
from headrace.runtime.tasks.letters import DeadLetters
from headrace.runtime.tasks.messages import Chunk, EpochWork, ResultRef
from headrace.runtime.tasks.results import GroupedResult


class Outbox:
    """Collects what the nodes of one task yield, by exchange and by query result.

    Args:
        work: the epoch.
        level: the level the task belongs to.
        task: its number there.
        letters: where rows go for which a key's expression fails.
        in_place: whether the next levels run in this process.

    Attributes:
        sent: how many bytes went to other processes.
    """

    def __init__(self, work: EpochWork, level: int, task: int, letters: DeadLetters, in_place: bool) -> None:
        self._work = work
        self._in_place = in_place
        self._task = task
        self._letters = letters
        self.sent = 0
        graph = work.graph
        self._channels = [
            Channel(number, graph.nodes[producer], exchange)
            for number, (producer, exchange) in enumerate(graph.channels)
            if graph.nodes[producer].level == level
        ]
        numbers = {channel: number for number, channel in enumerate(graph.channels)}
        self._panes = [_Paned(panes, graph, numbers) for panes in graph.panes if not level]
        paned = {number for part in self._panes for number in part.channels}
        self._leaving: dict[int, list[Channel]] = {}
        for channel in self._channels:
            if channel.number not in paned:
                self._leaving.setdefault(channel.producer.number, []).append(channel)
        self._pending: dict[int, list[Batch]] = {}
        # The elements of groups are counted by their constants, all others by their batches alone.
        self._kept = graph.result_nodes if work.keep_results else graph.groups_of.keys()
        self._results: dict[int, list[Batch]] = {}
        self._emitted: dict[int, int] = {}

    def put(self, node: int, batch: Batch, exits: Exits | None = None) -> None:
        """Take what a node yielded.

        Args:
            node: the node.
            batch: what it yielded.
            exits: the ways on which that may leave; all if None.
        """
        if not len(batch):
            return
        if exits is None or node in exits.results:
            if node in self._work.graph.whole_results:
                self._emitted[node] = self._emitted.get(node, 0) + len(batch)
            if node in self._kept:
                self._results.setdefault(node, []).append(batch)
        for channel in self._leaving.get(node, ()):
            if exits is None or channel.number in exits.channels:
                prepared = channel.prepare(batch, self._letters.reporter(node))
                self._pending.setdefault(channel.number, []).append(prepared)
        for part in self._panes:
            if part.node == node:
                for number, prepared in part.prepare(batch, self._letters):
                    if exits is None or number in exits.channels:
                        self._pending.setdefault(number, []).append(prepared)

    def rehearse(self, node: int, batch: Batch, report: Report) -> None:
        """Report what fails where a batch of a node is prepared for the next levels; send nothing."""
        for channel in self._leaving.get(node, ()):
            channel.prepare(batch, report)

    def chunks(self) -> Iterator[Chunk]:
        """Everything that goes to the next levels, one chunk per exchange and bucket."""
        for channel in self._channels:
            batches = self._pending.pop(channel.number, [])
            if batches:
                yield from self._spread(channel, batches)

    def write(self, writer: SegmentWriter) -> tuple[tuple[ResultRef, ...], dict[int, int]]:
        """Append the results to the task's segment; where they are, and each output's number of elements."""
        graph, kept = self._work.graph, self._work.keep_results
        refs: list[ResultRef] = []
        emitted = dict(self._emitted)
        for node, batches in self._results.items():
            batch = concat(graph.nodes[node].plan.schema, batches)
            if kept and node in graph.whole_results:
                refs.append(ResultRef(node, writer.add(encode(batch)), len(batch), int(batch.ts.max())))
            if node in graph.groups_of:
                grouped = GroupedResult(batch, graph.groups_of[node])
                emitted |= grouped.counts
                refs += grouped.write(writer) if kept else ()
        return tuple(refs), emitted

    def _spread(self, channel: Channel, batches: list[Batch]) -> Iterator[Chunk]:
        exchange, number, buckets = channel.exchange, channel.number, self._work.buckets
        batch = channel.joined(batches)
        if exchange.spread is Spread.COPY:
            payload = self._payload(batch)
            yield from (self._chunk(bucket, number, payload) for bucket in range(buckets))
            return
        report = self._letters.reporter(channel.producer.number)
        for bucket, part in channel.by_bucket(batch, buckets, report):
            yield self._chunk(bucket, number, self._payload(part))

    def _payload(self, batch: Batch) -> pa.Buffer | Batch:
        return batch if self._in_place else encode(batch)

    def _chunk(self, bucket: int, number: int, payload: pa.Buffer | Batch) -> Chunk:
        if not isinstance(payload, Batch):
            self.sent += payload.size
        return Chunk(bucket % self._work.tasks, bucket, number, self._task, payload)


class _Paned:
    """Windows whose input is added up in panes, as their input sees them.

    Args:
        panes: the windows.
        graph: the graph they are in.
        numbers: of its exchanges.

    Attributes:
        node: the number of their input.
        channels: the numbers of the exchanges after them.
    """

    def __init__(self, panes: Panes, graph: Graph, numbers: Mapping[tuple[int, Exchange], int]) -> None:
        self.node = panes.node
        self.channels = [numbers[member] for member in panes.members]
        read = {number: columns for (number, _), columns in zip(panes.members, panes.columns, strict=True)}
        self._read = sorted(read.items())
        windows = []
        for (number, _), part in zip(panes.members, panes.parts, strict=True):
            window = graph.nodes[number].plan
            assert isinstance(window, TimeWindow)
            windows.append((window, Accumulation.of(part)))
        self._reduction = InPanes(panes.length, Accumulation.of(panes.plan), tuple(windows))

    def prepare(self, batch: Batch, letters: DeadLetters) -> Iterator[tuple[int, Batch]]:
        """For each of the exchanges a batch of the windows' input in the form in which it travels."""

        def report(rows: Batch, failed: BoolArray, reason: str) -> None:
            for number, columns in self._read:
                letters.reporter(number)(rows.with_payload(rows.payload.select(columns)), failed, reason)

        yield from zip(self.channels, self._reduction.reduce(batch, report), strict=True)
