"""Dead letters that are taken once more: which of them, and what each query says to it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.changes import Changes
from headrace.algebra.events import Events
from headrace.algebra.properties import sources_of
from headrace.elements import BoolArray, Int64Array, integers
from headrace.errors import UserError
from headrace.lowering.exits import separable
from headrace.lowering.graph import Graph
from headrace.operators.state.runs import RunPart
from headrace.runtime.driver.kept.letters import LetterKeeper, all_columns, is_left, require_kept
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.letters import LetterSource, read_letters
from headrace.runtime.intake.streams import BoundedStream, Incoming, Intake, LiveStream, ReplayedLetters
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.tables import filled
from headrace.runtime.tasks.changes import cannot_apply
from headrace.runtime.tasks.events import cannot_use, sync_times
from headrace.runtime.tasks.letters import column_of_letters, kept_schema
from headrace.runtime.tasks.messages import LetterFile
from headrace.time import MAX_INSTANT, MIN_INSTANT

Choose = Callable[[pa.Table], BoolArray]
"""From dead letters, with the columns of `letters_schema`, to which of them are meant."""

_UNTIMED = "that cannot be used"
_OLD = "older than what it still takes"
_AHEAD = "too far ahead of the clock"
_HAD = "that it has had, or failed on"
_OTHERS = "that queries have had with which it shares operators"


@dataclass(frozen=True)
class Answer:
    """What a query says to dead letters that are to be taken once more.

    Attributes:
        query: its name.
        taken: how many it takes.
        refused: how many it does not, by what they are.
    """

    query: str
    taken: int
    refused: Mapping[str, int]


@dataclass(frozen=True)
class Replayed:
    """What became of dead letters that were to be taken once more.

    Attributes:
        letters: how many there were.
        taken: how many became input.
        epochs: the epochs of which they are input: one for each set of queries that take some.
        answers: of each query that reads the stream.
    """

    letters: int
    taken: int
    epochs: tuple[int, ...]
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Found:
    """Dead letters that can be taken once more, by one set of queries.

    Attributes:
        letters: how many there are to choose from.
        taken: how many of them the next epoch takes.
        queries: the queries that take these.
        refused: per query how many of those it does not take, by what they are.
        left: the same for the letters that the epoch does not take.
        intake: what the epoch takes of their stream; None where nothing can be taken.
    """

    letters: int
    taken: int
    queries: frozenset[str]
    refused: Mapping[str, Counter[str]]
    left: Mapping[str, Counter[str]]
    intake: Intake | None


def carried_out(find: Callable[[], Found], run: Callable[[Intake], int]) -> Replayed:
    """Let dead letters be taken once more, epoch by epoch; what became of them.

    Args:
        find: finds some that can be taken.
        run: runs and commits an epoch, and says which.
    """
    found = find()
    letters, epochs, taken, by_query = found.letters, list[int](), 0, Counter[str]()
    refused = {query: Counter[str]() for query in found.left}
    while found.intake is not None:
        epochs.append(run(found.intake))
        taken += found.taken
        by_query.update(dict.fromkeys(found.queries, found.taken))
        for query, reasons in found.refused.items():
            refused.setdefault(query, Counter()).update(reasons)
        found = find()
    answers = (Answer(query, by_query[query], refused[query] + left) for query, left in found.left.items())
    return Replayed(letters, taken, tuple(epochs), tuple(answers))


def takes_from(query: str, stream: str, points: Mapping[str, StreamPoint], graph: Graph) -> int:
    """From which instant on a query still takes rows of a stream: what is below is final in its answers.

    Args:
        query: its name.
        stream: one that it reads.
        points: how far the streams have been read.
        graph: of the queries.
    """
    point = points[stream]
    return max(
        (
            memory.reached(point.heartbeat, point.time.latest, point.past)
            for memory, queries in graph.memories.items()
            if memory.stream == stream and query in queries
        ),
        default=point.heartbeat,
    )


def letters_for(
    name: str,
    chosen: Choose,
    streams: Mapping[str, Incoming],
    points: Mapping[str, StreamPoint],
    queries: QuerySet,
    keeper: LetterKeeper,
) -> Found:
    """What the next epoch is to take of a stream's dead letters.

    A query that has had a row does not get it again. So the row goes to those of the others alone that share
    no way out of level 0 with it.

    Args:
        name: the stream.
        chosen: which of its dead letters.
        streams: those that some query reads.
        points: how far each has been read.
        queries: the queries.
        keeper: writes letters for the epoch that takes them.

    Raises:
        UserError: no query reads the stream, or its dead letters are not kept.
    """
    stream = streams.get(name)
    read = {query: {source.name for source in sources_of(plan)} for query, plan in queries.live.items()}
    readers = [query for query, names in read.items() if name in names]
    if not isinstance(stream, BoundedStream | LiveStream) or not readers:
        raise UserError(f"no query reads {name}", hint="define a query over it first, which takes the rows")
    kept, columns = require_kept(name, stream), kept_schema(all_columns(stream))
    asked = _Asked(
        stream,
        {query: takes_from(query, name, points, queries.graph) for query in readers},
        {query: queries.state_start_of(query) for query in readers},
        keeper.clock,
        lambda wanted: separable(queries.graph, name, wanted),
    )
    files: list[LetterFile] = []
    counts: list[int] = []
    for number, file in enumerate(points[name].letters):
        rows = filled(read_letters(keeper.store, file), columns)
        taken = asked.taken(rows, chosen(rows) & is_left(rows, kept, keeper.clock) & _is_new(rows))
        marked = _marked(rows, taken, keeper.epoch) if taken.any() else None
        files.append(file if marked is None else keeper.write(name, marked, file, f"replayed-{number}"))
        counts.append(int(taken.sum()))
    intake = None
    if asked.group:
        source = LetterSource(keeper.store, tuple(files), stream.schema, (keeper.epoch, tuple(counts)))
        replay = ReplayedLetters(tuple(files), asked.group)
        intake = Intake(points[name].position, source, 0, source.size, replay=replay)
    return Found(asked.letters, sum(counts), asked.group, asked.refused, asked.left, intake)


def late_rows(
    name: str, stream: BoundedStream | LiveStream, point: StreamPoint, keeper: LetterKeeper
) -> pa.Table:
    """The rows of a stream that came too late for it, are kept, and have not been taken since.

    Rows that no query has had are meant. Those that are not below the heartbeat may still be replayed.

    Args:
        name: the stream.
        stream: what is declared of it.
        point: how far it has been read.
        keeper: says where they are, and what time it is.

    Returns:
        The rows, with the columns of `kept_schema`.

    Raises:
        UserError: the dead letters of the stream are not kept.
        StoreError: they cannot be read.
    """
    kept, columns = require_kept(name, stream), kept_schema(all_columns(stream))
    found = [columns.empty_table()]
    for file in () if stream.timing.by_arrival else point.letters:
        rows = filled(read_letters(keeper.store, file), columns)
        untimed, _, since = _timed(stream, rows)
        failed = _mask(column_of_letters(rows, "query").is_valid())
        meant = is_left(rows, kept, keeper.clock) & _is_new(rows) & ~failed & ~untimed
        found.append(rows.filter(pa.array(meant & (since < point.heartbeat))))
    return pa.concat_tables(found)


def source_of(
    rows: pa.Table, name: str, stream: BoundedStream | LiveStream, keeper: LetterKeeper
) -> LetterSource:
    """Some dead letters of a stream as a source, in a file of which nobody else knows.

    Args:
        rows: the letters, with the columns of `kept_schema`.
        name: the stream.
        stream: what is declared of it.
        keeper: writes the file.
    """
    marked = _marked(rows, np.ones(rows.num_rows, np.bool_), keeper.epoch)
    like = LetterFile(RunPart("", 0, 0, 0), rows.num_rows, keeper.epoch, keeper.clock)
    written = keeper.write(name, marked, like, f"late-{secrets.token_hex(8)}")
    return LetterSource(keeper.store, (written,), all_columns(stream), (keeper.epoch, (rows.num_rows,)))


def _is_new(rows: pa.Table) -> BoolArray:
    """Which letters have not been taken once more."""
    return _mask(column_of_letters(rows, "replayed_in").is_null())


def _marked(rows: pa.Table, taken: BoolArray, epoch: int) -> pa.Table:
    """The letters, some of them with the epoch that takes them once more."""
    marks = pc.if_else(pa.array(taken), epoch, column_of_letters(rows, "replayed_in").combine_chunks())
    place = rows.num_columns - 1
    return rows.set_column(place, rows.schema.field(place), marks)


class _Asked:
    """Asks queries which dead letters they take, and counts what they refuse.

    Args:
        stream: whose letters they are.
        takes_from: per query from which instant on it takes rows of the stream.
        starts: per query since which epoch it has had its rows.
        clock: the clock's reading (microseconds since 1970-01-01 UTC).
        separable: to which of some queries rows can be given without any other getting them.

    Attributes:
        letters: how many there were.
        group: the queries that take the first letter that any take, and others with it; none if none do.
        refused: per query how many of those it does not take, by what they are.
        left: the same for those that the group does not take.
    """

    def __init__(
        self,
        stream: BoundedStream | LiveStream,
        takes_from: Mapping[str, int],
        starts: Mapping[str, int],
        clock: int,
        separable: Callable[[frozenset[str]], frozenset[str]],
    ) -> None:
        self._stream = stream
        self._takes_from = takes_from
        self._starts = starts
        ahead = stream.timing.ahead
        self._newest = MAX_INSTANT if ahead is None else clock + ahead
        self._separable = separable
        self.letters = 0
        self.group = frozenset[str]()
        self.refused = {query: Counter[str]() for query in starts}
        self.left = {query: Counter[str]() for query in starts}

    def taken(self, rows: pa.Table, meant: BoolArray) -> BoolArray:
        """Which of some letters become input of the queries of the group.

        Args:
            rows: the letters, with the columns of `kept_schema`.
            meant: which of them are meant at all.
        """
        self.letters += int(meant.sum())
        refusing = [
            self._refusing(rows, query) | {_HAD: self._had(rows, start)}
            for query, start in self._starts.items()
        ]
        willing = np.array([meant & ~np.logical_or.reduce(list(masks.values())) for masks in refusing])
        taken = np.zeros(rows.num_rows, dtype=np.bool_)
        kinds, which = np.unique(willing, axis=1, return_inverse=True)
        for number, kind in enumerate(kinds.T):
            same = which == number
            wanted = frozenset(query for query, wants in zip(self._starts, kind, strict=True) if wants)
            group = self._separable(wanted)
            self.group = self.group or group
            if group and group == self.group:
                taken |= same
            for query, masks in zip(self._starts, refusing, strict=True):
                if query in wanted - group:
                    masks[_OTHERS] = masks.get(_OTHERS, np.zeros_like(same)) | same
        for query, masks in zip(self._starts, refusing, strict=True):
            self._count(self.refused[query], masks, taken)
            self._count(self.left[query], masks, meant & ~taken)
        return taken

    def _count(self, counts: Counter[str], masks: Mapping[str, BoolArray], letters: BoolArray) -> None:
        """Count letters by the first of the reasons for which a query refuses them."""
        left = letters
        for reason, mask in masks.items():
            counts[reason] += int((left & mask).sum())
            left = left & ~mask

    def _had(self, rows: pa.Table, start: int) -> BoolArray:
        """Which letters a query has had that began with an epoch: others than those of all queries."""
        failed = _mask(column_of_letters(rows, "query").is_valid())
        return failed & (integers(column_of_letters(rows, "epoch").combine_chunks()) >= start)

    def _refusing(self, rows: pa.Table, query: str) -> dict[str, BoolArray]:
        """Which letters a query cannot take for what is in them, by what is wrong."""
        untimed, times, since = _timed(self._stream, rows)
        if self._stream.timing.by_arrival:
            return {_UNTIMED: untimed}
        return {_UNTIMED: untimed, _OLD: since < self._takes_from[query], _AHEAD: times > self._newest}


def _timed(stream: BoundedStream | LiveStream, rows: pa.Table) -> tuple[BoolArray, Int64Array, Int64Array]:
    """Of letters which cannot be used as input, their timestamps, and from when on they change an answer."""
    column, changes = rows[stream.timestamp].combine_chunks(), stream.changes
    untimed = _mask(column.is_null())
    match changes:
        case Changes():
            untimed |= cannot_apply(changes, rows)
        case Events():
            untimed |= cannot_use(changes, stream.timestamp, _validity(stream, rows, changes))
    if stream.timing.by_arrival:
        times = np.zeros(rows.num_rows, np.int64)
        return untimed, times, times
    times = integers(column.fill_null(0))
    untimed |= (times < MIN_INSTANT) | (times > MAX_INSTANT)
    if isinstance(changes, Events):
        return untimed, times, sync_times(changes, _validity(stream, rows, changes), times)
    return untimed, times, times


def _validity(stream: BoundedStream | LiveStream, rows: pa.Table, events: Events) -> pa.RecordBatch:
    """The columns of letters that say when they are valid, in one piece."""
    names = [stream.timestamp, *events.columns]
    columns = rows.select(names).combine_chunks().columns
    return pa.RecordBatch.from_arrays([_whole(column) for column in columns], names)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column that has a chunk at most."""
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _mask(column: pa.ChunkedArray | pa.Array) -> BoolArray:
    return np.array(column, dtype=np.bool_)
