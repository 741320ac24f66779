"""What a task sends and writes: exchanged chunks, results, dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from headrace.algebra.nodes import TimeWindow
from headrace.elements import Batch, BoolArray, concat, encode
from headrace.limits import within
from headrace.lowering.exits import Exits
from headrace.lowering.graph import Graph, Panes
from headrace.lowering.node import Spread
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
        self._panes = [_Paned(panes, graph, fence) for panes in graph.panes if not level]
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
                part.take(batch, exits, self._letters)

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
        for part in self._panes:
            for number, batch in part.prepared():
                self._pending.setdefault(number, []).append(batch)
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

    Rows are added up batch by batch, and put into the windows when all have come: a window is longer than a
    pane, and few of the rows of a window are in one batch.

    Args:
        panes: the windows.
        graph: the graph they are in.
        fence: takes what goes wrong.

    Attributes:
        node: the number of their input.
        channels: the numbers of the exchanges after them.
    """

    def __init__(self, panes: Panes, graph: Graph, fence: Fence) -> None:
        self.node = panes.node
        self.channels = [graph.channel_numbers[member] for member in panes.members]
        self._readers = [graph.readers[channel] for channel in self.channels]
        self._everyone = [node for readers in self._readers for node in readers]
        self._windows = [number for number, _ in panes.members]
        self._columns = panes.columns
        self._fence = fence
        windows = []
        for (number, _), part in zip(panes.members, panes.parts, strict=True):
            window = graph.nodes[number].plan
            assert isinstance(window, TimeWindow)
            windows.append((window, Accumulation.of(part)))
        self._together = InPanes(panes.length, Accumulation.of(panes.plan), tuple(windows))
        self._added: dict[Exits | None, list[Batch]] = {}
        self._alone = [InPanes(panes.length, form, ((window, form),)) for window, form in windows]
        self._added_alone: dict[tuple[Exits | None, int], list[Batch]] = {}

    def take(self, batch: Batch, exits: Exits | None, letters: DeadLetters) -> None:
        """Add up a batch of the windows' input.

        Where that fails for all of them together, it is done for each alone, and fails for who it is due to.

        Args:
            batch: the batch.
            exits: the ways on which it may leave; all if None.
            letters: where rows go for which an expression fails.
        """
        failed: list[_Failed] = []
        try:
            with within(self._fence.limit(self._everyone)):
                added = self._together.add_up(batch, lambda *part: failed.append(part))
        except BaseException as error:
            if not self._fence.is_of_node(error):
                raise
            self._take_alone(batch, exits, letters)
            return
        for place in range(len(self._windows)):
            self._set_apart(failed, place, letters)
        self._added.setdefault(exits, []).append(added)

    def _take_alone(self, batch: Batch, exits: Exits | None, letters: DeadLetters) -> None:
        for place, (reduction, readers) in enumerate(zip(self._alone, self._readers, strict=True)):
            failed: list[_Failed] = []
            added: list[Batch] = []
            with self._fence.around(*readers):
                added.append(reduction.add_up(batch, lambda *rows, known=failed: known.append(rows)))
            if added:
                self._set_apart(failed, place, letters)
                self._added_alone.setdefault((exits, place), []).extend(added)

    def prepared(self) -> Iterator[tuple[int, Batch]]:
        """For each exchange what was taken for it, in the form in which it travels."""
        for exits, batches in self._added.items():
            panes = self._joined(batches)
            for place in range(len(self.channels)):
                yield from self._in_window(self._together, place, place, panes, exits)
        for (exits, place), batches in self._added_alone.items():
            reduction = self._alone[place]
            panes = concat(reduction.form.schema, batches)
            yield from self._in_window(reduction, 0, place, panes, exits)

    def _joined(self, batches: list[Batch]) -> Batch:
        """What was added up for all windows; where joining it fails, each does that for itself."""
        if len(batches) == 1:
            return batches[0]
        try:
            with within(self._fence.limit(self._everyone)):
                return self._together.joined(batches)
        except BaseException as error:
            if not self._fence.is_of_node(error):
                raise
            return concat(self._together.form.schema, batches)

    def _in_window(
        self, reduction: InPanes, number: int, place: int, panes: Batch, exits: Exits | None
    ) -> Iterator[tuple[int, Batch]]:
        channel, readers = self.channels[place], self._readers[place]
        if (exits is None or channel in exits.channels) and not self._fence.has_failed(*readers):
            found: list[Batch] = []
            with self._fence.around(*readers):
                found.append(reduction.in_window(number, panes))
            yield from ((channel, batch) for batch in found)

    def _set_apart(self, failed: Sequence[_Failed], place: int, letters: DeadLetters) -> None:
        """Report the elements of a window for which an expression has failed."""
        columns, report = self._columns[place], letters.reporter(self._windows[place])
        for rows, places, reason in failed:
            report(rows.with_payload(rows.payload.select(columns)), places, reason)


_Failed = tuple[Batch, BoolArray, str]
"""What a report is given: a batch, which of its elements, and the reason."""
