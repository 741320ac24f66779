"""What a task sends and writes: exchanged chunks, results, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from headrace.algebra.nodes import TimeWindow
from headrace.elements import Batch, BoolArray, concat, encode
from headrace.limits import within
from headrace.lowering.exits import Exits
from headrace.lowering.graph import Graph, Panes
from headrace.lowering.node import Exchange, Spread
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.before_exchange import InPanes
from headrace.operators.contract import Report
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.channels import Channel
from headrace.runtime.tasks.fence import Fence
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
        fence: takes what goes wrong on the way, for the nodes that read an exchange or a result's own.
        in_place: whether the next levels run in this process.

    Attributes:
        sent: how many bytes went to other processes.
    """

    def __init__(
        self, work: EpochWork, level: int, task: int, letters: DeadLetters, fence: Fence, in_place: bool
    ) -> None:
        self._work = work
        self._fence = fence
        self._in_place = in_place
        self._task = task
        self._letters = letters
        self.sent = 0
        graph = work.graph
        self._channels: dict[int, Channel] = {}
        self._readers = graph.readers
        self._panes = [_Paned(panes, graph, graph.channel_numbers) for panes in graph.panes if not level]
        self._paned = {number for part in self._panes for number in part.channels}
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
        for channel in self._leaving(node):
            if exits is None or channel.number in exits.channels:
                self._prepare(channel, batch, self._letters.reporter(node))
        for part in self._panes:
            if part.node == node:
                for number, prepared in part.prepare(batch, self._letters, self._fence, self._readers):
                    if exits is None or number in exits.channels:
                        self._pending.setdefault(number, []).append(prepared)

    def _channel(self, number: int) -> Channel:
        """An exchange as its producer sees it, made when something travels on it."""
        if number not in self._channels:
            producer, exchange = self._work.graph.channels[number]
            self._channels[number] = Channel(number, self._work.graph.nodes[producer], exchange)
        return self._channels[number]

    def _leaving(self, node: int) -> list[Channel]:
        """The exchanges after a node, but those that are added up in panes."""
        numbers = self._work.graph.outbound.get(node, ())
        return [self._channel(number) for number in numbers if number not in self._paned]

    def _prepare(self, channel: Channel, batch: Batch, report: Report, keep: bool = True) -> None:
        """Bring a batch into the form in which it travels; what fails there fails for those who read it."""
        readers = self._readers[channel.number]
        if not self._fence.has_failed(*readers):
            with self._fence.around(*readers):
                prepared = channel.prepare(batch, report)
                if keep:
                    self._pending.setdefault(channel.number, []).append(prepared)

    def rehearse(self, node: int, batch: Batch, report: Report) -> None:
        """Report what fails where a batch of a node is prepared for the next levels; send nothing."""
        for channel in self._leaving(node):
            self._prepare(channel, batch, report, keep=False)

    def chunks(self) -> Iterator[Chunk]:
        """Everything that goes to the next levels, one chunk per exchange and bucket."""
        for number, batches in sorted(self._pending.items(), key=lambda pending: pending[0]):
            channel, readers = self._channel(number), self._readers[number]
            if not self._fence.has_failed(*readers):
                found: list[Chunk] = []
                with self._fence.around(*readers):
                    found += self._spread(channel, batches)
                yield from () if self._fence.has_failed(*readers) else found

    def write(self, writer: SegmentWriter) -> tuple[tuple[ResultRef, ...], dict[int, int]]:
        """Append the results to the task's segment; where they are, and each output's number of elements."""
        graph, kept = self._work.graph, self._work.keep_results
        refs: list[ResultRef] = []
        emitted = dict(self._emitted)
        for node, batches in self._results.items():
            if self._fence.has_failed(node):
                continue
            with self._fence.around(node):
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
        self._windows = [number for number, _ in panes.members]
        self._read = dict(zip(self._windows, panes.columns, strict=True))
        windows = []
        for (number, _), part in zip(panes.members, panes.parts, strict=True):
            window = graph.nodes[number].plan
            assert isinstance(window, TimeWindow)
            windows.append((window, Accumulation.of(part)))
        self._parts, self._length = windows, panes.length
        self._reduction = InPanes(panes.length, Accumulation.of(panes.plan), tuple(windows))

    def prepare(
        self, batch: Batch, letters: DeadLetters, fence: Fence, readers: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, Batch]]:
        """For each of the exchanges a batch of the windows' input in the form in which it travels.

        Where that fails for all of them together, it is done for each alone, and fails for who it is due to.

        Args:
            batch: the batch.
            letters: where rows go for which an expression fails.
            fence: takes what goes wrong.
            readers: the nodes that read each exchange.
        """
        everyone = [node for channel in self.channels for node in readers[channel]]
        failed: list[_Failed] = []
        try:
            with within(fence.limit(everyone)):
                prepared = list(self._reduction.reduce(batch, lambda *part: failed.append(part)))
        except BaseException as error:
            if not fence.is_of_node(error):
                raise
            yield from self._one_by_one(batch, letters, fence, readers)
            return
        for number in self._windows:
            self._set_apart(failed, number, letters)
        yield from zip(self.channels, prepared, strict=True)

    def _one_by_one(
        self, batch: Batch, letters: DeadLetters, fence: Fence, readers: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, Batch]]:
        for channel, number, (window, part) in zip(self.channels, self._windows, self._parts, strict=True):
            failed: list[_Failed] = []
            prepared: list[Batch] = []
            with fence.around(*readers[channel]):
                reduction = InPanes(self._length, part, ((window, part),))
                prepared += reduction.reduce(batch, lambda *rows, known=failed: known.append(rows))
            if prepared:
                self._set_apart(failed, number, letters)
                yield channel, prepared[0]

    def _set_apart(self, failed: Sequence[_Failed], number: int, letters: DeadLetters) -> None:
        """Report the elements of a window for which an expression has failed."""
        columns, report = self._read[number], letters.reporter(number)
        for rows, places, reason in failed:
            report(rows.with_payload(rows.payload.select(columns)), places, reason)


_Failed = tuple[Batch, BoolArray, str]
"""What a report is given: a batch, which of its elements, and the reason."""
