"""Arrow IPC files, of the file or the stream format, as a source; positions are rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from headrace.elements import empty_columns
from headrace.runtime.sources.columnar.typed import TypedPart, TypedSource, open_parts
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place, RemoteFile
from headrace.runtime.sources.rows.contract import BATCH_ROWS
from headrace.runtime.sources.rows.rows import changed
from headrace.runtime.sources.rows.widening import check_columns, find_column
from headrace.schema import Schema

_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ArrowPart(TypedPart):
    """One file of the source; its blocks are record batches.

    Attributes:
        in_place: whether the columns are used where they are in the mapped file; compressed ones are not, and
            then only the wanted columns are decoded.
    """

    in_place: bool


class ArrowSource(TypedSource[ArrowPart]):
    """Arrow IPC files laid end to end, read as views of the mapped files where the types allow it."""

    kind = "Arrow IPC file"

    def batches(self, part: ArrowPart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types."""
        if not len(wanted):
            yield empty_columns(last - first)
            return
        with _mapped(part.path, None) as reader:
            available = reader.schema
        check_columns(available, wanted, part.label)
        places = [find_column(available.names, field.name, part.label) for field in wanted]
        fields = None if part.in_place else sorted(places)
        if fields is not None:
            places = [fields.index(place) for place in places]
        with _mapped(part.path, fields) as reader:
            chosen = list(overlaps(part.blocks, first, last))
            found = _batches(reader, [index for index, _, _ in chosen])
            for index, low, high in chosen:
                batch: pa.RecordBatch | None = next(found, None)
                if batch is None or batch.num_rows != part.blocks[index]:
                    raise changed(part.label)
                for start in range(low, high, BATCH_ROWS):
                    piece = batch.slice(start, min(BATCH_ROWS, high - start))
                    yield pa.RecordBatch.from_arrays(
                        [piece.column(place) for place in places], list(wanted.names)
                    )


def open_arrow(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> ArrowSource:
    """Open the Arrow IPC files of the option `path`.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column.
    """
    return ArrowSource(*open_parts("arrow", ArrowSource.kind, options, declared, base, allowed, _probe))


def _probe(path: Place, label: str) -> tuple[pa.Schema, ArrowPart]:
    available, in_place = _layout(path)
    with _mapped(path, None if in_place else _cheapest(available)) as reader:
        batches = [(batch.num_rows, batch.nbytes) for batch in _batches(reader, None)]
    rows = tuple(count for count, _ in batches)
    if in_place:
        return available, ArrowPart(path, label, rows, tuple(size for _, size in batches), True)
    whole, total = path.stat().st_size, max(sum(rows), 1)
    return available, ArrowPart(path, label, rows, tuple(whole * count // total for count in rows), False)


_Reader: TypeAlias = pa.RecordBatchFileReader | pa.RecordBatchStreamReader


@contextmanager
def _mapped(path: Place, fields: list[int] | None) -> Iterator[_Reader]:
    """A reader over the memory-mapped file; with `fields`, only those columns are decoded, and copied."""
    with _bytes_of(path) as source, _reader(source, fields) as reader:
        yield reader


def _bytes_of(path: Place) -> pa.NativeFile:
    return path.open_native() if isinstance(path, RemoteFile) else pa.memory_map(str(path))


def _reader(source: pa.NativeFile, fields: list[int] | None) -> _Reader:
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    magic = source.read(len(_MAGIC))
    source.seek(0)
    opener = pa.ipc.open_file if magic == _MAGIC else pa.ipc.open_stream
    return opener(source, options=options)


def _layout(path: Place) -> tuple[pa.Schema, bool]:
    """The file's schema, and whether the columns of its first batch are in the mapped file unchanged."""
    if isinstance(path, RemoteFile):
        with _mapped(path, None) as reader:
            return reader.schema, False
    with pa.memory_map(str(path)) as source:
        mapped = source.read_buffer()
        source.seek(0)
        with _reader(source, None) as reader:
            first: pa.RecordBatch | None = next(_batches(reader, [0]), None)
            columns = first.columns if first is not None else []
            return reader.schema, all(
                mapped.address <= buffer.address < mapped.address + mapped.size
                for column in columns
                for buffer in column.buffers()
                if buffer is not None and buffer.size
            )


def _cheapest(schema: pa.Schema) -> list[int]:
    """The column to decode where only rows are counted: one of fixed width, if there is one."""
    fixed = [index for index, field in enumerate(schema) if pa.types.is_primitive(field.type)]
    return fixed[:1] or [0][: len(schema)]


def _batches(reader: _Reader, chosen: Iterable[int] | None) -> Iterator[pa.RecordBatch]:
    """The batches with those numbers, which must be increasing, or all; stops at the end of the file."""
    if isinstance(reader, pa.RecordBatchFileReader):
        count = reader.num_record_batches
        for index in range(count) if chosen is None else chosen:
            if index < count:
                yield reader.get_batch(index)
    else:
        numbers = None if chosen is None else set(chosen)
        for index, batch in enumerate(reader):
            if numbers is None or index in numbers:
                yield batch
