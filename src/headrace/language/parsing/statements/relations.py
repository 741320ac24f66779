"""`CREATE RELATION ... FROM format`: the columns, key, options, periods and changes of a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.errors import LanguageError, Position
from headrace.language.catalog import describe_relation
from headrace.language.parsing.statements.corrections import Watermark, parse_key, parse_timestamp
from headrace.language.parsing.statements.ddl import parse_columns, parse_input
from headrace.language.parsing.statements.debezium import (
    accept_records,
    columns_with_records,
    parse_record_columns,
)
from headrace.language.parsing.statements.time_clauses import parse_time_clauses, parse_wall_clock
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.formats import FILE_FORMATS, FORMATS, ChangeRecords
from headrace.language.statements.streams import (
    NOTHING_SAID,
    ChangesClause,
    ComputedColumn,
    CreateRelation,
    CreateStream,
    RefreshClause,
    TimeClauses,
    is_topic,
)
from headrace.language.syntax import Name
from headrace.schema import Schema

_WRITTEN: Final = "write CREATE RELATION name (columns) KEY (column) FROM format OPTIONS (path '...')"
_CHANGES: Final = "CHANGES BY op TIMESTAMP BY ts"
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
    columns, watermark, computed = parse_columns(cursor) if cursor.at("(") else (None, None, ())
    if computed:
        hint = "compute it in the query"
        message = "a relation has no computed columns"
        raise LanguageError(message, position=computed[0].position, hint=hint)
    key = parse_key(cursor)
    form, options = parse_input(cursor, columns, "relation", _WRITTEN)
    kind = form.text.lower()
    changing_at = cursor.position
    changes = None
    if (cursor.at("CHANGES") or cursor.at("FORMAT", "DEBEZIUM")) and not key:
        hint = f"write KEY (column) before FROM {form.text}"
        raise LanguageError("changes are by key, and there is none", position=changing_at, hint=hint)
    if records := accept_records(cursor, form, options, keyed=bool(key)):
        make = partial(CreateStream, name.text, format=kind, options=options, key=key)
        changes = _records(cursor, watermark, columns, records, make)
        columns = changes.stream.columns
    elif cursor.accept("CHANGES"):
        changes = _changes(cursor, watermark, partial(CreateStream, name.text, columns, kind, options))
    elif watermark is not None:
        hint = "leave it out, or write CREATE STREAM for events, or CHANGES BY op for changes by key"
        raise LanguageError("a relation has no watermark", position=begin, hint=hint)
    elif is_topic(kind, options):
        raise LanguageError(
            "a relation is not read from the messages of a topic, which do not say what they change",
            position=form.position,
            hint="add the option form 'upsert' for a topic with the present row of each key, or write "
            f"{_CHANGES} for one of changes",
        )
    elif kind in FORMATS and kind not in FILE_FORMATS:
        raise LanguageError(
            f"a relation cannot be read from {form.text}",
            position=form.position,
            hint=f"the formats are {_LISTED} and Spark's, such as jdbc, or with {_CHANGES} those of streams",
        )
    valid = None if changes is not None else _valid(cursor)
    refresh = _refresh(cursor, is_constant=changes is None and valid is None)
    statement = CreateRelation(name.text, columns, key, kind, options, valid, position, changes, refresh)
    if columns is not None:
        # The columns are checked now, so that the error comes before any input is opened.
        describe_relation(statement, columns)
    return statement


def _changes(
    cursor: Cursor, watermark: Watermark | None, make_stream: Callable[..., CreateStream]
) -> ChangesClause:
    """Read what follows CHANGES; `make_stream` takes what comes last of a CREATE STREAM."""
    position = cursor.position
    cursor.expect("BY", "after CHANGES")
    operation = cursor.name("the column with the operation")
    timestamp, timed_at = parse_timestamp(cursor, watermark)
    if isinstance(timestamp, ComputedColumn):
        raise LanguageError(
            "the changes of a relation are timed by a column",
            position=timed_at,
            hint="write CREATE STREAM with KEY (column) for changes whose time is computed",
        )
    version = cursor.name("the column with the version") if cursor.accept("VERSION", "BY") else None
    time = parse_time_clauses(cursor, TimeClauses(watermark.behind) if watermark else NOTHING_SAID)
    if version is None and cursor.at("VERSION", "BY"):
        raise cursor.error(
            "VERSION BY follows TIMESTAMP BY", "write TIMESTAMP BY ts VERSION BY seq DISORDER 5 SECONDS"
        )
    return ChangesClause(operation, version, make_stream(timestamp, time, position, timed_at))


def _records(
    cursor: Cursor,
    watermark: Watermark | None,
    columns: Schema | None,
    records: ChangeRecords,
    make_stream: Callable[..., CreateStream],
) -> ChangesClause:
    """Read what follows `FORMAT DEBEZIUM`, or the options of upserts.

    `make_stream` takes what a CREATE STREAM has besides.
    """
    position = cursor.position
    timestamp, timed_at, events = parse_record_columns(cursor, records, watermark)
    assert events.change is not None
    stream = make_stream(
        columns=None if columns is None else columns_with_records(columns, records, timestamp),
        timestamp=timestamp,
        time=parse_time_clauses(cursor, NOTHING_SAID),
        position=position,
        timestamp_position=timed_at,
        records=records,
    )
    return ChangesClause(events.change, events.version, stream)


def _refresh(cursor: Cursor, *, is_constant: bool) -> RefreshClause | None:
    """Read REFRESH and what follows it, if it is there."""
    if cursor.at("REFRESH") and not is_constant:
        hint = (
            "leave it out: a refresh says which rows there are, and these say when they are valid themselves"
        )
        raise cursor.error("rows with periods and changes are not refreshed", hint)
    if not cursor.accept("REFRESH"):
        return None
    if cursor.accept("ON", "DEMAND"):
        return RefreshClause(None)
    if not cursor.accept("EVERY"):
        hint = "write REFRESH ON DEMAND, or REFRESH EVERY 5 MINUTES"
        raise cursor.error(f"REFRESH does not know {cursor.shown()}", hint)
    return RefreshClause(parse_wall_clock(cursor, "EVERY"))


def _valid(cursor: Cursor) -> tuple[Name, Name] | None:
    if cursor.at("TIMESTAMP", "BY") or cursor.at("ORDERED", "BY"):
        hint = (
            "leave it out, or write VALID FROM a TO b for rows with a period, CREATE STREAM for events, or "
            "CHANGES BY op before it for changes by key"
        )
        raise cursor.error("a relation is not timed by a column", hint)
    if not cursor.accept("VALID"):
        return None
    cursor.expect("FROM", "after VALID")
    begin = cursor.name("the column that begins a row's period")
    cursor.expect("TO", f"after VALID FROM {begin.text}")
    return begin, cursor.name("the column that ends a row's period")
