"""Columns that rows come with and that their stream does not have: they are left out, which is noted."""

from __future__ import annotations

import logging
from typing import Final

from headrace.language.names import quoted_name

_MOST_NOTED: Final = 1_000
_LOG: Final = logging.getLogger("headrace")

_noted: Final[set[tuple[str, str]]] = set()
"""The columns of which this process has noted that they are left out, with their streams."""


def statement_for(stream: str, column: str) -> str:
    """The statement that gives a stream a further column, but for its type."""
    return f"ALTER STREAM {quoted_name(stream)} ADD COLUMN {quoted_name(column)} TYPE"


def note_left_out(stream: str, column: str, where: str = "") -> None:
    """Note once in the log that the values of a column are left out.

    Args:
        stream: the stream.
        column: the column, which it does not have.
        where: what its rows come in, such as a file; empty where nobody would find it.
    """
    if (stream, column) in _noted or len(_noted) >= _MOST_NOTED:
        return
    _noted.add((stream, column))
    what = f"{where}: " if where else ""
    _LOG.warning(
        "%srows for %s come with %s, which is left out: %s keeps it",
        *(what, stream, column, statement_for(stream, column)),
    )
