"""Dead letters that are taken once more: which of them, and what each query says to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.properties import sources_of
from headrace.elements import BoolArray, integers
from headrace.errors import UserError
from headrace.runtime.driver.letters import LetterKeeper, is_left, require_kept
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.letters import LetterSource, read_letters
from headrace.runtime.intake.streams import BoundedStream, Incoming, Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.letters import column_of_letters
from headrace.runtime.tasks.messages import LetterFile
from headrace.time import MAX_INSTANT, MIN_INSTANT

Choose = Callable[[pa.Table], BoolArray]
"""From dead letters, with the columns of `letters_schema`, to which of them are meant."""

_UNTIMED = "without a timestamp that can be used"
_OLD = "older than what it still takes"
_AHEAD = "too far ahead of the clock"
_HAD = "that it has had, or failed on"
_OTHERS = "that other queries of the stream have had"


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
        epoch: the epoch of which they are input; None where there are none.
        answers: of each query that reads the stream.
    """

    letters: int
    taken: int
    epoch: int | None
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Replay:
    """An epoch that takes dead letters once more.

    Attributes:
        replayed: what becomes of them.
        intake: what the epoch takes of their stream; None where no query takes any.
    """

    replayed: Replayed
    intake: Intake | None


def takes_from(query: str, stream: str, points: Mapping[str, StreamPoint]) -> int:
    """From which instant on a query still takes rows of a stream: what is below is final in its answers.

    Args:
        query: its name.
        stream: one that it reads.
        points: how far the streams have been read.
    """
    return points[stream].heartbeat


def replay_of(
    name: str,
    chosen: Choose,
    streams: Mapping[str, Incoming],
    points: Mapping[str, StreamPoint],
    queries: QuerySet,
    keeper: LetterKeeper,
) -> Replay:
    """What the next epoch takes of a stream's dead letters.

    A row goes to all queries that read the stream, or to none: it would count twice in one that has had it.

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
    kept = require_kept(name, stream)
    counter = _Counter(
        stream,
        {query: takes_from(query, name, points) for query in readers},
        {query: queries.state_start_of(query) for query in readers},
        keeper.clock,
    )
    files: list[LetterFile] = []
    counts: list[int] = []
    for number, file in enumerate(points[name].letters):
        rows = read_letters(keeper.store, file)
        taken = counter.taken(rows, chosen(rows) & is_left(rows, kept, keeper.clock) & _is_new(rows))
        marked = _marked(rows, taken, keeper.epoch) if taken.any() else None
        files.append(file if marked is None else keeper.write(name, marked, file, f"replayed-{number}"))
        counts.append(int(taken.sum()))
    total = sum(counts)
    replayed = Replayed(counter.letters, total, keeper.epoch if total else None, counter.answers())
    if not total:
        return Replay(replayed, None)
    source = LetterSource(keeper.store, tuple(files), stream.schema, (keeper.epoch, tuple(counts)))
    point = points[name].position
    return Replay(replayed, Intake(point, source, 0, source.size, replay=tuple(files)))


def _is_new(rows: pa.Table) -> BoolArray:
    """Which letters have not been taken once more."""
    return _mask(column_of_letters(rows, "replayed_in").is_null())


def _marked(rows: pa.Table, taken: BoolArray, epoch: int) -> pa.Table:
    """The letters, some of them with the epoch that takes them once more."""
    marks = pc.if_else(pa.array(taken), epoch, column_of_letters(rows, "replayed_in").combine_chunks())
    place = rows.num_columns - 1
    return rows.set_column(place, rows.schema.field(place), marks)


class _Counter:
    """Finds which dead letters can be taken once more, and counts what each query says to them.

    Args:
        stream: whose they are.
        takes_from: per query from which instant on it takes rows of the stream.
        starts: per query since which epoch it has had its rows.
        clock: the clock's reading (microseconds since 1970-01-01 UTC).

    Attributes:
        letters: how many there were.
    """

    def __init__(
        self,
        stream: BoundedStream | LiveStream,
        takes_from: Mapping[str, int],
        starts: Mapping[str, int],
        clock: int,
    ) -> None:
        self._stream = stream
        self._takes_from = takes_from
        self._starts = starts
        ahead = stream.timing.ahead
        self._newest = MAX_INSTANT if ahead is None else clock + ahead
        self._refused = {query: Counter[str]() for query in starts}
        self._taken = Counter[str]()
        self.letters = 0

    def answers(self) -> tuple[Answer, ...]:
        """What each query says."""
        return tuple(
            Answer(query, self._taken[query], dict(refused)) for query, refused in self._refused.items()
        )

    def taken(self, rows: pa.Table, meant: BoolArray) -> BoolArray:
        """Which of some letters become input.

        Args:
            rows: the letters, with the columns of `kept_schema`.
            meant: which of them are meant at all.
        """
        self.letters += int(meant.sum())
        had = {query: self._had(rows, start) for query, start in self._starts.items()}
        others = np.logical_or.reduce(list(had.values()))
        refusing = {query: self._refusing(rows, query) | {_HAD: had[query], _OTHERS: others} for query in had}
        reasons = np.array([reason for found in refusing.values() for reason in found.values()])
        taken: BoolArray = meant & ~np.logical_or.reduce(reasons)
        for query, found in refusing.items():
            self._taken[query] += int(taken.sum())
            left = meant.copy()
            for reason, mask in found.items():
                self._refused[query][reason] += int((left & mask).sum())
                left &= ~mask
        return taken

    def _had(self, rows: pa.Table, start: int) -> BoolArray:
        """Which letters a query has had that began with an epoch: others than those of all queries."""
        failed = _mask(column_of_letters(rows, "query").is_valid())
        return failed & (integers(column_of_letters(rows, "epoch").combine_chunks()) >= start)

    def _refusing(self, rows: pa.Table, query: str) -> dict[str, BoolArray]:
        """Which letters a query cannot take for what their timestamp is, by what is wrong with it."""
        column = rows[self._stream.timestamp].combine_chunks()
        untimed = _mask(column.is_null())
        if self._stream.timing.by_arrival:
            return {_UNTIMED: untimed}
        times = integers(column.fill_null(0))
        untimed |= (times < MIN_INSTANT) | (times > MAX_INSTANT)
        return {_UNTIMED: untimed, _OLD: times < self._takes_from[query], _AHEAD: times > self._newest}


def _mask(column: pa.ChunkedArray | pa.Array) -> BoolArray:
    return np.array(column, dtype=np.bool_)
