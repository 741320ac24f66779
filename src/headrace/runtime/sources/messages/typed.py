"""Messages that are records of a schema, as rows: what Avro and Protobuf have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, concat_rows, record_batch
from headrace.runtime.sources.columnar.avro import column_of_avro
from headrace.runtime.sources.messages.messages import MessageRows, Messages, rejected
from headrace.runtime.sources.messages.registry import UnusableError
from headrace.runtime.sources.rows.contract import Read, Rejected
from headrace.runtime.sources.rows.rows import typed_rows
from headrace.runtime.sources.rows.widening import converts
from headrace.schema import BIGINT, Field, Schema, sql_type

_NUMBER: Final = "#"
"""The column with the number of a row among all, while rows are made."""


@dataclass(frozen=True)
class Written:
    """What messages were written by.

    Attributes:
        name: of the schema, to show.
        columns: its columns.
        left_out: fields that cannot be columns, with the reason.
    """

    name: str
    columns: pa.Schema
    left_out: Mapping[str, str] = field(default_factory=dict)

    def check(self, wish: Field) -> pa.Field | None:
        """The column for one that is wanted; None if there is none.

        Raises:
            UnusableError: it cannot be one, or is of another type.
        """
        known = self.find(wish.name)
        for name, reason in self.left_out.items():
            if known is None and name.lower() == wish.name.lower():
                raise UnusableError(f"{name} cannot be a column: {reason}")
        if known is not None and not converts(known.type, wish.type):
            raise UnusableError(f"{known.name} is {known.type} in {self.name}, and not {sql_type(wish.type)}")
        return known

    def find(self, name: str) -> pa.Field | None:
        """The column of that name, or the only one that is so but for upper and lower case; None without."""
        names = self.columns.names
        if name not in names:
            names = [one.lower() for one in names]
            name = name.lower()
        return self.columns.field(names.index(name)) if names.count(name) == 1 else None


def rows_of_records(
    label: str,
    messages: Messages,
    wanted: Schema,
    decode: Callable[[bytes | None], tuple[Written, Sequence[dict[str, Any]]]],
) -> MessageRows:
    """The rows of some messages; columns that a message's schema does not have are NULL.

    Args:
        label: what the messages are of.
        messages: they.
        wanted: the columns.
        decode: a message's schema, and the values of each of its rows by name. Raises `UnusableError`
            where it cannot be read.
    """
    refused: dict[int, Rejected] = {}
    found: list[tuple[Written, int, dict[str, Any]]] = []
    for number in range(len(messages)):
        try:
            written, records = decode(messages.values[number])
            found += [(written, number, record) for record in records]
        except UnusableError as error:
            refused[number] = rejected(label, messages, number, str(error))
    parts = []
    owners = np.array([number for _, number, _ in found], np.int64)
    for _, some in groupby(range(len(found)), lambda row: found[row][0].name):
        group = list(some)
        try:
            read = _rows(found[group[0]][0], group, [found[row][2] for row in group], wanted)
        except UnusableError as error:
            numbers = owners[group].tolist()
            refused |= {number: rejected(label, messages, number, str(error)) for number in numbers}
            continue
        kept = read.rows.column(len(wanted)).to_numpy()
        parts.append(read.rows)
        for row, one in zip(sorted({*group} - {*kept.tolist()}), read.rejected, strict=True):
            number = int(owners[row])
            refused[number] = Rejected(one.text, one.reason, f"{label}:{messages.offsets[number]}")
    read, rows = _whole(parts, wanted, tuple(refused[number] for number in sorted(refused)))
    # Of a message of which one row is not valid the other one is left out as well.
    numbers = owners[rows]
    whole = np.flatnonzero(~np.isin(numbers, list(refused)))
    return Read(read.rows.take(pa.array(whole)), read.rejected), numbers[whole]


def _rows(
    written: Written, numbers: Sequence[int], records: Sequence[dict[str, Any]], wanted: Schema
) -> Read:
    """The rows of records of one schema, with their numbers among all as last column."""
    columns = [_column(records, one, written) for one in wanted]
    numbered = Schema((*wanted, Field(_NUMBER, BIGINT)))
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(numbers, BIGINT)], names=list(numbered.names))
    return typed_rows(batch, numbered, "", 0)


def _column(records: Sequence[dict[str, Any]], wish: Field, written: Written) -> pa.Array:
    known = written.check(wish)
    if known is None:
        return pa.nulls(len(records), wish.type)
    return column_of_avro([record[known.name] for record in records], known.type)


def _whole(parts: list[pa.RecordBatch], wanted: Schema, refused: tuple[Rejected, ...]) -> MessageRows:
    if not parts:
        empty = record_batch([pa.array([], one.type) for one in wanted], wanted, 0)
        return Read(empty, refused), np.empty(0, np.int64)
    rows = concat_rows(parts)
    numbers: Int64Array = rows.column(len(wanted)).to_numpy()
    return Read(record_batch(rows.columns[: len(wanted)], wanted, len(rows)), refused), numbers
