"""The dead letters of a task: the rows that no query, or not every query, could use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.letters import letters_schema
from headrace.elements import Batch, BoolArray, integers, take_rows
from headrace.operators.contract import Report
from headrace.runtime.sources.rows.contract import Places, Read, Rejected
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import EpochWork, LetterFile, ResultRef
from headrace.runtime.writing.texts import row_texts
from headrace.schema import BIGINT, STRING, TIMESTAMP, Schema, unique_names
from headrace.time import BEGINNING

DEAD_LETTERS = -1
"""Takes the place of a node's number in the reference to a task's dead letters."""

_DEAD_LETTER_SCHEMA = pa.schema(
    [
        pa.field("epoch", pa.int64()),
        pa.field("stream", pa.string()),
        pa.field("node", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("row", pa.string()),
        pa.field("place", pa.string()),
    ]
)


class DeadLetters:
    """The rows of one task that no query could use, with the reason.

    All of them are kept as text. Those of streams whose dead letters are read, or are to be replayed, also
    with their columns.

    Args:
        work: the epoch.
    """

    def __init__(self, work: EpochWork) -> None:
        self._work = work
        self._rows: list[tuple[str | None, int | None, str, str, str]] = []
        self._whole: dict[str, list[pa.Table]] = {}
        self._places: Places | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def reject(self, stream: str, rejected: tuple[Rejected, ...]) -> None:
        """Rows of a stream that did not parse."""
        self._rows += [(stream, None, part.reason, part.text, part.place) for part in rejected]
        columns = self._columns(stream)
        if columns is not None and rejected:
            nothing = pa.table([pa.nulls(len(rejected), field.type) for field in columns], columns.arrow())
            told = [(part.reason, part.place, part.text, None) for part in rejected]
            self._keep(stream, nothing, told)

    def numbered(self, read: Read) -> pa.RecordBatch:
        """The rows that are read next, with their numbers in a column where their places are known.

        `drop` finds the places by that column, and `without_numbers` takes it away again.

        Args:
            read: the rows, all of one source.
        """
        self._places = read.places
        if read.places is None or not read.rows.num_columns:
            return read.rows
        numbers = pa.array(np.arange(read.rows.num_rows, dtype=np.int64))
        return read.rows.append_column(pa.field(_NUMBER, BIGINT), numbers)

    def drop(self, stream: str, rows: pa.RecordBatch, reasons: Sequence[str]) -> None:
        """Rows of a stream whose timestamp is of no use, or that are late; each with its reason."""
        if not rows.num_rows:
            return
        places = [""] * rows.num_rows
        if self._places is not None and _NUMBER in rows.schema.names:
            places = self._places.find(integers(rows.column(_NUMBER)))
            rows = without_numbers(rows)
        told = list(zip(reasons, places, row_texts(rows), strict=True))
        self._rows += [(stream, None, reason, text, place) for reason, place, text in told]
        columns = self._columns(stream)
        if columns is not None:
            whole = pa.Table.from_batches([rows.select(list(columns.names))])
            self._keep(stream, whole, [(*one, None) for one in told])

    def reporter(self, node: int) -> Report:
        """What an operator of a node reports of elements whose expression fails."""

        def report(batch: Batch, failed: BoolArray, reason: str) -> None:
            rows = take_rows(batch.payload, np.flatnonzero(failed))
            self._rows += [(None, node, reason, text, "") for text in row_texts(rows)]

        return report

    def keep_failed(
        self, stream: str, rows: pa.RecordBatch, failures: Sequence[Sequence[tuple[int, str]]]
    ) -> None:
        """Keep rows of a stream for which an expression failed, each once; the failures are reported besides.

        Args:
            stream: the stream, whose dead letters are kept with their columns.
            rows: the rows, with all columns of the stream.
            failures: of each row the nodes where one failed, with the reasons.
        """
        columns, users = self._columns(stream), self._work.graph.users
        assert columns is not None
        told = []
        for text, failed in zip(row_texts(rows), failures, strict=True):
            without = dict.fromkeys(query for node, _ in failed for query in users[node])
            queries = ", ".join(map(self._work.name_of, without))
            told.append(("; ".join(dict.fromkeys(reason for _, reason in failed)), "", text, queries))
        self._keep(stream, pa.Table.from_batches([rows.select(list(columns.names))]), told)

    def keeps(self, stream: str) -> bool:
        """Whether dead letters of a stream are kept with their columns."""
        return self._columns(stream) is not None

    def write(self, writer: SegmentWriter) -> ResultRef | None:
        """Append them, as text, to the task's segment of results."""
        if not self._rows:
            return None
        columns = zip(*((self._work.epoch, *row) for row in self._rows), strict=True)
        # Where texts are more than two gigabytes together, their array comes in several pieces.
        rows = pa.table([*map(pa.array, columns, _DEAD_LETTER_SCHEMA.types)], _DEAD_LETTER_SCHEMA)
        return ResultRef(DEAD_LETTERS, writer.add(stream_of(rows)), rows.num_rows, BEGINNING)

    def write_whole(self, writer: SegmentWriter) -> dict[str, LetterFile]:
        """Append those that are kept with their columns; where they are, by stream."""
        found = {}
        for stream, tables in self._whole.items():
            rows = pa.concat_tables(tables)
            found[stream] = LetterFile(
                writer.add(stream_of(rows)), rows.num_rows, self._work.epoch, self._work.clock
            )
        return found

    def _columns(self, stream: str) -> Schema | None:
        known = self._work.streams.get(stream)
        return None if known is None else known.letters

    def _keep(self, stream: str, rows: pa.Table, told: Sequence[tuple[str, str, str, str | None]]) -> None:
        """Keep rows with their columns.

        Args:
            stream: the stream.
            rows: all its columns.
            told: of each row the reason, the place, the text, and the queries that do without it; all of the
                stream's if None.
        """
        columns = self._columns(stream)
        assert columns is not None
        count = rows.num_rows
        reasons, places, texts, queries = (pa.array(part, STRING) for part in zip(*told, strict=True))
        added = [
            pa.array(np.full(count, self._work.clock)).cast(TIMESTAMP),
            pa.array(np.full(count, self._work.epoch)),
            reasons,
            queries,
            places,
            texts,
            pa.nulls(count, BIGINT),
        ]
        schema = kept_schema(columns)
        self._whole.setdefault(stream, []).append(pa.table([*rows.columns, *added], schema))


_NUMBER: Final = "\0number"
"""A column that no stream can have: which of the rows that were read together a row is."""


def without_numbers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without the column that `DeadLetters.numbered` has added, if it has."""
    return rows.drop_columns([_NUMBER]) if _NUMBER in rows.schema.names else rows


def column_of_letters(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of letters that their stream does not have, by the name that it usually has.

    Args:
        rows: the letters, with the columns of `kept_schema`.
        name: the name.
    """
    return rows.column(rows.num_columns - len(_ADDED) + _ADDED.index(name))


_ADDED = ("set_apart_at", "epoch", "reason", "query", "place", "row_text", "replayed_in")
"""The last columns of `kept_schema`."""


def kept_schema(columns: Schema) -> pa.Schema:
    """The columns in which dead letters of a stream are kept: also the epoch that replayed one, or NULL.

    Args:
        columns: all columns of the stream.
    """
    known = letters_schema(columns).arrow()
    return known.append(pa.field(unique_names([*known.names, "replayed_in"])[-1], BIGINT))


def stream_of(rows: pa.Table) -> pa.Buffer:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
