"""Writing a table: as text for people, as JSON lines, CSV, Parquet or Arrow; to a file or a stream."""

from __future__ import annotations

import io
import json
import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import UserError
from headrace.nested import is_nested
from headrace.runtime.writing.texts import (
    csv_texts,
    pad,
    pieces,
    shortened,
    shown_texts,
    width_of,
)
from headrace.schema import STRING
from headrace.value_texts import json_texts

FORMATS: Final = ("table", "jsonl", "csv", "parquet", "arrow", "null")
"""What a table can be written as; `null` writes nothing."""


_OPEN_ENDS: Final = "valid_to"
"""A column of instants that may be texts, so that they can be empty; it is not shortened."""

_LEAST: Final = 8
"""To fewer characters a column is not shortened."""


def write_table(
    table: pa.Table, format: str, target: Path | TextIO | BinaryIO | None, width: int | None = None
) -> None:
    """Write all rows of a table.

    A file is written beside its place and then moved there, so that it is whole or not there at all. In
    text, TIMESTAMPs are ISO 8601 in UTC; NULL is `NULL` in a table, `null` in JSON, empty in CSV; JSON has
    NaN and the infinities as strings. Parquet and Arrow keep the column types.

    Args:
        table: the rows.
        format: one of `FORMATS`.
        target: a file, an open stream, or None for standard output.
        width: of the terminal (columns), to which a `table` is fitted by shortening long texts; None where
            all of them are written in full.

    Raises:
        UserError: the format is unknown, cannot be printed, or the file cannot be written.
    """
    match format:
        case "table":
            _write_text(_aligned(table, width), target)
        case "jsonl":
            _write_text(_json_lines(table), target)
        case "csv":
            _write_text(_csv_lines(table), target)
        case "parquet":
            with _new_file(target, format) as path:
                pq.write_table(table, path, compression="zstd")
        case "arrow":
            with _new_file(target, format) as path, pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
        case "null":
            pass
        case _:
            raise UserError(f"there is no format {format}", hint=f"the formats are {', '.join(FORMATS)}")


# --- text ------------------------------------------------------------------------------------------------


def _json_lines(table: pa.Table) -> Iterator[bytes]:
    keys = [json.dumps(name, ensure_ascii=False) + ":" for name in table.column_names]
    prefixes = ["{" + key if place == 0 else "," + key for place, key in enumerate(keys)]
    if not prefixes:
        yield b"{}\n" * table.num_rows
    for batch in _pieces(table) if prefixes else ():
        parts: list[pa.Array | str] = []
        for prefix, column in zip(prefixes, batch.columns, strict=True):
            parts += [prefix, json_texts(column)]
        yield _lines([*parts, "}\n"], "")


def _csv_lines(table: pa.Table) -> Iterator[bytes]:
    names = csv_texts(pa.array(table.column_names, STRING)).to_pylist()
    yield (",".join(names) + "\n").encode()
    for batch in _pieces(table):
        yield _lines([_lined([csv_texts(column) for column in batch.columns], ","), "\n"], "")


class AlignedRows:
    """Rows in columns under one heading, as they come: numbers to the right, the rest to the left.

    The columns are as wide as what has come; they get wider, but no narrower. Where a width is given, texts
    and arrays are shortened, the longest ones first, until a row fits into it.

    Args:
        width: that of the terminal (columns); None where nothing is to be shortened.
    """

    def __init__(self, width: int | None = None) -> None:
        self._width = width
        self._widths: list[int] = []

    def lines(self, table: pa.Table) -> Iterator[bytes]:
        """The lines of further rows; the first ones come under the heading."""
        names = shown_texts(pa.array(table.column_names, STRING))
        batches = [[shown_texts(column) for column in batch.columns] for batch in _pieces(table)]
        begun, known = bool(self._widths), self._widths or [0] * table.num_columns
        widths = self._widths = [
            max([known[place], width_of(names.slice(place, 1)), *(width_of(part[place]) for part in batches)])
            for place in range(table.num_columns)
        ]
        if self._width is not None:
            widths = _fitted(widths, [_may_be_cut(field) for field in table.schema], self._width)
        numeric = [_is_number(field.type) for field in table.schema]
        rule = pa.array(["-" * width for width in widths], STRING)
        headings = [[texts.slice(place, 1) for place in range(len(widths))] for texts in (names, rule)]
        for columns in [*(() if begun else headings), *batches] if widths else ():
            last = len(columns) - 1
            fitted = [
                shortened(column, width) if width < natural else column
                for column, width, natural in zip(columns, widths, self._widths, strict=True)
            ]
            padded = [
                column
                if place == last and not numeric[place]
                else pad(column, widths[place], left=numeric[place])
                for place, column in enumerate(fitted)
            ]
            yield _lines([_lined(padded, "  "), "\n"], "")


