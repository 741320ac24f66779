"""Streams as a run sees them, and what an epoch takes of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from headrace.algebra.changes import Changes
from headrace.algebra.events import Events
from headrace.errors import StoreError, UserError
from headrace.heartbeats.timing import BY_ARRIVAL, IN_ORDER, Timing
from headrace.runtime.journal.followed import Followed
from headrace.runtime.journal.records import RelationContent, StreamPoint
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.composed.later import later
from headrace.runtime.sources.files.files import Stamp, stamps_of
from headrace.runtime.sources.rows.contract import Rejected, SplitSource
from headrace.runtime.tasks.messages import LetterFile
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Retain:
    """Which rows of a stream are kept once they have been read.

    Attributes:
        length: those that are no older than the heartbeat less this (instants); INFINITY for all, None where
            rows are counted.
        rows: so many of the last ones; None where a length is given.
    """

    length: int | None
    rows: int | None


@dataclass(frozen=True)
class BoundedStream:
    """A stream that is read to its end.

    Attributes:
        source: where its rows come from.
        timestamp: the column it is timed by; not one of the source's where it is timed by arrival.
        timing: how its time moves.
        max_rows: how many rows an epoch takes at most, if not its share.
        changes: what they change, if they are changes of rows by key or events with corrections.
        letters_kept: for how long its dead letters are kept (microseconds of the clock), INFINITY for ever;
            None where that is not said.
        retain: which of its rows are kept; none if None.
    """

    source: SplitSource
    timestamp: str
    timing: Timing = IN_ORDER
    max_rows: int | None = None
    changes: Changes | Events | None = None
    letters_kept: int | None = None
    retain: Retain | None = None

    @property
    def schema(self) -> Schema:
        """All columns that its rows come with."""
        return self.source.schema

    def mark(self, position: int) -> str:
        """Identifies what is below a position; see `SplitSource.mark`."""
        return self.source.mark(position)


@dataclass(frozen=True)
class LiveStream:
    """A stream that never ends: rows are pushed, or come from a Spark streaming source.

    Attributes:
        schema: all columns that its rows have when they are read.
        timestamp: the column it is timed by; not one of those where it is timed by arrival.
        timing: how its time moves.
        changes: what they change, if they are changes of rows by key or events with corrections.
        letters_kept: for how long its dead letters are kept (microseconds of the clock), INFINITY for ever;
            None where that is not said.
        retain: which of its rows are kept; none if None.
        computed: which columns its rows come with, if others are computed of these as an epoch reads them.
        refuses_unknown: whether pushed rows with columns that it does not have are refused.
    """

    schema: Schema
    timestamp: str
    timing: Timing = IN_ORDER
    changes: Changes | Events | None = None
    letters_kept: int | None = None
    retain: Retain | None = None
    computed: ComputedColumns | None = None
    refuses_unknown: bool = False

    @property
    def columns(self) -> ComputedColumns:
        """The columns that its rows come with, and those that are computed."""
        return self.computed or ComputedColumns(self.schema)

    def mark(self, position: int) -> str:
        """Nothing: what has been taken does not come again."""
        return ""


@dataclass(frozen=True)
class BoundedRelation:
    """A relation, which is read whole before any row of a stream; it has no time of its own.

    Attributes:
        source: where its rows come from.
        valid: the columns that begin and end the period of a row, or the one with its instant; None where
            every row is always valid.
        changes: what its rows change, if they are changes.
        stamps: of its files, when it was created.
    """

    source: SplitSource
    valid: tuple[str, str | None] | None = None
    changes: Changes | None = None
    stamps: tuple[Stamp, ...] = ()

    @property
    def schema(self) -> Schema:
        """All its columns."""
        return self.source.schema

    @property
    def timing(self) -> Timing:
        """Nothing is final before its end, which makes everything final."""
        return _AT_THE_END

    def mark(self, position: int) -> str:
        """Identifies what is below a position; see `SplitSource.mark`."""
        return self.source.mark(position)


_AT_THE_END: Final = Timing(disorder=None)


@dataclass(frozen=True)
class LetterStream:
    """The dead letters of a stream, which are input of the epoch after the one that set them apart.

    Attributes:
        of: the stream.
        schema: their columns; see `algebra.letters`.
        timestamp: the column they are timed by, by arrival.
    """

    of: str
    schema: Schema
    timestamp: str

    @property
    def timing(self) -> Timing:
        """The clock says when they come."""
        return BY_ARRIVAL

    @property
    def changes(self) -> Changes | None:
        """They are not changes of a relation."""
        return None

    def mark(self, position: int) -> str:
        """Nothing: what has been taken does not come again."""
        return ""


RelationRows: TypeAlias = tuple[pa.RecordBatch, tuple[Rejected, ...]]
"""All rows of a relation, and what could not be read of it."""

ReadAgain: TypeAlias = Callable[[], RelationRows]
"""Reads a relation as it is now; raises a UserError where it cannot be read."""


@dataclass(frozen=True)
class RereadRelation(BoundedRelation):
    """A relation whose rows are valid until it is read again; from then on it is what was read then.

    Between two readings its heartbeat is that of the streams that are read with it.

    Attributes:
        read_again: reads all its rows, with the columns of the source.
        every: after how long it is read again (microseconds by the clock); None if only on demand.
        key: the columns of which no two rows have the same values; none if not said.
    """

    read_again: ReadAgain = field(kw_only=True)
    every: int | None = field(default=None, kw_only=True)
    key: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def timing(self) -> Timing:
        """It is idle once it has been read, after no time at all."""
        return _FOLLOWS

    def mark(self, position: int) -> str:
        """Nothing: what has been read is kept, and does not come again."""
        return ""


_FOLLOWS: Final = Timing(disorder=None, idle_after=0)

Incoming = BoundedStream | LiveStream | BoundedRelation | LetterStream
"""What a run reads."""

Streams = Mapping[str, Incoming]


@dataclass(frozen=True)
class ReplayedLetters:
    """That rows are dead letters of a stream, which are taken once more.

    Attributes:
        letters: how the stream's dead letters are kept after it.
        queries: those that get the rows.
    """

    letters: tuple[LetterFile, ...]
    queries: frozenset[str]


@dataclass(frozen=True)
class Intake:
    """What an epoch takes of a stream.

    Attributes:
        position: up to where the stream has been read after it, for the commit: in the source's unit, or how
            many hand-overs there have been.
        source, start, end: the stretch to read; no source where the rows come in a frame.
        frame: a Spark data frame with the rows, or None.
        is_batch: whether it is a batch of a Spark stream: its rows have no order, and come again if the epoch
            is run without them.
        comes_again: whether its rows, which have an order, come again if the epoch is run without them.
        ended: whether the stream has no more rows after it.
        producers: for pushed rows, per producer that pushed some of them its last sequence number.
        files: those of a folder that is followed, as they are read after it.
        dropped: how many pushed rows were dropped since the last one, by the stream's OVERFLOW.
        promise: the heartbeat that the source has sent beside its rows (instant), BEGINNING if none.
        replay: that its rows are dead letters of the stream, or None.
        content: what the rows are of, for a relation that is refreshed.
        changed_at: from which instant on the rows change it; None where they are what is read first.
    """

    position: int
    source: SplitSource | None = None
    start: int = 0
    end: int = 0
    frame: object = None
    is_batch: bool = False
    comes_again: bool = False
    ended: bool = False
    producers: Mapping[str, int] = field(default_factory=dict)
    files: Followed = field(default_factory=dict)
    dropped: int = 0
    promise: int = BEGINNING
    replay: ReplayedLetters | None = None
    content: RelationContent | None = None
    changed_at: int | None = None


def is_retained(stream: Incoming) -> bool:
    """Whether rows of a stream are kept once they have been read."""
    return isinstance(stream, BoundedStream | LiveStream) and stream.retain is not None


def is_read(stream: BoundedRelation, point: StreamPoint) -> bool:
    """Whether a relation has been read whole, as far as it has been read at all by now."""
    if point.heartbeat == INFINITY:
        return True
    content = point.content
    return isinstance(stream, RereadRelation) and content is not None and point.position >= content.rows


def check_not_rewritten(name: str, stream: Incoming | None) -> None:
    """See that what is read from now on, if it is a relation, is what others have read of it.

    Args:
        name: its name.
        stream: what is read.

    Raises:
        UserError: a file of it was written since the relation was created.
    """
    if not isinstance(stream, BoundedRelation) or isinstance(stream, RereadRelation):
        return
    for stamp in stream.stamps:
        if stamps_of([stamp.path]) != (stamp,):
            raise UserError(
                f"{name} would be read again, and its file {stamp.path} has changed since it was created",
                hint="the relation is what was read: put the file back, or create another relation from it; "
                "with REFRESH it would be read again for all queries",
            )


def check_unchanged(streams: Mapping[str, Incoming], points: Mapping[str, StreamPoint]) -> None:
    """See that inputs which have been read before may be read on.

    Args:
        streams: by name.
        points: how far each stream has been read; those of other streams are left alone.

    Raises:
        StoreError: what was read is not there as it was, or an input has grown after its end.
    """
    for name, point in points.items():
        stream = streams.get(name)
        if stream is None or isinstance(stream, LiveStream | LetterStream | RereadRelation):
            continue
        changed = StoreError(
            f"the input of {name} has changed: the files that have been read are not there as they were",
            hint="put them back; new files must come after them in the order of names. Or choose an "
            "empty folder for the store",
        )
        away = later(stream.source)
        if away is not None and not away.reached():
            # Who has read it to its end does not need it.
            if point.heartbeat != INFINITY:
                away.expect(point.position, point.mark, changed)
            continue
        if stream.mark(point.position) != point.mark:
            raise changed
        if point.heartbeat == INFINITY and stream.source.size > point.position:
            raise StoreError(
                f"the input of {name} has grown since it was read to its end, and its answer is final",
                hint="choose an empty folder for the store to read everything; for files that keep "
                "coming, add the option follow true",
            )
