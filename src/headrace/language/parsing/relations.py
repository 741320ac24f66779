"""`CREATE RELATION ... FROM format`: the columns, key, options and periods of a table."""

from __future__ import annotations

from typing import Final

from headrace.errors import LanguageError, Position
from headrace.language.catalog import describe_relation
from headrace.language.parsing.cursor import Cursor
from headrace.language.parsing.ddl import parse_columns, parse_input
from headrace.language.statements import FILE_FORMATS, CreateRelation
from headrace.language.syntax import Name

_WRITTEN: Final = "write CREATE RELATION name (columns) KEY (column) FROM format OPTIONS (path '...')"
_LISTED: Final = ", ".join(FILE_FORMATS)


def parse_create_relation(cursor: Cursor, name: Name, position: Position) -> CreateRelation:
    """Read what follows `CREATE RELATION name`.

    Raises:
        LanguageError: the text is malformed, or the parts do not fit each other.
    """
    if cursor.at("AS"):
        hint = f"write CREATE STREAM {name.text} AS SELECT ...; queries use it like a view"
        raise cursor.error("a relation is not derived from a query", hint)
    begin = cursor.position
    columns, watermark = parse_columns(cursor) if cursor.at("(") else (None, None)
    if watermark is not None:
        hint = "leave it out, or write CREATE STREAM for rows that have a time"
        raise LanguageError("a relation has no watermark", position=begin, hint=hint)
    key = _key(cursor)
    form, options = parse_input(cursor, columns, "relation", _WRITTEN)
    if form.text.lower() not in FILE_FORMATS:
        raise LanguageError(
            f"a relation cannot be read from {form.text}",
            position=form.position,
            hint=f"the formats are {_LISTED}; db.relation(name, frame) takes what Spark can read",
        )
    statement = CreateRelation(name.text, columns, key, form.text.lower(), options, _valid(cursor), position)
    if columns is not None:
        # The columns are checked now, so that the error comes before any input is opened.
        describe_relation(statement, columns)
    return statement


def _key(cursor: Cursor) -> tuple[Name, ...]:
    if not (cursor.accept("KEY") or cursor.accept("PRIMARY KEY")):
        return ()
    cursor.expect("(", "after KEY")
    names = [cursor.name("a column of the key")]
    while cursor.accept(","):
        names.append(cursor.name("a column of the key"))
    cursor.expect(")", "after the key")
    return tuple(names)


def _valid(cursor: Cursor) -> tuple[Name, Name] | None:
    if cursor.at("TIMESTAMP", "BY") or cursor.at("ORDERED", "BY"):
        hint = "leave it out, write VALID FROM a TO b for rows with a period, or CREATE STREAM for events"
        raise cursor.error("a relation is not timed by a column", hint)
    if not cursor.accept("VALID"):
        return None
    cursor.expect("FROM", "after VALID")
    begin = cursor.name("the column that begins a row's period")
    cursor.expect("TO", f"after VALID FROM {begin.text}")
    return begin, cursor.name("the column that ends a row's period")
