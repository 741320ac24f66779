"""The columns of Debezium's change records: those of the table, and what the record says beside them.

The latter are called as Debezium's own flattening calls them (*New Record State Extraction*, option
`add.fields`): two underscores, and the path of the field.
"""

from __future__ import annotations

from typing import Final

from headrace.schema import STRING, TIMESTAMP, Field, Schema

OPERATION: Final = "__op"
"""What a record does: create, update, delete, or read the row for a snapshot."""

CHANGED_AT: Final = "__source_ts_ms"
"""When the change was made in the database."""

_MARK: Final = "__"
_STRUCTS: Final = ("source", "transaction")


def record_columns(columns: Schema, timestamp: str) -> Schema:
    """The columns of a table with those of its records that a stream of them needs.

    Args:
        columns: those of the table, and perhaps others of the records.
        timestamp: the column of the records that the stream is timed by.
    """
    added = ((OPERATION, STRING), (timestamp, TIMESTAMP))
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
