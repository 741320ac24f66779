"""What the sources of typed files (Parquet, Arrow) have in common; positions are rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

import pyarrow as pa

from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.files.files import list_files, mark_of, overlaps
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, Place, account_of
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.rows.options import check_known, missing_of, required
from headrace.runtime.sources.rows.rows import gather, typed_rows, with_nulls
from headrace.runtime.sources.rows.widening import Lacking, check_columns, readable_schema, widened_by
from headrace.schema import Schema

OPTIONS: Final = ("path", "missing", *ACCOUNT_OPTIONS)
"""All options of the formats of typed files."""


@dataclass(frozen=True)
class TypedPart:
    """One file of a source.

    Attributes:
        path: where it is.
        label: its name to show.
        blocks: the rows of each row group or record batch.
        sizes: about how many bytes each of them has in memory.
        lacks: the columns of the source that it has not, which are NULL.
        names: all its columns.
    """

    path: Place
    label: str
    blocks: tuple[int, ...]
    sizes: tuple[int, ...]
    lacks: tuple[str, ...] = field(default=(), kw_only=True)
    names: tuple[str, ...] = field(default=(), kw_only=True)


FilePart = TypeVar("FilePart", bound=TypedPart)


@dataclass(frozen=True)
class TypedSource(ABC, Generic[FilePart]):
    """Typed files laid end to end.

    Attributes:
        kind: what such a file is called, for errors.
        schema: the columns that can be read.
        parts: the files in order.
    """

    kind: ClassVar[str]
    schema: Schema
    parts: tuple[FilePart, ...]

    @property
    def size(self) -> int:
        """Rows in total."""
        return sum(self.sizes)

    @property
    def rows(self) -> int:
        """Rows in total."""
        return self.size

    @property
    def found(self) -> tuple[str, ...]:
        """The columns of the files."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each file."""
        return tuple(sum(part.blocks) for part in self.parts)

    @property
    def borders(self) -> tuple[int, ...]:
        """Where a row group or record batch ends."""
        return tuple(accumulate(rows for part in self.parts for rows in part.blocks))

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the blocks, in proportion to their rows."""
        blocks = [rows for part in self.parts for rows in part.blocks]
        sizes = [size for part in self.parts for size in part.sizes]
        return sum(
            sizes[index] * (last - first) // blocks[index]
            for index, first, last in overlaps(blocks, start, end)
        )

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files."""
        return tuple(part.path for part in self.parts)

    def mark(self, position: int) -> str:
        """Identifies the files up to a row."""
        return mark_of([(part.path, sum(part.blocks)) for part in self.parts], position)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows numbered `[start, end)`; reads only the blocks and columns that are needed.

        Raises:
            SourceError: a file is missing, damaged, or has changed since the source was opened.
        """
        return gather(self._pieces(start, end, columns))

    @abstractmethod
    def batches(self, part: FilePart, first: int, last: int, wanted: Schema) -> Iterator[pa.RecordBatch]:
        """The rows `[first, last)` of a file, with the file's own types."""

    def _pieces(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        for index, first, last in overlaps(self.sizes, start, end):
            part = self.parts[index]
            there = wanted.select(tuple(at for at, one in enumerate(wanted) if one.name not in part.lacks))
            with reading(part.label, self.kind):
                row = first
                for batch in self.batches(part, first, last, there):
                    yield with_nulls(typed_rows(batch, there, part.label, row), wanted)
                    row += batch.num_rows


def open_parts(
    format: str,
    kind: str,
    options: Mapping[str, str],
    declared: Schema | None,
    base: Path,
    allowed: tuple[Path, ...] | None,
    probe: Callable[[Place, str], tuple[pa.Schema, FilePart]],
) -> tuple[Schema, tuple[FilePart, ...]]:
    """The columns and the files of the option `path`.

    Args:
        format, kind: what such files are called, in SQL and in errors.
        options: the stream's options.
        declared: the declared columns, or None to take those of all files.
        base: the folder at which relative paths start.
        allowed: the folders that files must be in; None for any file.
        probe: from a file's path and label to its columns and what is kept of it.

    Raises:
        SourceError: a file is missing or damaged, or lacks a declared column.
    """
    check_known(format, options, OPTIONS)
    schema, probed = declared or Schema(()), []
    for path, label in list_files(required(options, "path"), base, allowed, account_of(options)):
        with reading(label, kind):
            available, part = probe(path, label)
        if declared is None:
            schema = widened_by(schema, readable_schema(available, label))
        probed.append((available, part))
    lacking, parts = Lacking(schema, missing_of(options), declared is not None), []
    for available, part in probed:
        lacks = lacking.of(available.names, part.label)
        there = tuple(at for at, one in enumerate(schema) if one.name not in lacks)
        check_columns(available, schema.select(there), part.label)
        parts.append(replace(part, lacks=lacks, names=tuple(available.names)))
    lacking.tell()
    return schema, tuple(parts)
