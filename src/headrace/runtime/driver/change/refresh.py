"""Relations that are read again while queries run.

What was read last is kept in a segment, which the points of the relation's readings name. A refresh reads the
source, writes what there is now and how it differs from that, and the next epoch takes the difference for all
readings at one instant: the largest of their heartbeats, so that nothing changes that has been answered. The
commit of that epoch names the new content; without it the old one holds, and so does the old answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, take_rows
from headrace.errors import UserError
from headrace.history import normalise, payload_codes
from headrace.operators.state.runs import WEIGHT
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.stored_rows import StoredRows, write_rows
from headrace.runtime.intake.streams import (
    BoundedRelation,
    Incoming,
    Intake,
    LiveStream,
    ReadAgain,
    RereadRelation,
    is_read,
)
from headrace.runtime.journal.records import RelationContent, StreamPoint
from headrace.runtime.sources.rows.contract import Rejected
from headrace.runtime.store.segments import Store
from headrace.runtime.writing.texts import row_texts
from headrace.schema import BIGINT, Field, Schema
from headrace.time import ALWAYS, INFINITY, Clock


@dataclass(frozen=True)
class Refreshed:
    """What became of a relation that was read again.

    Attributes:
        relation: its name.
        at: from which instant on it is what was read; None where that is the same as before.
        inserted, deleted: how many rows it has more, and less, than before.
        rejected: how many rows could not be read.
        rows: how many it has now.
    """

    relation: str
    at: int | None
    inserted: int
    deleted: int
    rejected: int
    rows: int


@dataclass(frozen=True)
class Refresh:
    """A relation that has been read again, before that counts.

    Attributes:
        report: what will have become of it.
        intakes: what an epoch has to take for it to count; nothing where the relation has not changed.
        written: the files that were written for that.
    """

    report: Refreshed
    intakes: Mapping[str, Intake] = field(default_factory=dict)
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Readings:
    """What a run reads, and how far that has been read.

    Attributes:
        queries: those that are answered.
        streams: what they read, by the names of their inputs.
        points: how far each has been read.
    """

    queries: QuerySet
    streams: Mapping[str, Incoming]
    points: Mapping[str, StreamPoint]

    @property
    def refreshed(self) -> Iterator[tuple[str, RereadRelation]]:
        """The readings of relations that are refreshed."""
        for name in self.queries.refreshed:
            stream = self.streams[name]
            assert isinstance(stream, RereadRelation)
            yield name, stream

    @property
    def read(self) -> tuple[str, ...]:
        """Those of them that have been read whole."""
        return tuple(name for name, stream in self.refreshed if is_read(stream, self.points[name]))

    def content(self, relation: str) -> RelationContent | None:
        """What was read last of a relation; a reading that has come to its end may be of what was before."""
        points = [self.points[name] for name, _ in self.refreshed if self.queries.inputs[name] == relation]
        points.sort(key=lambda point: point.heartbeat == INFINITY)
        return next((point.content for point in points if point.content is not None), None)


class Refresher:
    """Reads the relations of a run that are refreshed, at first and again.

    Args:
        store: where what was read is kept.
        token: makes the names of the run's files unique.
        clock: wall-clock time.
    """

    def __init__(self, store: Store, token: str, clock: Clock) -> None:
        self._store = store
        self._token = token
        self._clock = clock
        self._written = 0
        self._first: dict[str, tuple[StoredRows, RelationContent]] = {}
        self._looked: dict[str, int] = {}

    def readable(self, readings: Readings) -> Mapping[str, Incoming]:
        """What the next epoch may take a share of: relations that are refreshed are kept before that.

        Those that have been read whole bring nothing on their own, and are left out.

        Raises:
            SourceError: what a relation is read from is missing or damaged.
        """
        if not readings.queries.refreshed:
            return readings.streams
        found = dict(readings.streams)
        for name, stream in readings.refreshed:
            del found[name]
            if not is_read(stream, readings.points[name]):
                source, _ = self._beginning(name, stream, readings)
                found[name] = BoundedRelation(source)
        return found

    def begin(self, intakes: Mapping[str, Intake], readings: Readings) -> dict[str, Intake]:
        """Shares of relations that are refreshed, with what they are shares of.

        A reading beside streams that all come to an end is never refreshed, and ends too.
        """
        found = dict(intakes)
        for name, stream in readings.refreshed:
            if name in found:
                _, content = self._beginning(name, stream, readings)
                ended = found[name].ended and not _meets_endless(name, readings)
                found[name] = replace(found[name], content=content, ended=ended)
        return found

    def accept(self, readings: Readings) -> None:
        """Forget what was read first of relations, once a commit names it."""
        for name, _ in readings.refreshed:
            if readings.points[name].content is not None:
                self._first.pop(readings.queries.inputs[name], None)

    def due(self, readings: Readings) -> list[str]:
        """The relations that are to be read again by the clock."""
        if not readings.queries.refreshed:
            return []
        now = self._clock.now()
        found: dict[str, None] = {}
        for name, stream in readings.refreshed:
            relation, point = readings.queries.inputs[name], readings.points[name]
            if stream.every is not None and point.content is not None and point.heartbeat < INFINITY:
                last = max(point.content.clock, self._looked.get(relation, point.content.clock))
                if now - last >= stream.every:
                    found[relation] = None
        return list(found)

    def refresh(self, relation: str, readings: Readings, again: ReadAgain | None = None) -> Refresh:
        """Read a relation again.

        Args:
            relation: its name.
            readings: what the run reads; the relation has been read whole by all of them.
            again: reads all its rows; those of what it was declared with if None.

        Raises:
            UserError: no query reads the relation, all its streams have ended, two rows have the same key, or
                what it is read from is missing or damaged. What was read before holds then.
        """
        now = self._clock.now()
        self._looked[relation] = now
        known = [pair for pair in readings.refreshed if readings.queries.inputs[pair[0]] == relation]
        if not known:
            raise UserError(
                f"no query reads {relation}", hint="it is read when the first query that names it starts"
            )
        going_on = [name for name, _ in known if readings.points[name].heartbeat < INFINITY]
        old = readings.content(relation)
        if not going_on or old is None:
            raise UserError(
                f"{relation} is read with streams that end, so that its content is final",
                hint="only what is read beside an endless stream can be refreshed",
            )
        _, stream = known[0]
        rows, rejected = (again or stream.read_again)()
        check_key(relation, stream.key, rows)
        return self._compared(relation, going_on, old, rows, rejected, readings)

    def _compared(
        self,
        relation: str,
        names: list[str],
        old: RelationContent,
        rows: pa.RecordBatch,
        rejected: tuple[Rejected, ...],
        readings: Readings,
    ) -> Refresh:
        """The difference of what was read to what there was, for some readings."""
        schema = _schema_of(rows)
        before = StoredRows(self._store, old.part, schema, old.rows).load()
        changes, weights = difference(before, rows)
        inserted, deleted = int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())
        report = Refreshed(relation, None, inserted, deleted, len(rejected), rows.num_rows)
        if not len(weights):
            return Refresh(report)
        at = max(ALWAYS, *(readings.points[name].heartbeat for name in names))
        content = self._written_content(rows, at, inserted, deleted)
        weighed = changes.append_column(WEIGHT, pa.array(weights))
        part = write_rows(self._store, self._name(), weighed)
        news = StoredRows(self._store, part, _schema_of(weighed), weighed.num_rows, rejected)
        intake = Intake(content.rows, news, 0, news.size, content=content, changed_at=at)
        written = content.part.segment, part.segment
        return Refresh(replace(report, at=at), dict.fromkeys(names, intake), written)

    def _beginning(
        self, name: str, stream: RereadRelation, readings: Readings
    ) -> tuple[StoredRows, RelationContent]:
        """What a reading reads that has not come to its end: what is kept already, or is read now."""
        relation = readings.queries.inputs[name]
        known = readings.points[name].content or readings.content(relation)
        if known is not None:
            return StoredRows(self._store, known.part, stream.schema, known.rows), known
        if relation not in self._first:
            rows, rejected = stream.read_again()
            check_key(relation, stream.key, rows)
            content = self._written_content(rows, ALWAYS, 0, 0)
            source = StoredRows(self._store, content.part, stream.schema, content.rows, rejected)
            self._first[relation] = source, content
        return self._first[relation]

    def _written_content(self, rows: pa.RecordBatch, at: int, inserted: int, deleted: int) -> RelationContent:
        part = write_rows(self._store, self._name(), rows)
        return RelationContent(part, rows.num_rows, self._clock.now(), at, inserted, deleted)

    def _name(self) -> str:
        self._written += 1
        return f"segments/relation-{self._token}-{self._written}"


def check_key(relation: str, key: tuple[str, ...], rows: pa.RecordBatch) -> None:
    """See that no two rows have the same key.

    Raises:
        UserError: two have, or one has NULL in its key.
    """
    if not key or not rows.num_rows:
        return
    keys = rows.select(list(key))
    for name, column in zip(key, keys.columns, strict=True):
        if column.null_count:
            raise UserError(f"a row of {relation} has NULL in its key {name}", hint="leave it out, or KEY")
    codes = payload_codes(normalise(keys))
    counts = np.bincount(codes)
    if counts.max() > 1:
        repeated = keys.slice(int(np.argmax(counts[codes] > 1)), 1)
        raise UserError(
            f"two rows of {relation} have the key {next(row_texts(repeated))}",
            hint="leave out KEY, or one of the rows",
        )


def difference(before: pa.RecordBatch, after: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64Array]:
    """How one bag of rows differs from another: rows, and how often each is there more (or less, below 0)."""
    schema = after.schema
    joined = pa.Table.from_batches([before.cast(schema), after]).combine_chunks()
    columns = [column.combine_chunks() for column in joined.columns]
    rows = normalise(pa.RecordBatch.from_arrays(columns, schema=schema))
    codes = payload_codes(rows)
    weights = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(weights, codes, np.where(np.arange(len(codes)) < before.num_rows, -1, 1))
    first = np.full(len(weights), len(codes), dtype=np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    changed = np.flatnonzero(weights)
    return take_rows(rows, first[changed]), weights[changed]


def _schema_of(rows: pa.RecordBatch) -> Schema:
    return Schema(tuple(Field(one.name, BIGINT if one.name == WEIGHT else one.type) for one in rows.schema))


def _meets_endless(name: str, readings: Readings) -> bool:
    """Whether some query reads an endless stream beside a reading of a relation."""
    return any(
        isinstance(readings.streams[other], LiveStream)
        for met in readings.queries.meetings
        if name in met
        for other in met
    )
