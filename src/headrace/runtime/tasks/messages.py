"""What the driver hands to the tasks of an epoch, and what they hand back."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headrace.algebra.arrival import Past
from headrace.algebra.changes import Changes
from headrace.algebra.events import Events
from headrace.algebra.memory import Memory
from headrace.elements import Batch
from headrace.errors import UserError
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.counting import Counting, Due
from headrace.heartbeats.epoch import EpochTime
from headrace.heartbeats.share import Lateness
from headrace.heartbeats.tally import Tally
from headrace.heartbeats.timing import Timing
from headrace.lowering.graph import Graph
from headrace.lowering.query_id import first_name
from headrace.operators.state.runs import RunPart, RunRef
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.counts import Counts
from headrace.runtime.tasks.fence import NodeFailure
from headrace.runtime.tasks.profile import TaskTime
from headrace.schema import Schema
from headrace.time import BEGINNING, MAX_INSTANT

StateKey = tuple[str, int]
"""An operator's identity and a bucket."""

Manifest = Mapping[str, tuple[RunRef, ...]]
"""The runs of an operator's areas, by area name, oldest first."""


@dataclass(frozen=True)
class SplitRange:
    """A range of positions of a stream's source.

    Attributes:
        stream: its name.
        start, end: the range, in the source's unit.
        before: the largest timestamp of the epoch's rows before it, as far as it is known (instant).
    """

    stream: str
    start: int
    end: int
    before: int = BEGINNING


@dataclass(frozen=True)
class ValuesRun:
    """Some of the values of a stream's column, with how far they have come.

    Attributes:
        part: where that lies.
        rows: how many values.
    """

    part: RunPart
    rows: int


@dataclass(frozen=True)
class LetterFile:
    """Dead letters of a stream, with their columns.

    Attributes:
        part: where they are.
        rows: how many.
        last: the newest epoch that set one apart.
        clock: its reading of the clock (microseconds since 1970-01-01 UTC).
        tier: how often they were put together with others.
    """

    part: RunPart
    rows: int
    last: int
    clock: int
    tier: int = 0


@dataclass(frozen=True)
class RetainedFile:
    """Rows of a stream that are kept, as Parquet.

    Attributes:
        part: where they are.
        rows: how many.
        first, last: the first and the last epoch that took some of them.
        newest: the largest timestamp among them (instant).
        heartbeat: the stream's after the last of these epochs: no row of a later file is below it.
        tier: how often they were put together with others.
        at: the place of the first of them among all that have been kept of the stream, counted from 0.
    """

    part: RunPart
    rows: int
    first: int
    last: int
    newest: int
    heartbeat: int = BEGINNING
    tier: int = 0
    at: int = 0

    @property
    def end(self) -> int:
        """The place behind the last of them."""
        return self.at + self.rows


@dataclass(frozen=True)
class SlowValue:
    """A value of a stream's column than which no other that counts has come less far.

    Attributes:
        value: it as a literal of SQL, or the beginning of it.
        latest: its largest timestamp (instant), BEGINNING for a listed value that has not come.
    """

    value: str
    latest: int


@dataclass(frozen=True)
class ValuesPoint:
    """How far the values of a stream's column have come that have bounds of their own.

    Attributes:
        column: its name.
        runs: where that lies; of a value that is in several of them the last one counts.
        begun: when the stream's first row came (microseconds of its counted time).
        due: how far all of them have come, and from when on if nothing comes, by the stream's counted time
            (microseconds) and instants; both rise.
        slowest: for each of these steps the value that has come no further.
    """

    column: str
    runs: tuple[ValuesRun, ...]
    begun: int
    due: Due
    slowest: tuple[SlowValue, ...]


@dataclass(frozen=True)
class StreamInput:
    """A stream as the tasks see it.

    Attributes:
        source: where its rows come from, or None where they come in a frame or not at all.
        schema: the columns that its rows come with and that are read.
        timestamp: the column it is timed by.
        timing: how its time moves in this epoch.
        heartbeat: the promise at the start of the epoch.
        in_order: whether its rows come in an order, so that each is judged by those before it; the rows of a
            batch of Spark's are judged together.
        newest: the largest timestamp that a row may have (instant).
        latest: the largest one that came before the epoch (instant), BEGINNING for none.
        values: how far the values of the column named by PER have come, or None.
        arrival: the instant of all its rows in this epoch where it is timed by arrival, else None; level 0
            adds the timestamp then, which is not in `schema`.
        changes: what its rows change, if they are changes of rows by key or events with corrections.
        letters: all columns of the stream, where its dead letters are kept with them, else None.
        replayed: where its rows are dead letters that are taken once more, and move no heartbeat, the queries
            that get them; else None.
        retained: whether the rows that it accepts are kept.
        computed: where its rows come in a frame, the columns that this has, and those computed of them.
        arrived: how many positions came before the first one of its source; None where rows come in no order.
    """

    source: SplitSource | None
    schema: Schema
    timestamp: str
    timing: Timing
    heartbeat: int
    in_order: bool
    newest: int = MAX_INSTANT
    latest: int = BEGINNING
    values: ValuesPoint | None = None
    arrival: int | None = None
    changes: Changes | Events | None = None
    letters: Schema | None = None
    replayed: frozenset[str] | None = None
    retained: bool = False
    computed: ComputedColumns | None = None
    arrived: int | None = 0

    @property
    def columns(self) -> ComputedColumns:
        """The columns of its frame, and those that are computed of them."""
        return self.computed or ComputedColumns(self.schema)

    @property
    def has_chronons(self) -> bool:
        """Whether each of its rows is valid for the instant of its timestamp alone."""
        return not (isinstance(self.changes, Events) and self.changes.lasting)


