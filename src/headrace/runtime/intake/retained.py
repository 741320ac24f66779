"""Rows of a stream that were kept, as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.elements import integers
from headrace.errors import UserError
from headrace.runtime.journal.retained import Retained
from headrace.runtime.sources.composed.tables import filled
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import BATCH_ROWS, Read
from headrace.runtime.store.segments import Store, read_part
from headrace.runtime.tasks.messages import RetainedFile
from headrace.schema import Schema
from headrace.time import BEGINNING


@dataclass(frozen=True)
class RetainedSource:
    """Files of rows that were kept, one after the other; positions are rows.

    Attributes:
        store: where the files are.
        files: which of them.
        schema: all columns of the stream.
        timestamp: the column that it is timed by.
        since: rows below are left out (instant).
    """

    store: Store
    files: tuple[RetainedFile, ...]
    schema: Schema
    timestamp: str = ""
    since: int = BEGINNING

    @cached_property
    def size(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.size

    @property
    def borders(self) -> Sequence[int]:
        """Where a file begins."""
        return tuple(accumulate(file.rows for file in self.files))[:-1]

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes the rows of the positions `[start, end)` have."""
        size = sum(file.part.length for file in self.files)
        return size * (end - start) // max(self.size, 1)

    @property
    def paths(self) -> tuple[Place, ...]:
        """None: the files are the store's own."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: the files are the store's own."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`, in order.

        Raises:
            StoreError: a file is missing or damaged.
        """
        begin, read = 0, columns if self.since == BEGINNING else (*columns, self.timestamp)
        wanted = self.schema.select(tuple(map(self.schema.names.index, dict.fromkeys(read)))).arrow()
        for file in self.files:
            low, high = max(start - begin, 0), min(end - begin, file.rows)
            begin += file.rows
            if low < high:
                rows = read_retained(self.store, file, wanted).slice(low, high - low)
                if self.since > BEGINNING:
                    times = integers(rows.column(self.timestamp).combine_chunks())
                    rows = rows.filter(pa.array(times >= self.since)).select(list(columns))
                for batch in rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
                    yield Read(batch)


def not_kept(stream: str) -> UserError:
    """The error for whoever asks for rows of a stream that keeps none."""
    hint = f"write ALTER STREAM {stream} RETAIN ALL; those that come from then on are kept"
    return UserError(f"the rows of {stream} are not kept", hint=hint)


def all_retained(
    store: Store, retained: Retained | None, schema: Schema, newest: int | None = None
) -> pa.Table:
    """The rows of a stream that are kept, in the order of the epochs that took them.

    Args:
        store: where they are.
        retained: what is kept; None for nothing.
        schema: the columns of the stream.
        newest: so many of them at most, the last ones, for which no others are read; None for all.

    Raises:
        StoreError: a file is missing or damaged.
    """
    files = () if retained is None else retained.files
    if newest is not None:
        read, first = 0, len(files)
        while first and read < newest:
            first -= 1
            read += files[first].rows
        rows = all_retained(store, Retained(files[first:]), schema)
        return rows.slice(max(0, rows.num_rows - newest))
    tables = [read_retained(store, file, schema.arrow()) for file in files]
    return pa.concat_tables([schema.arrow().empty_table(), *tables])


def read_retained(store: Store, file: RetainedFile, columns: pa.Schema | None = None) -> pa.Table:
    """Rows that were kept, with some columns of their stream, or all that it had when they came.

    Args:
        store: where they are.
        file: the rows.
        columns: which columns; they have NULL in those that came after them.

    Raises:
        StoreError: the file is missing or damaged.
    """
    # A column whose name has dots would be looked for in structures: all are read, then chosen.
    rows = pq.ParquetFile(pa.BufferReader(read_part(store, file.part))).read()
    return rows if columns is None else filled(rows, columns)
