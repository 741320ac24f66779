"""Rows that the driver has put into a segment of the store, as a source for tasks; positions are rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.elements import decode_rows, encode_rows
from headrace.operators.state.runs import RunPart
from headrace.runtime.sources.rows.contract import BATCH_ROWS, Read, Rejected
from headrace.runtime.store.segments import SegmentWriter, Store, read_part
from headrace.schema import Schema


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A part of a segment that `write_rows` wrote, as a split source.

    Attributes:
        store: where the segment is.
        part: where the rows are in it.
        schema: all their columns.
        rows: how many there are.
        rejected: what could not be read beside them; it has a position of its own after the last row.
    """

    store: Store
    part: RunPart
    schema: Schema
    rows: int
    rejected: tuple[Rejected, ...] = ()

    @property
    def size(self) -> int:
        """Rows in total, and one more if something was rejected."""
        return self.rows + bool(self.rejected)

    @property
    def borders(self) -> tuple[int, ...]:
        """None: rows are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """The bytes of the part, in proportion to the rows."""
        return self.part.length * (end - start) // max(self.rows, 1)

    @property
    def paths(self) -> tuple[Path, ...]:
        """None: a segment does not change."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: a segment does not change."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows numbered `[start, end)`.

        Raises:
            StoreError: the segment is missing or damaged.
        """
        rows = self.load().select(list(columns))
        for first in range(start, min(end, self.rows), BATCH_ROWS):
            yield Read(rows.slice(first, min(BATCH_ROWS, end - first)))
        if start <= self.rows < end:
            yield Read(rows.slice(0, 0), self.rejected)

    def load(self) -> pa.RecordBatch:
        """All rows, with all columns.

        Raises:
            StoreError: the segment is missing or damaged.
        """
        return decode_rows(read_part(self.store, self.part))


def write_rows(store: Store, name: str, rows: pa.RecordBatch) -> RunPart:
    """Write rows as a segment of their own; it counts once a commit names it.

    Args:
        store: where.
        name: the segment's.
        rows: what it is to hold.

    Raises:
        StoreError: the file cannot be written.
    """
    writer = SegmentWriter(store, name)
    part = writer.add(encode_rows(rows))
    writer.close()
    return part
