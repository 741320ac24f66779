"""Standard input and named pipes that are followed: lines count as they come, until the writer is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

from headrace.errors import HeadraceError, SourceError, UserError
from headrace.runtime.intake.pulling import EndOfRowsError, FailedError, PulledPiece
from headrace.runtime.outside.pipes import is_standard, name_of, opened_pipe
from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.composed.computed import ComputedSource
from headrace.runtime.sources.composed.unreadable import UnreadableFile
from headrace.runtime.sources.files.patterns import plain_path
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import flag, required, whole
from headrace.runtime.sources.text.layout import LINES
from headrace.runtime.sources.text.line_source import LineSource
from headrace.schema import Schema

FORMATS: Final = ("csv", "json", "text")
"""The formats whose rows are lines."""

_PIECE: Final = 2**18
_LONGEST: Final = 2**28
"""A line has fewer bytes."""

OpenedIn = Callable[[str, Path], SplitSource]
"""From a file's name, and its folder, to what reads it."""


@dataclass(frozen=True)
class Head:
    """The lines before the first row, which each piece needs.

    Attributes:
        skipped: so many lines.
        has_header: whether the first row after them names the columns.
        comment: how lines begin that are no rows; empty if all are.
    """

    skipped: int = 0
    has_header: bool = False
    comment: str = ""

    def cut(self, data: bytes) -> bytes | None:
        """The lines at the beginning of some data; None if they are not all there."""
        at, lines, is_found = 0, 0, not self.has_header
        while lines < self.skipped or not is_found:
            end = data.find(b"\n", at)
            if end < 0:
                return None
            line, at = data[at:end].strip(), end + 1
            is_row = bool(line) and not (self.comment and line.startswith(self.comment.encode()))
            is_found = is_found or (lines >= self.skipped and is_row)
            lines += 1
        return data[:at]


class PipePull:
    """The lines of a pipe, until it ends.

    What was read and is not in a commit when the process ends is gone: nobody can give it again.

    Args:
        path: the pipe, as it is written.
        place: where that is.
        head: what is before the first row.
        schema: the columns.
        opened: opens some lines that were written to a file.
    """

    every = 0.0
    drains = True
    together = True

    def __init__(self, path: str, place: Path, head: Head, schema: Schema, opened: OpenedIn) -> None:
        self._path = path
        self._place = place
        self._name = name_of(path, place)
        self._rule = head
        self._schema = schema
        self._opened = opened
        self._file: BinaryIO | None = None
        self._head: bytes | None = None
        self._left = b""
        self._lines = 0
        self._ended = False

    def pull(self, last: int | None) -> PulledPiece | None:
        """The next lines."""
        try:
            if self._file is None:
                self._file = opened_pipe(self._path, self._place)
            with reading(self._name, "pipe"):
                data = self._next(self._file)
            first = self._head is None
            if first:
                data = self._behind_head(data)
            if not data:
                raise EndOfRowsError
            piece = self._piece(data)
            if first:
                self._check(piece)
        except HeadraceError as error:
            raise FailedError(error.message, hint=error.hint) from error
        return piece

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        """What reads some lines; as a whole a dead letter if they are not of their format."""
        before, head, _ = pieces[0].content
        name = self._name if before == 0 else f"{self._name}, after line {before}"
        path.mkdir()
        (path / name).write_bytes(head + b"".join(one.content[2] for one in pieces))
        try:
            return _as_lines(self._opened(name, path))
        except UserError as error:
            return UnreadableFile(self._schema, name, error.message)

    def end(self) -> None:
        """Close a named pipe, which begins anew when it is opened next; standard input goes on."""
        if self._file is not None and not is_standard(self._path):
            self._file.close()
            self._file, self._head, self._left, self._lines = None, None, b"", 0

    def _next(self, file: Any) -> bytes:
        """Whole lines, at least one if any comes; nothing at the end."""
        while not self._ended:
            piece = file.read1(_PIECE)
            self._left += piece
            self._ended = not piece
            end = self._left.rfind(b"\n") + 1
            if end and (self._head is not None or self._rule.cut(self._left) is not None):
                found, self._left = self._left[:end], self._left[end:]
                return found
            if len(self._left) >= _LONGEST:
                raise SourceError(f"{self._name}: a line has {_LONGEST:,} bytes or more")
        found, self._left = self._left, b""
        return found

    def _behind_head(self, data: bytes) -> bytes:
        """The lines behind the head, which is kept."""
        found = self._rule.cut(data)
        self._head = data if found is None else found
        return data[len(self._head) :] or (self._next(self._file) if not self._ended else b"")

    def _piece(self, data: bytes) -> PulledPiece:
        rows = data.count(b"\n") + (not data.endswith(b"\n"))
        found = PulledPiece((self._lines, self._head or b"", data), rows, len(data))
        self._lines += rows
        return found

    def _check(self, piece: PulledPiece) -> None:
        """Refuse a pipe whose columns or format are others.

        Raises:
            UserError: they are.
        """
        with TemporaryDirectory(prefix="headrace-") as folder:
            path = Path(folder, self._name)
            path.write_bytes(piece.content[1] + piece.content[2])
            self._opened(self._name, path.parent)


def open_pipe(
    form: str, options: Mapping[str, str], base: Path, schema: Schema, opened: OpenedIn
) -> PipePull:
    """What reads the pipe that the option `path` names; it is not read yet.

    Raises:
        SourceError: its format has no lines, or an option is not for pipes.
    """
    if form not in FORMATS:
        hint = f"leave out follow: it is read to its end then; {', '.join(FORMATS)} are followed"
        raise SourceError(f"{form} cannot be read from a pipe line by line", hint=hint)
    for name in ("ready", "poll"):
        if name in options:
            raise SourceError(f"the option {name} is for folders that are followed", hint="leave it out")
    if flag(options, "multiline", False) or options.get("compression", "none").lower() != "none":
        hint = "leave out follow: it is read to its end then, or unpack it before: zcat rows.csv.gz | ..."
        raise SourceError("a pipe that is followed is read line by line", hint=hint)
    if not _has_line_feeds(options.get("encoding", "utf-8")):
        raise SourceError("lines of this encoding do not end with the byte of a line feed", hint="send UTF-8")
    has_header = form == "csv" and flag(options, "header", True)
    head = (
        Head(whole(options, "skip", 0), has_header, options.get("comment", "")) if form == "csv" else Head()
    )
    with TemporaryDirectory(prefix="headrace-") as folder:
        # Options that the format does not have are found now, and not with the first line.
        Path(folder, "empty").touch()
        opened("empty", Path(folder))
    path = required(options, "path")
    return PipePull(path, base / plain_path(path), head, schema, opened)


def _has_line_feeds(encoding: str) -> bool:
    try:
        return "\n".encode(encoding) == b"\n"
    except LookupError:
        return True  # what is no encoding is refused where it is opened


def _as_lines(source: SplitSource) -> SplitSource:
    """The same, with one row per line, whatever its beginning looks like."""
    match source:
        case LineSource(parts=parts):
            return replace(
                source, parts=tuple(replace(one, coding=replace(one.coding, layout=LINES)) for one in parts)
            )
        case ComputedSource():
            return replace(source, input=_as_lines(source.input))
        case _:
            return source
