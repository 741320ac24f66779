"""`FORMAT DEBEZIUM` and `form 'upsert'`: rows within records of changes, whose columns have fixed names."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.debezium import (
    CHANGED_AT,
    OPERATION,
    SENT_AT,
    UPSERT_OPERATION,
    path_in_record,
    record_columns,
    upsert_columns,
)
from headrace.errors import LanguageError, Position
from headrace.language.parsing.statements.corrections import Watermark
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.formats import ChangeRecords
from headrace.language.statements.streams import EventsClause, is_topic
from headrace.language.syntax import Name
from headrace.schema import Schema


def accept_records(
    cursor: Cursor, form: Name, options: Sequence[tuple[str, str]], *, keyed: bool
) -> ChangeRecords | None:
    """Read `FORMAT DEBEZIUM`, if it comes next, or see that the messages of a topic are upserts.

    Args:
        cursor: where it begins.
        form: the format of the input.
        options: those of the input.
        keyed: whether there is a KEY; without one, records of Debezium say themselves which row was there.

    Raises:
        LanguageError: the input is not JSON, or upserts have no key.
    """
    position = cursor.position
    if is_topic(form.text.lower(), options) and dict(options).get("form", "").lower() == "upsert":
        if not keyed:
            raise LanguageError(
                "upserts are by key, and there is none",
                position=form.position,
                hint=f"write KEY (column) before FROM {form.text}, with what is in the keys of messages",
            )
        if cursor.at("FORMAT", "DEBEZIUM") or cursor.at("CHANGES"):
            raise cursor.error(
                "the form upsert says what a message changes", "leave it out, or leave out form 'upsert'"
            )
        return ChangeRecords.UPSERT
    if not cursor.accept("FORMAT", "DEBEZIUM"):
        return None
    if form.text.lower() not in ("json", "kafka"):
        raise LanguageError(
            f"FORMAT DEBEZIUM reads JSON, and the input is {form.text}",
            position=position,
            hint="write FROM json or FROM kafka; CHANGES BY __op TIMESTAMP BY __ts_ms is for flat records",
        )
    return ChangeRecords.BY_KEY if keyed else ChangeRecords.BY_ROW


def parse_record_columns(
    cursor: Cursor, records: ChangeRecords, watermark: Watermark | None
) -> tuple[str, Position, EventsClause]:
    """Read `[TIMESTAMP BY column] [VERSION BY column]` after `FORMAT DEBEZIUM`, or for upserts.

    Args:
        cursor: where it begins.
        records: how records are read.
        watermark: what the columns have said of the timestamp.

    Returns:
        What the rows are timed by, where that is said, and how they change each other.

    Raises:
        LanguageError: it is malformed, or a column is not one of the records.
    """
    position = cursor.position
    if records is ChangeRecords.UPSERT:
        return _upserts(cursor, watermark)
    if watermark is not None:
        raise LanguageError(
            "the columns are those of the table, and WATERMARK is for one of the record",
            position=watermark.column.position,
            hint="write DISORDER 5 SECONDS after FORMAT DEBEZIUM",
        )
    timestamp = Name(CHANGED_AT, position)
    if cursor.accept("TIMESTAMP", "BY"):
        timestamp = _column(cursor, "the timestamp column")
    version = _column(cursor, "the column with the version") if cursor.accept("VERSION", "BY") else None
    events = EventsClause(records is ChangeRecords.BY_ROW, None, Name(OPERATION, position), version)
    return timestamp.text, timestamp.position, events


def _upserts(cursor: Cursor, watermark: Watermark | None) -> tuple[str, Position, EventsClause]:
    """Read `[TIMESTAMP BY _timestamp]`: a message without a value has nothing else that says when."""
    position = cursor.position if watermark is None else watermark.column.position
    named = watermark.column.text if watermark is not None else SENT_AT
    if cursor.accept("TIMESTAMP", "BY"):
        position = cursor.position
        named = cursor.name("the timestamp column").text
    if named.lower() != SENT_AT:
        raise LanguageError(
            f"upserts are timed by {SENT_AT}: a deletion has no {named}",
            position=position,
            hint="leave it out; CHANGES BY column TIMESTAMP BY column is for messages that say what they do",
        )
    if cursor.at("VERSION", "BY"):
        raise cursor.error("of upserts of a key the last one in its partition counts", "leave it out")
    return SENT_AT, position, EventsClause(False, None, Name(UPSERT_OPERATION, position), None)


def columns_with_records(columns: Schema, records: ChangeRecords, timestamp: str) -> Schema:
    """The declared columns with those that say what a record changes, and when.

    Args:
        columns: the declared ones.
        records: how records are read.
        timestamp: what they are timed by.
    """
    if records is ChangeRecords.UPSERT:
        return upsert_columns(columns)
    return record_columns(columns, timestamp)


def _column(cursor: Cursor, what: str) -> Name:
    name = cursor.name(what)
    if path_in_record(name.text) is None:
        raise LanguageError(
            f"{name.text} is not a column of the record",
            position=name.position,
            hint=f"write {CHANGED_AT}, when the database made the change, __ts_ms, when Debezium read it, or "
            "another field of the record, such as __source_lsn",
        )
    return name
