"""Parquet files as a source; positions are rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.elements import empty_columns
from headrace.runtime.sources.contract import BATCH_ROWS
from headrace.runtime.sources.files import overlaps
from headrace.runtime.sources.rows import changed
from headrace.runtime.sources.typed import TypedPart, TypedSource, open_parts
from headrace.runtime.sources.widening import check_columns, find_column
from headrace.schema import Schema


class ParquetSource(TypedSource[TypedPart]):
    """Parquet files laid end to end; row groups are their blocks."""

    kind = "Parquet file"

    def batches(self, part: TypedPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types."""
        with _open(part.path) as file:
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
                elif (low, high) == (0, part.blocks[group]):
                    for batch in file.iter_batches(BATCH_ROWS, [group], list(found), use_threads=False):
                        yield batch.select(list(found))
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


def _probe(path: Path, label: str) -> tuple[pa.Schema, TypedPart]:
    with _open(path) as file:
        groups = range(file.metadata.num_row_groups)
        rows = tuple(file.metadata.row_group(index).num_rows for index in groups)
        return file.schema_arrow, TypedPart(path, label, rows)


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


@lru_cache(maxsize=2)
def _row_group(path: Path, _modified: int, _size: int, group: int, columns: tuple[str, ...]) -> pa.Table:
    """One decoded row group; kept because the next range often starts where the last one ended in it."""
    with _open(path) as file:
        return file.read_row_group(group, list(columns), use_threads=False).select(list(columns))
