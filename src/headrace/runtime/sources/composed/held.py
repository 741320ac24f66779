"""A few rows in memory as a source: they travel with the work of their epoch instead of in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.elements import concat_rows, decode_rows, encode_rows
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.rows.rows import gather, typed_rows
from headrace.schema import Schema


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory; positions are rows.

    Attributes:
        schema: the columns.
        batches: the rows, with those columns.
        label: their name to show.
    """

    schema: Schema
    batches: tuple[pa.RecordBatch, ...]
    label: str

    @classmethod
    def of(cls, tables: list[pa.Table], schema: Schema, label: str) -> HeldRows:
        """The rows of tables that have the schema's columns."""
        batches = [batch for table in tables for batch in table.select(list(schema.names)).to_batches()]
        return cls(schema, (concat_rows(batches),) if batches else (), label)

    def __reduce__(self) -> tuple[Callable[..., HeldRows], tuple[Schema, list[pa.Buffer], str]]:
        """The rows alone, where a batch would be pickled with all that it is a slice of."""
        return _unpacked, (self.schema, [encode_rows(batch) for batch in self.batches], self.label)

    @property
    def size(self) -> int:
        """Rows in total."""
        return sum(batch.num_rows for batch in self.batches)

    @property
    def rows(self) -> int:
        """Rows in total."""
        return self.size

    @property
    def borders(self) -> tuple[int, ...]:
        """None: a part of the rows is a view."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the rows, in proportion."""
        size: int = sum(batch.nbytes for batch in self.batches)
        return size * (end - start) // max(self.size, 1)

    @property
    def paths(self) -> tuple[Place, ...]:
        """None: the rows are in no file."""
        return ()

    def mark(self, position: int) -> str:
        """The number of rows; nobody can change them."""
        return f"{position} rows"

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows numbered `[start, end)`."""
        wanted = self.schema.select(tuple(map(self.schema.names.index, columns)))
        pieces = (batch.slice(start, end - start).select(list(columns)) for batch in self.batches)
        return gather(typed_rows(piece, wanted, self.label, start) for piece in pieces)


def _unpacked(schema: Schema, batches: list[pa.Buffer], label: str) -> HeldRows:
    return HeldRows(schema, tuple(map(decode_rows, batches)), label)
