"""The dead letters of a stream as a stream of their own: what it is called, and which columns it has.

The columns of the stream come first, NULL where a row did not parse; those that say what happened to the row
follow. Where the stream has a column of such a name, the name gets a number, as `reason_2`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema, unique_names

_PREFIX: Final = "dead letters of "

_ADDED: Final[tuple[tuple[str, pa.DataType], ...]] = (
    ("set_apart_at", TIMESTAMP),
    ("epoch", BIGINT),
    ("reason", STRING),
    ("query", STRING),
    ("place", STRING),
    ("row_text", STRING),
    ("noted_at", TIMESTAMP),
)

LETTER_COLUMNS: Final = frozenset(name for name, _ in _ADDED)
"""What the columns are called that a dead letter has besides those of its stream."""


def letters_name(stream: str) -> str:
    """What the stream of a stream's dead letters is called in the catalog."""
    return _PREFIX + stream


def stream_of_letters(name: str) -> str | None:
    """The stream whose dead letters a stream consists of, or None where it is another one."""
    return name[len(_PREFIX) :] if name.lower().startswith(_PREFIX) else None


def letters_schema(columns: Schema) -> Schema:
    """The columns of a dead letter: those of its stream, and what happened to the row.

    That is the clock's reading of the epoch that set it apart, the epoch's number, the reason, the queries
    that do without the row (NULL for all), the place in the input, and the row as text.

    Args:
        columns: all columns of the stream.
    """
    return Schema(_named(columns).fields[:-1])


def noted_at(columns: Schema) -> str:
    """The column that the stream of letters is timed by: when it brought the letter.

    Args:
        columns: all columns of the stream.
    """
    return _named(columns).fields[-1].name


def _named(columns: Schema) -> Schema:
    names = unique_names([*columns.names, *(name for name, _ in _ADDED)])[len(columns) :]
    added = (Field(name, dtype) for name, (_, dtype) in zip(names, _ADDED, strict=True))
    return Schema((*columns, *added))
