"""What CSV and JSON have in common: rows of text, the good ones as values, the bad ones rejected."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, record_batch
from headrace.runtime.sources.rows.contract import Places, Read, Rejected
from headrace.runtime.sources.rows.written_times import ISO, WrittenTimes
from headrace.runtime.sources.text.blocks import Block
from headrace.schema import Schema, sql_type

_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, eq=False)
class BlockRecords:
    """The rows of a block.

    Attributes:
        block: the block.
        starts, ends: int64[n], the bytes of the block between which each row is.
        reasons: what is wrong with a row, by its number.
    """

    block: Block
    starts: Int64Array
    ends: Int64Array
    reasons: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def data(self, row: int) -> bytes:
        """The bytes of a row."""
        return self.block.data[self.starts[row] : self.ends[row]]

    def join(self, rows: Int64Array) -> bytes:
        """The lines of those rows alone."""
        return b"".join(self.data(row) + b"\n" for row in rows.tolist())

    def refuse_non_text(self) -> None:
        """Give a reason to the rows that are not text."""
        encoding = self.block.part.coding.encoding
        reason = f"the row is not {'UTF-8' if encoding == 'utf-8' else encoding} text"
        for row in range(len(self)):
            if row not in self.reasons and not self.data(row).isascii():
                try:
                    self.data(row).decode()
                except UnicodeDecodeError:
                    self.reasons[row] = reason

    def kept(self) -> Int64Array:
        """The numbers of the rows without a reason."""
        mask = np.ones(len(self), dtype=np.bool_)
        mask[list(self.reasons)] = False
        return np.flatnonzero(mask)

    def rejected(self) -> tuple[Rejected, ...]:
        """The rows with a reason, in order."""
        return tuple(
            self.block.reject(int(self.starts[row]), int(self.ends[row]), self.reasons[row])
            for row in sorted(self.reasons)
        )

    def places(self, rows: Int64Array) -> list[str]:
        """Where some rows are, by their numbers."""
        return [self.block.place(start) for start in self.starts[rows].tolist()]


def parse_columns(
    columns: list[pa.Array], wanted: Schema, *, trim: bool, null: str | None, times: WrittenTimes = ISO
) -> tuple[list[pa.Array], dict[int, str]]:
    """Columns as values of the wanted types; what a reader left as text is parsed.

    Args:
        columns: one per wanted column, of its type or of text.
        wanted: the wanted columns.
        trim, null: as for `parse_texts`.
        times: how times are written.

    Returns:
        The values, and what is wrong with a row, by its place.
    """
    values, reasons = [], dict[int, str]()
    for wish, column in zip(wanted, columns, strict=True):
        if column.type == wish.type:
            values.append(column)
            continue
        parsed, bad = times.parse(column, wish.type, trim=trim, null=null)
        for row in np.flatnonzero(bad).tolist():
            shown = column[row].as_py()[:_SHOWN_CHARACTERS]
            reasons.setdefault(row, f"{wish.name} is not a valid {sql_type(wish.type)}: '{shown}'")
        values.append(parsed)
    return values, reasons


def read_without(
    columns: list[pa.Array],
    wanted: Schema,
    count: int,
    reasons: dict[int, str],
    records: BlockRecords | None,
    places: Places,
) -> Read:
    """The rows that have no reason, as they were parsed, with all rejected rows of the block.

    Args:
        columns: values of the wanted columns, `count` rows.
        wanted: the wanted columns.
        count: the number of rows.
        reasons: what is wrong with a row, by its place in the columns.
        records: the rows of the block, with all reasons; None where no row has one.
        places: where the rows are.
    """
    rows = record_batch(columns, wanted, count)
    if reasons:
        good = np.delete(np.arange(count), list(reasons))
        rows = record_batch([column.take(pa.array(good)) for column in columns], wanted, len(good))
        places = places.kept(good)
    return Read(rows, records.rejected() if records else (), places)
