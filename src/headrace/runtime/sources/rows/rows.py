"""Rows of typed files (Parquet, Arrow) as rows of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array, concat_rows, empty_columns, record_batch
from headrace.errors import SourceError
from headrace.nested import innermost, is_nested
from headrace.runtime.sources.rows.contract import BATCH_BYTES, BATCH_ROWS, Places, Read, Rejected
from headrace.runtime.sources.rows.widening import convert, raw_counts
from headrace.runtime.writing.texts import row_texts
from headrace.schema import DOUBLE, STRING, Schema, sql_type
from headrace.value_texts import value_texts


def changed(label: str) -> SourceError:
    """The error for a file that is no longer what it was when the source was opened."""
    return SourceError(f"{label}: the file has changed since it was opened", hint="run again")


def typed_rows(batch: pa.RecordBatch, schema: Schema, label: str, first_row: int) -> Read:
    """The rows of a file as rows of that schema; a row that has no counterpart is rejected.

    Args:
        batch: the schema's columns, in its order, with the file's types.
        schema: what is wanted.
        label: the file's name to show.
        first_row: the number of the batch's first row in its file, from 0.

    Raises:
        pa.ArrowInvalid: a column is damaged.
    """
    where = Places(lambda rows: [f"{label}:{first_row + row + 1}" for row in rows.tolist()])
    if not len(schema):
        return Read(empty_columns(batch.num_rows), places=where)
    columns, told, reasons = [], [], dict[int, str]()
    for field, column in zip(schema, batch.columns, strict=True):
        values, bad = convert(column, field.type)
        if STRING in innermost(field.type):
            values.validate(full=True)
        for row in np.flatnonzero(bad) if bad is not None else ():
            reasons.setdefault(int(row), f"{field.name} {_beyond(field.type)}")
        columns.append(values)
        told.append(values if bad is None else _with_counts(values, bad, column))
    rows = record_batch(columns, schema, batch.num_rows)
    if not reasons:
        return Read(rows, places=where)
    places = sorted(reasons)
    texts = row_texts(pa.RecordBatch.from_arrays(told, list(schema.names)).take(pa.array(places)))
    found = zip(places, texts, where.find(np.array(places)), strict=True)
    rejected = tuple(Rejected(text, reasons[row], place) for row, text, place in found)
    good = np.delete(np.arange(len(rows)), places)
    return Read(rows.take(good), rejected, where.kept(good))


def _beyond(dtype: pa.DataType) -> str:
    """What is wrong with a value that the column type has not."""
    return "has more digits than a DOUBLE" if dtype == DOUBLE else f"is beyond the range of {sql_type(dtype)}"


def with_nulls(read: Read, wanted: Schema) -> Read:
    """Rows with NULL in the columns that they lack.

    Args:
        read: the rows.
        wanted: the columns.
    """
    given = dict(zip(read.rows.schema.names, read.rows.columns, strict=True))
    count = read.rows.num_rows
    columns = [given.get(field.name, pa.nulls(count, field.type)) for field in wanted]
    return replace(read, rows=record_batch(columns, wanted, count))


def gather(reads: Iterable[Read]) -> Iterator[Read]:
    """The same rows in larger pieces: small ones are put together, up to `BATCH_ROWS` or `BATCH_BYTES`."""
    waiting: list[Read] = []
    count = size = 0
    for read in reads:
        if waiting and (count + read.rows.num_rows > BATCH_ROWS or size + read.rows.nbytes > BATCH_BYTES):
            yield _together(waiting)
            waiting, count, size = [], 0, 0
        waiting.append(read)
        count += read.rows.num_rows
        size += read.rows.nbytes
    if waiting:
        yield _together(waiting)


def _together(reads: list[Read]) -> Read:
    if len(reads) == 1:
        return reads[0]
    rejected = (row for read in reads for row in read.rejected)
    rows, places = [read.rows for read in reads], [read.places for read in reads]
    return Read(concat_rows(rows), tuple(rejected), _places_together(rows, places))


def _places_together(rows: list[pa.RecordBatch], places: list[Places | None]) -> Places | None:
    """The places of rows that are laid end to end."""
    known = [one for one in places if one is not None]
    if len(known) < len(places):
        return None
    begins = np.concatenate([[0], np.cumsum([one.num_rows for one in rows])])

    def find(asked: Int64Array) -> list[str]:
        parts = np.searchsorted(begins, asked, side="right") - 1
        found = zip(parts.tolist(), (asked - begins[parts]).tolist(), strict=True)
        return [known[part].find(np.array([row]))[0] for part, row in found]

    return Places(find)


def _with_counts(values: pa.Array, bad: BoolArray, column: pa.Array) -> pa.StringArray:
    """The values as texts; where there is none, what the file's own type counts."""
    if is_nested(values.type):
        return value_texts(values)
    counts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pc.if_else(pa.array(bad), raw_counts(counts).cast(STRING), value_texts(values))
