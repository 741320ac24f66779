"""A task of an epoch: what every level's tasks measure, send, write and report."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterator, Mapping

from headrace.algebra.memory import Memory
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.share import Lateness
from headrace.heartbeats.tally import Tally
from headrace.lowering.exits import Exits, exits_for
from headrace.lowering.node import Node
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.counts import Counter
from headrace.runtime.tasks.fence import NEVER, CancelFlag, Fence
from headrace.runtime.tasks.letters import DeadLetters
from headrace.runtime.tasks.messages import (
    ARRIVALS_CHANNEL,
    REPORT_CHANNEL,
    Chunk,
    EpochWork,
    Manifest,
    StateKey,
    TaskReport,
    ValuesPoint,
    pickled,
)
from headrace.runtime.tasks.outbox import Outbox
from headrace.runtime.tasks.profile import Stopwatch
from headrace.runtime.tasks.retaining import RetainedRows


class Task:
    """One task of one level.

    Args:
        work: the epoch.
        level: the level, 0 for the one that reads the sources.
        number: the task's number there.
        attempt: makes the names of its segments unique among repeats of the task.
        in_place: whether the next levels run in this process.
        flag: says what of the epoch is not wanted any more.

    Attributes:
        work, level, number: as given.
        fence: takes what goes wrong in the work of nodes.
        letters: takes the rows that no query can use.
        retained: takes the rows that are kept.
        outbox: takes what nodes yield.
        watch: measures what it does.
        counter: counts what its nodes take in and yield.
        lateness: how far rows were behind, of each stream that keeps to a share of late rows.
        counted: what rows promise by their position, of each stream with `DISORDER n ROWS`.
        tallies: what external CTIs wait for, of each stream that has such.
        departed: how many rows were left out for queries that remember a stream for less than it allows.
    """

    def __init__(
        self,
        work: EpochWork,
        level: int,
        number: int,
        attempt: int,
        in_place: bool = False,
        flag: CancelFlag = NEVER,
    ) -> None:
        self.work = work
        self.level = level
        self.number = number
        self.fence = Fence(work.graph, work.timeout, flag)
        self.letters = DeadLetters(work)
        self.retained = RetainedRows(work)
        self.outbox = Outbox(work, level, number, self.letters, self.fence, in_place)
        self.watch = Stopwatch(level)
        self.counter = Counter()
        self.lateness: dict[str, Lateness] = {}
        self.counted: dict[str, tuple[Counting, ...]] = {}
        self.tallies: dict[str, Tally] = {}
        self.departed = Counts[Memory]()
        self._name = f"e{work.epoch}-l{level}-t{number}-a{attempt}-{work.token}"

    def exits(self, stream: str) -> Exits | None:
        """The ways on which rows of a stream go that are taken once more; None where they go on all."""
        known = self.work.streams.get(stream)
        if known is None or known.replayed is None:
            return None
        return exits_for(self.work.graph, stream, known.replayed)

    def state_writer(self) -> SegmentWriter:
        """The segment for the state of its operators."""
        return SegmentWriter(self.work.store, f"segments/{self._name}")

    def summaries(self, arrivals: Mapping[str, Arrivals]) -> Iterator[Chunk]:
        """What it read of each stream, for every task of the next level."""
        if self.work.graph.levels:
            payload = pickled(arrivals)
            for target in range(self.work.tasks):
                yield Chunk(target, 0, ARRIVALS_CHANNEL, self.number, payload)

    def routed(self) -> Iterator[Chunk]:
        """What nodes have yielded for the next levels."""
        yield from self.watch.each("route", self.outbox.chunks())

    def report(
        self,
        arrivals: dict[str, Arrivals] | None = None,
        state: dict[StateKey, Manifest] | None = None,
        values: dict[str, ValuesPoint] | None = None,
    ) -> Chunk:
        """Write results and dead letters to a file of their own, since state goes and results stay; report.

        Args:
            arrivals: what it read, by stream.
            state: the manifests of the operators it ran.
            values: where those lie that have bounds of their own, by stream.
        """
        with self.watch("write results"):
            writer = SegmentWriter(self.work.store, f"results/{self._name}")
            results, emitted = self.outbox.write(writer)
            dead = self.letters.write(writer)
            writer.close()
            # They go when they have been kept for long enough, whatever becomes of results and state.
            kept = SegmentWriter(self.work.store, f"segments/{self._name}-letters")
            letters = self.letters.write_whole(kept)
            kept.close()
            retained = self.retained.write(f"segments/{self._name}")
        time, counts = self.watch.time(self.outbox.sent), self.counter.counts()
        return report_chunk(
            self.work,
            self.number,
            TaskReport(
                arrivals or {},
                results,
                emitted,
                dead,
                state or {},
                tuple(self.fence.failures.values()),
                time=time,
                counts=counts,
                lateness=self.lateness,
                values=values or {},
                counted=self.counted,
                tallies=self.tallies,
                letters=letters,
                departed=self.departed,
                retained=retained,
            ),
        )


def report_chunk(work: EpochWork, number: int, report: TaskReport) -> Chunk:
    """A task's report on its way to the driver."""
    return Chunk(number % work.tasks, 0, REPORT_CHANNEL, number, pickled(report))


def label(node: Node) -> str:
    """What a profile calls a node's work."""
    return f"#{node.number} {type(node.plan).__name__}"


def labelled(what: str) -> int | None:
    """The number of the node that a label of a profile is of; None for other work."""
    return int(what[1 : what.index(" ")]) if what.startswith("#") else None