@dataclass(frozen=True)
class RelationInput:
    """A relation as the tasks see it.

    Attributes:
        source: where its rows come from, or None where the epoch reads none of it.
        schema: the columns that some query reads, and those of `valid`.
        valid: the columns that begin and end the period of a row, or the one with its instant; None where
            every row is always valid.
        heartbeat: INFINITY once it has been read whole, and BEGINNING before; of one that is refreshed the
            promise at the start of the epoch.
        changes: what its rows change, if they are changes.
        changed_at: from which instant on the rows are in the relation, or no longer, as their column `WEIGHT`
            says; None where they are what is read first.
        arrived: how many positions came before the first one of its source.
    """

    source: SplitSource | None
    schema: Schema
    valid: tuple[str, str | None] | None
    heartbeat: int
    changes: Changes | None = None
    changed_at: int | None = None
    arrived: int = 0


@dataclass(frozen=True)
class EpochWork:
    """One epoch, as every task of it gets it.

    Attributes:
        epoch: counted from 1.
        token: names the driver's run, so that no task left over from another one writes to our names.
        graph: the query graph.
        buckets: how many buckets state is spread over; bucket b belongs to task b modulo `tasks`.
        tasks: how many tasks a level has.
        streams: by name.
        assignments: what each task of level 0 reads.
        state: the manifests of the last commit.
        store: where segments are.
        keep_results: whether results are written, or only counted.
        time: how the heartbeats at its end follow from what arrives.
        clock: the driver's one reading of the clock for the epoch (microseconds since 1970-01-01 UTC).
        relations: by the name of their reading.
        pasts: what the streams of the graph's `dials` had brought before the epoch.
        timeout: so long an operator may work in a task (seconds); None for as long as it takes.
        names: what queries are called whose identity does not say it.
    """

    epoch: int
    token: str
    graph: Graph
    buckets: int
    tasks: int
    streams: Mapping[str, StreamInput]
    assignments: tuple[tuple[SplitRange, ...], ...]
    state: Mapping[StateKey, Manifest]
    store: Store
    keep_results: bool
    time: EpochTime
    clock: int = 0
    relations: Mapping[str, RelationInput] = field(default_factory=dict)
    pasts: Mapping[str, Past] = field(default_factory=dict)
    timeout: float | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, query: str) -> str:
        """What a query is called."""
        return self.names.get(query) or first_name(query)

    @property
    def replayed(self) -> tuple[str, ...]:
        """The stream whose rows are dead letters that are taken once more; none in most epochs."""
        return tuple(name for name, stream in self.streams.items() if stream.replayed is not None)

    def heartbeats_before(self) -> dict[str, int]:
        """The inputs' heartbeats at the start of the epoch."""
        streams = {name: stream.heartbeat for name, stream in self.streams.items()}
        return streams | {name: relation.heartbeat for name, relation in self.relations.items()}

    def heartbeats_after(self, arrivals: Mapping[str, Arrivals]) -> dict[str, int]:
        """The inputs' heartbeats at its end, from what arrived."""
        return self.time.heartbeats(self.time.after(arrivals))

    def newest_before(self) -> dict[str, int]:
        """The largest timestamp of each stream before the epoch."""
        return self.time.newest(self.time.state)

    def newest_after(self, arrivals: Mapping[str, Arrivals]) -> dict[str, int]:
        """The largest timestamp of each stream at its end, from what arrived."""
        return self.time.newest(self.time.after(arrivals))

    def pasts_after(self, arrivals: Mapping[str, Arrivals]) -> dict[str, Past]:
        """What the streams had brought before, as of its end, from what arrived."""
        if not self.pasts:
            return {}
        after = dict(zip(self.time.names, self.time.after(arrivals).moments(self.clock), strict=True))
        return {name: past.then(after[name], self.graph.dials[name]) for name, past in self.pasts.items()}

    def joined(self, parts: Iterable[Mapping[str, Arrivals]]) -> dict[str, Arrivals]:
        """What arrived on each stream, from the summaries of the tasks of level 0, in their order."""
        total: dict[str, Arrivals] = {}
        for part in parts:
            for name, seen in part.items():
                before = total.get(name, Arrivals())
                in_order = name in self.streams and self.streams[name].in_order
                total[name] = before.then(seen) if in_order else before.beside(seen)
        return total

    def knowing(self, parts: Iterable[Mapping[str, Arrivals]]) -> EpochWork:
        """The same work, where every split knows the rows before it.

        Args:
            parts: what the tasks of level 0 found, in their order.
        """
        known: dict[str, int] = {}
        found = []
        # Tasks for the rows of frames come after those for splits.
        for splits, seen in zip(self.assignments, parts, strict=False):
            found.append(tuple(replace(split, before=known.get(split.stream, BEGINNING)) for split in splits))
            known |= {name: max(known.get(name, BEGINNING), part.latest) for name, part in seen.items()}
        return replace(self, assignments=tuple(found))