def _may_be_cut(field: pa.Field) -> bool:
    is_long = pa.types.is_string(field.type) or is_nested(field.type)
    return bool(is_long and field.name != _OPEN_ENDS)


def _fitted(widths: Sequence[int], may_be_cut: Sequence[bool], room: int) -> list[int]:
    """Widths with which a row fits, if that is possible: those that may be cut have a common bound.

    Args:
        widths: those that the columns would have.
        may_be_cut: which of them can be reduced.
        room: what a row may take, with two blanks between columns.
    """

    def bounded(bound: int) -> list[int]:
        return [min(width, bound) if cut else width for width, cut in zip(widths, may_be_cut, strict=True)]

    def is_too_wide(bound: int) -> bool:
        return sum(bounded(bound)) + 2 * (len(widths) - 1) > room

    bounds = range(_LEAST + 1, max(widths, default=0) + 1)
    return bounded(_LEAST + bisect_left(bounds, True, key=is_too_wide))


def _aligned(table: pa.Table, width: int | None) -> Iterator[bytes]:
    """All rows in columns, then how many there are."""
    yield from AlignedRows(width).lines(table)
    yield f"({table.num_rows} row{'' if table.num_rows == 1 else 's'})\n".encode()


def _pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    return (piece for batch in table.to_batches() for piece in pieces(batch))


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def _lined(columns: list[pa.Array], separator: str) -> pa.StringArray:
    return pc.binary_join_element_wise(*columns, separator)


def _lines(parts: list[pa.Array | str], separator: str) -> bytes:
    """The texts of each row joined, and all rows one after the other."""
    joined = pc.binary_join_element_wise(*parts, separator)
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, np.int32)[joined.offset :]
    return bytes(data[int(ends[0]) : int(ends[len(joined)])]) if data is not None else b""


def _write_text(pieces: Iterable[bytes], target: Path | TextIO | BinaryIO | None) -> None:
    if isinstance(target, Path):
        with _new_file(target, "text") as path, path.open("wb") as file:
            file.writelines(pieces)
        return
    stream = sys.stdout if target is None else target
    for piece in pieces:
        if isinstance(stream, io.TextIOBase):
            stream.write(piece.decode())
        else:
            cast(BinaryIO, stream).write(piece)
    stream.flush()


# --- files -----------------------------------------------------------------------------------------------


@contextmanager
def _new_file(target: Path | TextIO | BinaryIO | None, format: str) -> Iterator[Path]:
    """A place to write to, which becomes the target when all went well, and otherwise leaves no trace.

    What is not an ordinary file, such as a pipe or a device, is written to directly.
    """
    if not isinstance(target, Path):
        raise UserError(f"{format} cannot be printed", hint="write it to a file")
    place = target.resolve()
    if place.is_dir():
        raise UserError(f"{target} is a folder", hint="name a file in it")
    if not place.parent.is_dir():
        raise UserError(f"{target}: there is no folder {place.parent}", hint="make the folder first")
    try:
        # Asked of the target: what /dev/stdout leads to has no path where it is a pipe.
        if target.exists() and not target.is_file():
            yield target
            return
        unfinished = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            yield unfinished
            unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror or error}") from error
