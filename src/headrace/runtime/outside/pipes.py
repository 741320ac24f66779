"""Standard input and named pipes: what they give is there once, until whoever writes closes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, Final

from headrace.errors import SourceError
from headrace.runtime.outside.trouble import reading

STANDARD: Final = "standard input"
"""What messages call it."""

_STANDARD: Final = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_KIND: Final = "pipe"


def is_standard(path: str) -> bool:
    """Whether a path names the standard input of this process."""
    return path in _STANDARD


def is_pipe(path: str, place: Path) -> bool:
    """Whether a path names standard input, or a named pipe.

    Args:
        path: as it is written.
        place: where that is.
    """
    try:
        return is_standard(path) or place.is_fifo()
    except OSError:
        # Whoever opens it says what is wrong with the name.
        return False


def name_of(path: str, place: Path) -> str:
    """The name of a pipe to show, which can be that of a file."""
    return STANDARD if is_standard(path) else place.name


def opened_pipe(path: str, place: Path) -> BinaryIO:
    """The bytes of a pipe; a named one is waited for until somebody writes into it.

    Raises:
        SourceError: there is none, or nothing is sent into it.
    """
    if not is_standard(path):
        with reading(path, _KIND):
            return place.open("rb")
    hint = "send rows into it: cat rows.csv | headrace run queries.sql"
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("there is no standard input", hint=hint)
    if sys.stdin.isatty():
        raise SourceError("standard input is the keyboard", hint=hint)
    return sys.stdin.buffer
