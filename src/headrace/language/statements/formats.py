"""What streams and relations can be read from."""

from __future__ import annotations

from enum import Enum
from typing import Final

FILE_FORMATS: Final = ("parquet", "csv", "json", "arrow", "orc", "avro", "text")
"""The formats that are read from a file or a folder."""

_ENDINGS: Final = {"txt": "text", "log": "text"}

SPLIT_FORMATS: Final = (*FILE_FORMATS, "nexmark")
"""The formats of bounded input, any part of which can be read on its own."""

FORMATS: Final = (*SPLIT_FORMATS, "push")
"""The formats a stream can be read from; any other name is one of Spark's streaming formats."""


class ChangeRecords(Enum):
    """How records of changes are read that are not rows with an operation themselves.

    Those of Debezium have the row before and after a change each; those of upserts are messages of Kafka.
    """

    BY_KEY = "by key"
    """As what happens to a key: of an update the row after it, of a deletion the one before it."""
    BY_ROW = "by row"
    """As what is taken back, the row before, and what is added, the row after."""
    UPSERT = "upsert"
    """As the row of the key of a message: its value, or none any more where it has no value."""


def format_of_ending(ending: str) -> str | None:
    """The format of files whose names end so; None if that says nothing.

    Args:
        ending: such as `csv`, in any case.
    """
    form = _ENDINGS.get(ending.lower(), ending.lower())
    return form if form in FILE_FORMATS else None