@dataclass(frozen=True)
class ResultRef:
    """Result elements in a segment.

    Attributes:
        node: the graph's node, or group, whose result they are.
        part: where they are.
        rows: how many.
        latest: the largest `ts` among them (instant); for dead letters `BEGINNING`.
        start: how many elements precede them in the part.
        at_once: whether they count with their epoch, wherever they start: they take back what was said when
            the answer reached further.
    """

    node: int
    part: RunPart
    rows: int
    latest: int
    start: int = 0
    at_once: bool = False


@dataclass(frozen=True)
class TaskReport:
    """What one task of an epoch did; it counts when the driver commits the epoch.

    Attributes:
        arrivals: per stream, from level 0.
        results: the results it wrote.
        emitted: per output how many elements it yielded, kept or not, if there were any.
        dead_letters: where it wrote the rows that failed, or None.
        state: the manifests of the operators it ran.
        failures: the nodes that failed.
        error: what stopped the task, such as a damaged input; the epoch then does not count.
        time: what it took.
        counts: what its nodes took in and yielded.
        lateness: how far the rows were behind, of each stream that keeps to a share of late rows.
        values: per stream how far the values have come that have bounds of their own, from level 0.
        counted: per stream what its rows promise by their position, of those with `DISORDER n ROWS`.
        tallies: what external CTIs wait for, of each stream that has such.
        letters: per stream its dead letters with their columns, where these are kept.
        departed: how many rows of streams were left out by queries that remember them for less than these
            allow, if any were.
        retained: per stream the rows that were accepted, where these are kept.
    """

    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    results: tuple[ResultRef, ...] = ()
    emitted: dict[int, int] = field(default_factory=dict)
    dead_letters: ResultRef | None = None
    state: dict[StateKey, Manifest] = field(default_factory=dict)
    failures: tuple[NodeFailure, ...] = ()
    error: UserError | None = None
    time: TaskTime | None = None
    counts: Counts | None = None
    lateness: Mapping[str, Lateness] = field(default_factory=dict)
    values: dict[str, ValuesPoint] = field(default_factory=dict)
    counted: Mapping[str, tuple[Counting, ...]] = field(default_factory=dict)
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    letters: Mapping[str, LetterFile] = field(default_factory=dict)
    departed: Mapping[Memory, int] = field(default_factory=dict)
    retained: Mapping[str, RetainedFile] = field(default_factory=dict)


def kept_parts(report: TaskReport) -> tuple[RunPart, ...]:
    """Where the rows are that a task has written to be kept, dead letters or not."""
    letters = (file.part for file in report.letters.values())
    return (*letters, *(file.part for file in report.retained.values()))


ARRIVALS_CHANNEL = -1
"""Carries the arrival summaries to every task of every level."""
REPORT_CHANNEL = -2
"""Carries the reports to the driver."""


@dataclass(frozen=True)
class Chunk:
    """What travels between levels.

    Attributes:
        task: the task of the next level that gets it.
        bucket: the bucket it is for.
        channel: the exchange's number in the graph, or one of the channels above.
        sender: the task that sent it; with the channel it orders chunks, so that repeats give the same bytes.
        payload: a pickled summary or report, or a batch, which is encoded unless it stays in its process.
    """

    task: int
    bucket: int
    channel: int
    sender: int
    payload: pa.Buffer | Batch

    @property
    def encoded(self) -> pa.Buffer:
        """The payload, where it travels."""
        assert not isinstance(self.payload, Batch)
        return self.payload


def pickled(value: object) -> pa.Buffer:
    """A value as a payload."""
    return pa.py_buffer(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
