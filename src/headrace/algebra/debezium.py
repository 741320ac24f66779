"""The columns of records of changes: those of the table, and what the record says beside them.

The latter are those of a message where it is an upsert. Of Debezium's records they are called as Debezium's
own flattening calls them (*New Record State Extraction*, option `add.fields`): two underscores, and the path
of the field.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema

OPERATION: Final = "__op"
"""What a record does: create, update, delete, or read the row for a snapshot."""

CHANGED_AT: Final = "__source_ts_ms"
"""When the change was made in the database."""

UPSERT_OPERATION: Final = "_op"
"""What a message of upserts does: update or delete."""

SENT_AT: Final = "_timestamp"
"""When a message was sent."""

PARTITION: Final = "_partition"
"""The column with the partition of a message."""

_MARK: Final = "__"
_STRUCTS: Final = ("source", "transaction")


def upsert_columns(columns: Schema) -> Schema:
    """The columns of a table with those of messages that a stream of upserts needs.

    Args:
        columns: those of the table, and perhaps others of messages.
    """
    return _joined(columns, (UPSERT_OPERATION, STRING), (SENT_AT, TIMESTAMP), (PARTITION, BIGINT))


def record_columns(columns: Schema, timestamp: str) -> Schema:
    """The columns of a table with those of its records that a stream of them needs.

    Args:
        columns: those of the table, and perhaps others of the records.
        timestamp: the column of the records that the stream is timed by.
    """
    return _joined(columns, (OPERATION, STRING), (timestamp, TIMESTAMP))


def _joined(columns: Schema, *added: tuple[str, pa.DataType]) -> Schema:
    new = (Field(name, dtype) for name, dtype in added if columns.find(name) is None)
    return Schema((*columns, *new))


def path_in_record(column: str) -> tuple[str, ...] | None:
    """Where in a record a column is, or None for a column of the table."""
    if not column.startswith(_MARK):
        return None
    name = column.removeprefix(_MARK)
    for struct in _STRUCTS:
        if name.startswith(f"{struct}_"):
            return struct, name.removeprefix(f"{struct}_")
    return (name,)
