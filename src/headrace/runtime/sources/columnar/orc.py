"""ORC files as a source; positions are rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.orc

from headrace.elements import empty_columns
from headrace.runtime.sources.columnar.typed import TypedPart, TypedSource, open_parts
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place, RemoteFile
from headrace.runtime.sources.rows.contract import BATCH_ROWS
from headrace.runtime.sources.rows.rows import changed
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import Schema


class OrcSource(TypedSource[TypedPart]):
    """ORC files laid end to end; stripes are their blocks."""

    kind = "ORC file"

    def batches(self, part: TypedPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types."""
        file = _open(part.path)
        if file.nrows != sum(part.blocks) or file.nstripes != len(part.blocks):
            raise changed(part.label)
        check_columns(file.schema, wanted, part.label)
        available = file.schema.names
        names = [available[find_column(available, field.name, part.label)] for field in wanted]
        for stripe, low, high in overlaps(part.blocks, first, last):
            if not names:
                yield empty_columns(high - low)
                continue
            rows = file.read_stripe(stripe, columns=names)
            if rows.num_rows != part.blocks[stripe]:
                raise changed(part.label)
            rows = rows.select(names)
            for start in range(low, high, BATCH_ROWS):
                yield rows.slice(start, min(BATCH_ROWS, high - start))


def open_orc(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> OrcSource:
    """Open the ORC files of the option `path`.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column.
    """
    return OrcSource(*open_parts("orc", OrcSource.kind, options, declared, base, allowed, _probe))


def _open(path: Place) -> pyarrow.orc.ORCFile:
    return pyarrow.orc.ORCFile(path.open_native() if isinstance(path, RemoteFile) else str(path))


def _probe(path: Place, label: str) -> tuple[pa.Schema, TypedPart]:
    file = _open(path)
    # A file does not say how many rows its stripes have: one column of each is read.
    rows: tuple[int, ...] = (file.nrows,)
    if file.nstripes != 1:
        columns = file.schema.names[:1]
        rows = tuple(file.read_stripe(stripe, columns=columns).num_rows for stripe in range(file.nstripes))
    size, total = path.stat().st_size, max(file.nrows, 1)
    return file.schema, TypedPart(path, label, rows, tuple(size * count // total for count in rows))
