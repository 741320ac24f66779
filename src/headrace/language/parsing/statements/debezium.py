"""`FORMAT DEBEZIUM`: rows within change records, whose columns have fixed names."""

from __future__ import annotations

from headrace.algebra.debezium import CHANGED_AT, OPERATION, path_in_record
from headrace.errors import LanguageError, Position
from headrace.language.parsing.statements.corrections import Watermark
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.formats import ChangeRecords
from headrace.language.statements.streams import EventsClause
from headrace.language.syntax import Name


def accept_debezium(cursor: Cursor, form: Name, *, keyed: bool) -> ChangeRecords | None:
    """Read `FORMAT DEBEZIUM`, if it comes next.

    Args:
        cursor: where it begins.
        form: the format of the input.
        keyed: whether there is a KEY; without one, records say themselves which row was there before.

    Raises:
        LanguageError: the input is not JSON.
    """
    position = cursor.position
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
    """Read `[TIMESTAMP BY column] [VERSION BY column]` after `FORMAT DEBEZIUM`.

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
