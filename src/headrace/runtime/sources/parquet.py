"""Parquet files as a source; positions are rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.elements import empty_columns
from headrace.runtime.sources.contract import BATCH_ROWS, Read
from headrace.runtime.sources.files import list_files, overlaps
from headrace.runtime.sources.options import check_known, required
from headrace.runtime.sources.rows import changed, gather, reading, typed_rows
from headrace.runtime.sources.widening import check_columns, find_column, readable_schema
from headrace.schema import Schema

_KIND = "Parquet file"


@dataclass(frozen=True)
class ParquetPart:
    """One file of the source: where it is, its name to show, the rows of each row group."""

    path: Path
    label: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files laid end to end.

    Attributes:
        schema: the columns that can be read.
        parts: the files in order.
    """

    schema: Schema
    parts: tuple[ParquetPart, ...]

    @property
    def size(self) -> int:
        """Rows in total, from the files' footers."""
        return sum(sum(part.groups) for part in self.parts)

    @property
    def rows(self) -> int:
        """Rows in total."""
        return self.size

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows numbered `[start, end)`; decodes only the row groups and columns that are needed.

        Raises:
            SourceError: a file is missing, damaged, or has changed since the source was opened.
        """
        return gather(self._pieces(start, end, columns))

    def _pieces(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        sizes = [sum(part.groups) for part in self.parts]
        for index, first, last in overlaps(sizes, start, end):
            part = self.parts[index]
            with reading(part.label, _KIND):
                row = first
                for batch in _part_batches(part, first, last, wanted):
                    yield typed_rows(batch, wanted, part.label, row)
                    row += batch.num_rows


def open_parquet(options: Mapping[str, str], declared: Schema | None, base: Path) -> ParquetSource:
    """Open the Parquet files of the option `path`.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column.
    """
    check_known("parquet", options, ("path",))
    schema, parts = declared, []
    for path, label in list_files(required(options, "path"), base):
        with reading(label, _KIND), _open(path) as file:
            available = file.schema_arrow
            metadata = file.metadata
            groups = tuple(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))
        schema = schema or readable_schema(available, label)
        check_columns(available, schema, label)
        parts.append(ParquetPart(path, label, groups))
    assert schema is not None  # list_files gives at least one file
    return ParquetSource(schema, tuple(parts))


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


def _part_batches(part: ParquetPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
    """The rows `[first, last)` of a file, with the file's own types."""
    with _open(part.path) as file:
        rows = tuple(file.metadata.row_group(index).num_rows for index in range(file.num_row_groups))
        if rows != part.groups:
            raise changed(part.label)
        names = file.schema_arrow.names
        found = tuple(names[find_column(names, field.name, part.label)] for field in wanted)
        check_columns(file.schema_arrow, wanted, part.label)
        stat = part.path.stat()
        for group, low, high in overlaps(part.groups, first, last):
            if not found:
                yield empty_columns(high - low)
            elif (low, high) == (0, part.groups[group]):
                for batch in file.iter_batches(BATCH_ROWS, [group], list(found), use_threads=False):
                    yield batch.select(list(found))
            else:
                table = _row_group(part.path, stat.st_mtime_ns, stat.st_size, group, found)
                yield from table.slice(low, high - low).to_batches(max_chunksize=BATCH_ROWS)


@lru_cache(maxsize=2)
def _row_group(path: Path, _modified: int, _size: int, group: int, columns: tuple[str, ...]) -> pa.Table:
    """One decoded row group; kept because the next range often starts where the last one ended in it."""
    with _open(path) as file:
        return file.read_row_group(group, list(columns), use_threads=False).select(list(columns))
