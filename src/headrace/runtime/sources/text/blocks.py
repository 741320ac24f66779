"""Ranges of bytes of a text file as blocks of whole lines, and where in the file a byte is.

A line belongs to the range in which it starts. Lines end with a line feed; a carriage return before it is
not part of the line; the last line need not be ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Final

import numpy as np

from headrace.elements import Int64Array
from headrace.runtime.sources.files.files import mark_of, overlaps
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import TEXT_LIMIT, Rejected
from headrace.runtime.sources.rows.rows import changed
from headrace.runtime.sources.text.coding import PLAIN, Coding

BLOCK_BYTES: Final = 4 * 2**20
"""About how many bytes are parsed at once."""

COUNTED_BYTES: Final = 16 * 2**20
"""Up to this byte of a file, rejected rows are placed by line; beyond, by byte: lines must be counted."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_NEWLINE: Final = 10
_SEARCH_BYTES: Final = 2**16


@dataclass(frozen=True)
class TextPart:
    """One text file of a source.

    Attributes:
        path: where it is.
        label: its name to show.
        size: its bytes.
        body: the byte at which its rows begin, after a byte order mark or a header.
        coding: how it is written. Unless that is plain, its rows belong to its first byte, and `body` and the
            offsets of blocks are in the lines that it has as UTF-8.
    """

    path: Place
    label: str
    size: int
    body: int
    coding: Coding = PLAIN


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of a file.

    Attributes:
        part: the file.
        offset: the byte of the file at which `data` starts.
        data: the lines.
    """

    part: TextPart
    offset: int
    data: bytes

    def reject(self, start: int, end: int, reason: str) -> Rejected:
        """The row in `data[start:end]` as a dead letter."""
        read = self.data[start : min(end, start + 4 * TEXT_LIMIT)].decode("utf-8", "replace")
        text = read[:TEXT_LIMIT]
        if end - start > 4 * TEXT_LIMIT or len(read) > TEXT_LIMIT:
            text = f"{text}... ({end - start} bytes in all)"
        return Rejected(text, reason, self.place(start))

    def place(self, start: int) -> str:
        """Where the row is that begins at a byte of `data`."""
        return f"{self.part.label}:{self._place(start)}"

    def _place(self, start: int) -> str:
        byte = self.offset + start
        if byte >= COUNTED_BYTES:
            return f"byte {byte}"
        return str(self._lines_before + int(np.searchsorted(self._line_ends, start)) + 1)

    @cached_property
    def _line_ends(self) -> Int64Array:
        return np.flatnonzero(np.frombuffer(self.data, np.uint8) == _NEWLINE)

    @cached_property
    def _lines_before(self) -> int:
        with self.part.coding.open(self.part.path) as file:
            return file.read(self.offset).count(b"\n")


def line_blocks(part: TextPart, first: int, last: int) -> Iterator[Block]:
    """The lines that start in the bytes `[first, last)` of the file, from its body on.

    Raises:
        OSError: the file cannot be read.
        SourceError: the file has become shorter.
    """
    if not part.coding.is_plain:
        if first == 0:
            yield from _decoded_blocks(part)
        return
    with part.path.open("rb") as file:
        at = max(_line_start(file, first, part.size), part.body)
        end = _line_start(file, last, part.size)
        while at < end:
            stop = _line_start(file, at + BLOCK_BYTES, part.size) if end - at > BLOCK_BYTES else end
            yield Block(part, at, read_bytes(file, part, at, stop))
            at = stop


def decoded_bytes(part: TextPart) -> bytes:
    """All lines of the file as UTF-8, from its body on.

    Raises:
        OSError: the file cannot be read.
        SourceError: it has another size.
    """
    _check_size(part)
    with part.coding.open(part.path) as file:
        file.read(part.body)
        return file.read()


def _decoded_blocks(part: TextPart) -> Iterator[Block]:
    """All lines of a file that can only be read from its beginning."""
    _check_size(part)
    with part.coding.open(part.path) as file:
        at, left = part.body, b""
        file.read(part.body)
        while piece := file.read(BLOCK_BYTES):
            left += piece
            end = left.rfind(b"\n") + 1
            if end:
                yield Block(part, at, left[:end])
                at, left = at + end, left[end:]
        if left:
            yield Block(part, at, left)


def _check_size(part: TextPart) -> None:
    """Refuse a file that is another one than when it was opened.

    Raises:
        SourceError: it has another size.
    """
    if part.path.stat().st_size != part.size:
        raise changed(part.label)


def read_bytes(file: BinaryIO, part: TextPart, start: int, end: int) -> bytes:
    """The bytes `[start, end)` of the file.

    Raises:
        SourceError: the file has become shorter.
    """
    file.seek(start)
    data = file.read(end - start)
    if len(data) < end - start:
        raise changed(part.label)
    return data


def _line_start(file: BinaryIO, byte: int, size: int) -> int:
    """The first byte at or after `byte` at which a line starts, or the file's size."""
    if byte <= 0:
        return 0
    at = byte - 1
    file.seek(at)
    while at < size:
        data = file.read(_SEARCH_BYTES)
        if not data:
            break
        found = data.find(b"\n")
        if found >= 0:
            return min(at + found + 1, size)
        at += len(data)
    return size


def weigh_parts(parts: Sequence[TextPart], start: int, end: int, *, whole: bool = False) -> int:
    """Bytes of the rows of the positions `[start, end)` of files laid end to end.

    Args:
        parts: the files.
        start, end: the positions.
        whole: whether all of them are read as a whole.
    """
    found = 0
    for index, first, last in overlaps([part.size for part in parts], start, end):
        as_whole = whole or not parts[index].coding.is_plain
        found += last - first if not as_whole else parts[index].size if first == 0 else 0
    return found


def mark_parts(parts: Sequence[TextPart], position: int, *, whole: bool = False) -> str:
    """Identifies files laid end to end up to a byte; all of the last one if it is read as a whole.

    Args:
        parts: the files.
        position: the byte.
        whole: whether all of them are read as a whole.
    """
    whole = whole or any(not part.coding.is_plain for part in parts)
    return mark_of([(part.path, part.size) for part in parts], position, whole=whole)


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
