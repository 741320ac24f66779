"""What CREATE STREAM and CREATE RELATION say of rows that change others, checked against the columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from headrace.algebra.changes import Changes
from headrace.algebra.debezium import path_in_record
from headrace.algebra.events import Events
from headrace.errors import LanguageError, Position
from headrace.language.statements.formats import ChangeRecords
from headrace.language.statements.streams import CreateStream, EventsClause
from headrace.language.syntax import Name
from headrace.schema import BIGINT, STRING, Field, Schema, sql_type, unique_names
from headrace.suggestions import did_you_mean

_PERIOD: Final = "a period is bounded by two TIMESTAMPs or by two BIGINTs"


def named_column(relation: str, columns: Schema, name: Name) -> Field:
    """A column of a stream or a relation by its name.

    Raises:
        LanguageError: there is none.
    """
    place = columns.find(name.text)
    if place is None:
        hint = did_you_mean(name.text, columns.names) or f"the columns are {columns}"
        raise LanguageError(f"{relation} has no column {name.text}", position=name.position, hint=hint)
    return columns[place]


def changes_by_key(
    name: str, columns: Schema, operation: Name, key: Sequence[Name], version: Name | None
) -> Changes:
    """How rows change others by key.

    Args:
        name: the stream or the relation.
        columns: those that its rows come with.
        operation: the column with the operation.
        key: the columns that say which row is changed.
        version: the column that orders the changes of a key at one instant, or None.

    Raises:
        LanguageError: a column is missing, or cannot be what it is named for.
    """
    named = partial(named_column, name, columns)
    found = named(operation)
    if found.type != STRING:
        raise LanguageError(
            f"the column {found.name} is {sql_type(found.type)}",
            position=operation.position,
            hint="CHANGES BY takes a STRING: insert, update or delete, or I, U or D",
        )
    for other in (*key, *(() if version is None else (version,))):
        if named(other) == found:
            raise LanguageError(
                f"{found.name} says what a row changes, and cannot be the key or the version",
                position=other.position,
                hint="name another column",
            )
    keys = tuple(named(part).name for part in key)
    *_, arrived = unique_names([*columns.names, "arrived"])
    return Changes(found.name, keys, None if version is None else named(version).name, arrived)


def changes_of_stream(statement: CreateStream, columns: Schema, timestamp: Field) -> Changes | Events | None:
    """What the rows of a stream change, and how long they are valid; None for chronons that change nothing.

    Args:
        statement: the statement.
        columns: those that its rows come with.
        timestamp: the one that it is timed by.

    Raises:
        LanguageError: a column is missing, or cannot be what it is named for.
    """
    clause = statement.events
    if clause is None:
        return None
    if statement.records is ChangeRecords.BY_ROW:
        _check_rows_alone(clause, columns, timestamp, statement.timestamp_position)
    if statement.key:
        assert clause.change is not None, "the parser sees to it"
        return changes_by_key(statement.name, columns, clause.change, statement.key, clause.version)
    return _events(statement.name, clause, columns, timestamp)


def _check_rows_alone(clause: EventsClause, columns: Schema, timestamp: Field, position: Position) -> None:
    """Refuse columns of a record in rows that the next record takes back, since it has others there."""
    known = {timestamp.name, *(part.text for part in (clause.change, clause.version) if part is not None)}
    for name in columns.names:
        if path_in_record(name) is not None and name not in known:
            raise LanguageError(
                f"{name} is of the record, so that a row and its correction differ in it",
                position=position,
                hint="leave it out, or write KEY (column) before FROM",
            )


def _events(name: str, clause: EventsClause, columns: Schema, timestamp: Field) -> Events:
    """How events say when they are valid, and what they take back."""
    used = {timestamp.name: f"{timestamp.name} says when a row begins"}
    found: dict[str, str | None] = {}
    for part in _ROLES:
        one: Name | None = getattr(clause, part)
        if one is None:
            continue
        column = named_column(name, columns, one)
        if column.name in used:
            raise LanguageError(
                f"{used[column.name]}, and cannot be {_ROLES[part]}",
                position=one.position,
                hint="name another column",
            )
        _check_type(part, one, column, timestamp)
        if part == "change" and clause.shortened is not None and column.type != STRING:
            raise LanguageError(
                f"the column {column.name} is {sql_type(column.type)}",
                position=one.position,
                hint="a row of a physical stream is of type 'Insert', 'Retract' or 'CTI', a STRING",
            )
        used[column.name], found[part] = f"{column.name} is {_ROLES[part]}", column.name
    return Events(clause.lasting, **found)


_ROLES: Final = {
    "ends": "the end of a row",
    "change": "the change",
    "version": "the version",
    "shortened": "the new end",
    "counts": "the count",
}


def _check_type(part: str, name: Name, column: Field, timestamp: Field) -> None:
    if part in ("ends", "shortened") and column.type != timestamp.type:
        raise LanguageError(
            f"{timestamp.name} is {sql_type(timestamp.type)}, and {column.name} {sql_type(column.type)}",
            position=name.position,
            hint=_PERIOD,
        )
    if part == "counts" and column.type != BIGINT:
        raise LanguageError(
            f"the column {column.name} is {sql_type(column.type)}",
            position=name.position,
            hint="COUNT BY takes a BIGINT: how many rows an external CTI counts",
        )
    if part == "change" and column.type not in (STRING, BIGINT):
        raise LanguageError(
            f"the column {column.name} is {sql_type(column.type)}",
            position=name.position,
            hint="CHANGES BY takes a STRING, insert or delete, or a BIGINT, 1 or -1",
        )
