"""Columns that are in the names of folders, as Hive and Spark write them: `day=2026-01-01/part.parquet`.

The meaning is that of Spark's partition discovery (*Spark SQL guide*, "Parquet files"): the folder's value
goes before one in the file, `__HIVE_DEFAULT_PARTITION__` is NULL, and `%3A` and its like are characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from headrace.elements import record_batch
from headrace.errors import PlanError, SourceError
from headrace.nested import is_nested
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.patterns import folder_columns
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read, SplitSource
from headrace.runtime.sources.rows.values import infer_type, parse_texts
from headrace.schema import BOOLEAN, STRING, Field, Schema, sql_type

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


class FileSource(SplitSource, Protocol):
    """A source of files laid end to end."""

    @property
    def found(self) -> tuple[str, ...]:
        """The columns that the files are known to have, also those that nobody has declared."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many positions each of the files of `paths` has."""
        ...


@dataclass(frozen=True, eq=False)
class PartitionedSource:
    """Files laid end to end, with columns that the names of their folders have.

    Attributes:
        input: the files.
        schema: all columns.
        values: the columns of the folders; a row for each combination of them.
        chosen: which of these rows each of the files has.
    """

    input: FileSource
    schema: Schema
    values: pa.RecordBatch
    chosen: tuple[int, ...]

    @property
    def found(self) -> tuple[str, ...]:
        """As the input's."""
        return self.input.found

    @property
    def size(self) -> int:
        """As the input's."""
        return self.input.size

    @property
    def rows(self) -> int:
        """As the input's."""
        return self.input.rows

    @property
    def borders(self) -> Sequence[int]:
        """As the input's."""
        return self.input.borders

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the input."""
        return self.input.weigh(start, end)

    @property
    def paths(self) -> tuple[Place, ...]:
        """As the input's."""
        return self.input.paths

    def mark(self, position: int) -> str:
        """As the input's, which has the names of the folders."""
        return self.input.mark(position)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`; those of files with the same values together."""
        folders = self.values.schema.names
        plain = tuple(name for name in columns if name not in folders)
        schema = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        for first, last, row in self._stretches(start, end):
            for read in self.input.read(first, last, plain):
                count = read.rows.num_rows
                found = [
                    _repeated(self.values.column(name), row, count)
                    if name in folders
                    else read.rows.column(plain.index(name))
                    for name in columns
                ]
                yield replace(read, rows=record_batch(found, schema, count))

    def _stretches(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The positions between `start` and `end`, cut where the values change: from, to, row of values."""
        first = at = start
        row: int | None = None
        for index, low, high in overlaps(self.input.sizes, start, end):
            if row is not None and row != self.chosen[index]:
                yield first, at, row
                first = at
            row, at = self.chosen[index], at + high - low
        if row is not None:
            yield first, at, row


@dataclass(frozen=True)
class Partitions:
    """What the folders of some files say.

    Attributes:
        labels: the files' names to show.
        columns: the columns of the folders, in their order; text or NULL by name, for each file.
    """

    labels: tuple[str, ...]
    columns: tuple[dict[str, str | None], ...]

    @classmethod
    def of(cls, labels: Sequence[str], above: str) -> Partitions:
        """What folders say.

        Args:
            labels: the files' names to show.
            above: the beginning of the labels at which nobody looks, since no user has written it.
        """
        found = []
        for label in labels:
            named = folder_columns(label.removeprefix(above))
            found.append({name: None if text == _NULL else text for name, text in named.items()})
        return cls(tuple(labels), tuple(found))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they are first written."""
        named: dict[str, str] = {}
        for columns in self.columns:
            for name in columns:
                named.setdefault(name.lower(), name)
        return tuple(named.values())

    def texts(self, name: str) -> list[str | None]:
        """A column's text of each file.

        Raises:
            SourceError: a file is in no folder that has it.
        """
        found = []
        for label, columns in zip(self.labels, self.columns, strict=True):
            similar = [text for known, text in columns.items() if known.lower() == name.lower()]
            if not similar:
                raise SourceError(
                    f"{label}: it is in no folder {name}=..., as other files are",
                    hint=f"move it into one, or name the others by a pattern, such as '.../{name}=*/*'",
                )
            found.append(similar[-1])
        return found

    def is_named(self, name: str) -> bool:
        """Whether a folder has the name of a column."""
        return name.lower() in {known.lower() for known in self.names}

    def without(self, declared: Schema | None) -> Schema | None:
        """The declared columns that are in the files themselves."""
        if declared is None:
            return None
        return Schema(tuple(field for field in declared if not self.is_named(field.name)))

    def added(self, files: FileSource, declared: Schema | None) -> SplitSource:
        """The files with the columns of the folders.

        Args:
            files: they, opened without these columns.
            declared: all columns, or None for those of the files, and then those of the folders.

        Raises:
            SourceError: a file is in no folder that has a column, or a value is not of the column's type.
        """
        schema = declared or self._all_columns(files.schema)
        wanted = [field for field in schema if self.is_named(field.name)]
        if not wanted:
            return files
        texts = [self.texts(field.name) for field in wanted]
        rows = list(zip(*texts, strict=True))
        firsts: dict[tuple[str | None, ...], int] = {}
        for file, row in enumerate(rows):
            firsts.setdefault(row, file)
        arrays = [
            self._parsed(field, [row[place] for row in firsts], list(firsts.values()))
            for place, field in enumerate(wanted)
        ]
        values = record_batch(arrays, Schema(tuple(wanted)), len(firsts))
        places = {row: place for place, row in enumerate(firsts)}
        return PartitionedSource(files, schema, values, tuple(places[row] for row in rows))

    def _all_columns(self, of_files: Schema) -> Schema:
        """The columns of the files, those of a folder with its type, and then the others of folders."""
        found = [
            Field(field.name, self._type(field.name)) if self.is_named(field.name) else field
            for field in of_files
        ]
        known = {field.name.lower() for field in found}
        found += [Field(name, self._type(name)) for name in self.names if name.lower() not in known]
        try:
            return Schema(tuple(found))
        except PlanError as error:
            raise SourceError(f"{self.labels[0]}: {error.message}", hint="declare the columns") from None

    def _type(self, name: str) -> pa.DataType:
        """The narrowest type of a column's texts; TRUE and FALSE are text, as in Spark."""
        dtype = infer_type(pa.array(list(dict.fromkeys(self.texts(name))), STRING))
        return STRING if dtype == BOOLEAN else dtype

    def _parsed(self, field: Field, texts: list[str | None], files: list[int]) -> pa.Array:
        """Texts as values of a column; each with the number of a file that has it."""
        if is_nested(field.type):
            raise SourceError(
                f"{self.labels[0]}: the name of a folder cannot be a value of {field.name} "
                f"{sql_type(field.type)}",
                hint="declare it as STRING",
            )
        values, bad = parse_texts(pa.array(texts, STRING), field.type)
        for place in np.flatnonzero(bad).tolist():
            raise SourceError(
                f"{self.labels[files[place]]}: the folder's {field.name} is not a valid "
                f"{sql_type(field.type)}: '{texts[place]}'",
                hint=f"rename the folder, or declare {field.name} as STRING",
            )
        return values


def _repeated(values: pa.Array, row: int, count: int) -> pa.Array:
    return values.take(pa.array(np.full(count, row)))
