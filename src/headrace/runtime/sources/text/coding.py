"""How the bytes of a text file become lines of UTF-8: compression, encoding, and how JSON is laid out."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import numpy as np
import pyarrow as pa

from headrace.errors import SourceError
from headrace.runtime.sources.files.remote import Place, RemoteFile
from headrace.runtime.sources.text.layout import LINES, begun, laid_out

OPTIONS: Final = ("compression", "encoding")
"""The options of text files that say it."""

_PIECE: Final = 2**18
_ENDINGS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".lz4": "lz4"}
"""By the end of a file's name how it is compressed."""
_COMPRESSIONS: Final = ("none", *_ENDINGS.values())
_UTF8: Final = "utf-8"
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""By the byte order mark how a file is encoded."""
_LONGEST_MARK: Final = 4
_UNREADABLE: Final = "headrace.unreadable"
codecs.register_error(_UNREADABLE, lambda error: ("\udcff", cast(UnicodeDecodeError, error).end))


@dataclass(frozen=True)
class Coding:
    """How a file is written.

    Attributes:
        compression: its name, or `none`.
        encoding: the name of a codec of Python's.
        layout: one of `layout.LINES`, `SPREAD` and `ARRAY`.
        is_sequential: whether the file can only be read from its beginning, wherever it is.
    """

    compression: str = "none"
    encoding: str = _UTF8
    layout: int = LINES
    is_sequential: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are its lines, so that any part of it can be read."""
        return self == PLAIN

    def open(self, path: Place) -> BinaryIO:
        """The lines of a file as UTF-8.

        Raises:
            OSError: it cannot be read, now or later.
        """
        file: BinaryIO = _decompressed(path, self.compression)
        if self.encoding != _UTF8:
            file = cast(BinaryIO, _Changed(file, _recoded(self.encoding)))
        if self.layout != LINES:
            file = cast(BinaryIO, _Changed(file, _relaid(self.layout)))
        return file if self.is_plain else cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, file), _PIECE))


PLAIN: Final = Coding()
"""Lines of UTF-8."""


@dataclass(frozen=True)
class Codings:
    """What the options say of all files of a source.

    Attributes:
        compression: its name, or None where the end of a file's name says it.
        encoding: the name of a codec, or None for UTF-8, if there is no byte order mark of another one.
    """

    compression: str | None
    encoding: str | None

    def of(self, path: Place) -> Coding:
        """How a file is written, as far as its name and its first bytes say.

        Raises:
            OSError: it cannot be read.
        """
        compression = self.compression or _ENDINGS.get(path.suffix.lower(), "none")
        sequential = isinstance(path, RemoteFile) and path.is_sequential
        found = Coding(compression, is_sequential=sequential)
        if self.encoding is not None:
            return replace(found, encoding=self.encoding)
        with found.open(path) as file:
            begin = file.read(_LONGEST_MARK)
        marked = (encoding for mark, encoding in _MARKS if begin.startswith(mark))
        return replace(found, encoding=next(marked, _UTF8))


def codings_of(options: Mapping[str, str]) -> Codings:
    """What the options `compression` and `encoding` say.

    Raises:
        SourceError: an option is wrong.
    """
    compression = options.get("compression")
    if compression is not None and compression.lower() not in _COMPRESSIONS:
        raise SourceError(
            f"the option compression is '{compression}'", hint=f"it must be one of {', '.join(_COMPRESSIONS)}"
        )
    encoding = options.get("encoding")
    return Codings(compression and compression.lower(), None if encoding is None else _codec(encoding))


def without_compression(path: Path) -> Path:
    """A path without the ending that says how the file is compressed."""
    return path.with_suffix("") if path.suffix.lower() in _ENDINGS else path


def _codec(name: str) -> str:
    """The name of a codec of text.

    Raises:
        SourceError: there is none of that name.
    """
    try:
        known = codecs.lookup(name)
        "".encode(known.name)
    except (LookupError, ValueError):
        hint = "write such as 'utf-8', 'utf-16', 'iso-8859-1' or 'windows-1252'"
        raise SourceError(f"the option encoding is '{name}'", hint=hint) from None
    return known.name


def _decompressed(path: Place, compression: str) -> BinaryIO:
    if compression == "none":
        return path.open("rb")
    file: Any = path if isinstance(path, Path) else path.open()
    match compression:
        case "gzip":
            return cast(BinaryIO, _Checked(gzip.open(file)))
        case "bz2":
            return cast(BinaryIO, _Checked(bz2.open(file)))
        case "xz":
            return cast(BinaryIO, _Checked(lzma.open(file)))
        case other:
            native = path.open_native() if isinstance(path, RemoteFile) else pa.OSFile(str(path))
            stream = pa.CompressedInputStream(native, other)
            return cast(BinaryIO, _Checked(stream))


class _Readable(Protocol):
    """What is read of a file."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class _Checked(io.RawIOBase):
    """A file whose reading fails with an OSError, whatever a decompressor raises."""

    def __init__(self, file: _Readable) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            piece = self._file.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, ValueError) as error:
            raise OSError(f"the compressed file is damaged: {error}") from error
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Changed(io.RawIOBase):
    """A file whose bytes go through a function, piece by piece; it is called a last time at the end."""

    def __init__(self, file: BinaryIO, change: Callable[[bytes, bool], bytes]) -> None:
        self._file = file
        self._change = change
        self._left = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left and not self._ended:
            piece = self._file.read(_PIECE)
            self._ended = not piece
            self._left = self._change(piece, self._ended)
        taken, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._file.close()
        super().close()


def _recoded(encoding: str) -> Callable[[bytes, bool], bytes]:
    """From an encoding to UTF-8; what is not text in it becomes bytes that are not text in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)(_UNREADABLE)
    return lambda piece, last: decoder.decode(piece, last).encode(_UTF8, "surrogatepass")


def _relaid(layout: int) -> Callable[[bytes, bool], bytes]:
    """To one object per line."""
    state = begun()
    return lambda piece, _: laid_out(np.frombuffer(piece, np.uint8), layout, state).tobytes()
