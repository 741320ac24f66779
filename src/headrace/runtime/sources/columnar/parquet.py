"""Parquet files as a source; positions are rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.elements import empty_columns
from headrace.runtime.sources.columnar.typed import TypedPart, TypedSource, open_parts
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place, RemoteFile
from headrace.runtime.sources.rows.contract import BATCH_BYTES, BATCH_ROWS
from headrace.runtime.sources.rows.rows import changed
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import Schema

_KEPT_BYTES: Final = 2**26
"""A row group of more bytes is decoded again for every range of it, and never kept as a whole."""


class ParquetSource(TypedSource[TypedPart]):
    """Parquet files laid end to end; row groups are their blocks."""

    kind = "Parquet file"

    def batches(self, part: TypedPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types."""
        with open_file(part.path) as file:
            rows = tuple(file.metadata.row_group(index).num_rows for index in range(file.num_row_groups))
            if rows != part.blocks:
                raise changed(part.label)
            names = file.schema_arrow.names
            found = tuple(names[find_column(names, field.name, part.label)] for field in wanted)
            check_columns(file.schema_arrow, wanted, part.label)
            stat = part.path.stat()
            for group, low, high in overlaps(part.blocks, first, last):
                if not found:
                    yield empty_columns(high - low)
                elif (low, high) == (0, part.blocks[group]) or part.sizes[group] > _KEPT_BYTES:
                    at_once = _rows_at_once(part.blocks[group], part.sizes[group])
                    batches = file.iter_batches(at_once, [group], list(found), use_threads=False)
                    yield from _between(low, high, (batch.select(list(found)) for batch in batches))
                else:
                    table = _row_group(part.path, stat.st_mtime_ns, stat.st_size, group, found)
                    yield from table.slice(low, high - low).to_batches(max_chunksize=BATCH_ROWS)


def open_parquet(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> ParquetSource:
    """Open the Parquet files of the option `path`.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column.
    """
    return ParquetSource(*open_parts("parquet", ParquetSource.kind, options, declared, base, allowed, _probe))


def part_of(file: pq.ParquetFile, path: Place, label: str) -> TypedPart:
    """An open file as a part of a source.

    Args:
        file: the file.
        path: where it is.
        label: its name to show.
    """
    groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
    rows = tuple(group.num_rows for group in groups)
    return TypedPart(path, label, rows, tuple(group.total_byte_size for group in groups))


def open_file(path: Place) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        OSError, pa.ArrowException: it is missing or damaged.
    """
    file = path.open_native() if isinstance(path, RemoteFile) else path
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")


def _probe(path: Place, label: str) -> tuple[pa.Schema, TypedPart]:
    with open_file(path) as file:
        return file.schema_arrow, part_of(file, path, label)


def _rows_at_once(rows: int, size: int) -> int:
    """How many rows to decode at once of a row group that has so many, and so many bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(size, 1)))


def _between(low: int, high: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows `[low, high)` of batches laid end to end; those after them are not decoded."""
    at = 0
    while at < high:
        if (batch := next(batches, None)) is None:
            raise pa.ArrowInvalid(f"it has fewer rows than its footer says, {at} of {high} in a row group")
        first, last = max(low - at, 0), min(high - at, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        at += batch.num_rows


@lru_cache(maxsize=2)
def _row_group(path: Place, _modified: int, _size: int, group: int, columns: tuple[str, ...]) -> pa.Table:
    """One decoded row group; kept because the next range often starts where the last one ended in it."""
    with open_file(path) as file:
        return file.read_row_group(group, list(columns), use_threads=False).select(list(columns))
