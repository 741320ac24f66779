"""What CREATE STREAM says of rows that have lifetimes or change others: KEY, CHANGES BY, VALID FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot.tokens import TokenType

from headrace.algebra.events import CEDR
from headrace.errors import LanguageError, Position
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.streams import ByArrival, ComputedColumn, EventsClause
from headrace.language.syntax import Name
from headrace.time import Duration


@dataclass(frozen=True)
class Watermark:
    """SQL's `WATERMARK FOR column AS column - INTERVAL '5' SECOND`, among the columns."""

    column: Name
    behind: Duration


EVENT_TIME: Final = "event_time"
"""The column with the timestamps that are computed, where AS does not say another."""

_OPERATORS: Final = ("(", "[", ".", "::", "+", "-", "*", "/", "%", "||", "DIV", "WHEN")
"""What comes second in an expression that is more than a column."""


def parse_key(cursor: Cursor) -> tuple[Name, ...]:
    """Read `KEY (column, ...)`, if it is there.

    Raises:
        LanguageError: it is malformed.
    """
    if not (cursor.accept("KEY") or cursor.accept("PRIMARY KEY")):
        return ()
    cursor.expect("(", "after KEY")
    names = [cursor.name("a column of the key")]
    while cursor.accept(","):
        names.append(cursor.name("a column of the key"))
    cursor.expect(")", "after the key")
    return tuple(names)


def parse_timestamp(
    cursor: Cursor, watermark: Watermark | None
) -> tuple[str | ByArrival | ComputedColumn, Position]:
    """Read `TIMESTAMP BY {column | expression [AS name]}`: what the rows are timed by, and where it is said.

    A column called arrival has to be quoted.

    Args:
        cursor: where it begins.
        watermark: what the columns have said of it.

    Raises:
        LanguageError: it is malformed, or contradicts the watermark.
    """
    if not (cursor.accept("TIMESTAMP", "BY") or cursor.accept("ORDERED", "BY")):
        if watermark is not None:
            return watermark.column.text, watermark.column.position
        hint = "write TIMESTAMP BY column, or TIMESTAMP BY ARRIVAL to time rows by the clock"
        raise cursor.error(f"TIMESTAMP BY is missing, before {cursor.shown()}", hint)
    if cursor.at("(") and cursor.word(2) == ")":
        written = str(cursor.word(1)).lower()
        raise cursor.error("TIMESTAMP BY takes a column without parentheses", f"write TIMESTAMP BY {written}")
    position = cursor.position
    zoned = cursor.word(1) == "AT" and cursor.word(2) == "TIME"
    if cursor.word(1) in _OPERATORS or cursor.at("(") or zoned:
        return _computed(cursor, watermark), position
    if cursor.accept("ARRIVAL"):
        if watermark is not None:
            raise LanguageError(
                f"the stream is timed by ARRIVAL, and the watermark is for {watermark.column.text}",
                position=position,
                hint="leave one of them out",
            )
        named = cursor.name("the column after AS").text if cursor.accept("AS") else ByArrival.column
        return ByArrival(named), position
    if _begins_with_literal(cursor):
        return _computed(cursor, watermark), position
    column = cursor.name("the timestamp column")
    _check_watermark(watermark, column, "or leave TIMESTAMP BY out")
    return column.text, position


def _begins_with_literal(cursor: Cursor) -> bool:
    """Whether a constant is next, such as `TIMESTAMP '2024-01-01'` or a number."""
    tokens = [cursor.peek(ahead) for ahead in range(2)]
    kinds = [None if token is None else token.token_type for token in tokens]
    typed = cursor.word() in ("TIMESTAMP", "DATE", "INTERVAL") and kinds[1] in _LITERALS
    return typed or kinds[0] in _LITERALS


_LITERALS: Final = (TokenType.STRING, TokenType.NUMBER)


def _computed(cursor: Cursor, watermark: Watermark | None) -> ComputedColumn:
    """Read `expression [AS name]`."""
    begin, position = cursor.index, cursor.position
    expression = cursor.scalar("what the rows are timed by")
    text = cursor.text_from(begin)
    if cursor.accept("AS"):
        name = cursor.name("the column after AS")
    else:
        name = Name(EVENT_TIME, position) if watermark is None else watermark.column
    _check_watermark(watermark, name, "or leave TIMESTAMP BY out")
    return ComputedColumn(name.text, text, expression, position)


def parse_events(
    cursor: Cursor, key: tuple[Name, ...], watermark: Watermark | None
) -> tuple[str | ByArrival | ComputedColumn, Position, EventsClause | None]:
    """Read `[CHANGES BY change] {TIMESTAMP BY what | VALID FROM column [TO end]} [VERSION BY version]`.

    Args:
        cursor: where it begins.
        key: the columns of KEY, if there are any.
        watermark: what the columns have said of the timestamp.

    Returns:
        What the rows are timed by, where that is said, and what else there is.

    Raises:
        LanguageError: it is malformed, or the parts do not fit each other.
    """
    if cursor.at("FORMAT") and not key:
        return _physical(cursor, watermark)
    change = _change(cursor, key)
    lasting, ends = False, None
    timestamp: str | ByArrival | ComputedColumn
    begin = cursor.position
    if cursor.accept("VALID"):
        lasting = True
        timestamp, timed_at, ends = _valid(cursor, watermark)
        if key:
            hint = "write TIMESTAMP BY column: a row is valid until its key is changed again"
            raise LanguageError("VALID FROM and KEY cannot be combined", position=begin, hint=hint)
    else:
        timestamp, timed_at = parse_timestamp(cursor, watermark)
    if change is None and cursor.at("VERSION", "BY"):
        raise cursor.error("VERSION BY goes with CHANGES BY", "write CHANGES BY column, or leave it out")
    version = cursor.name("the column with the version") if cursor.accept("VERSION", "BY") else None
    if change is not None and not key and isinstance(timestamp, ByArrival):
        raise LanguageError(
            "rows that are timed by ARRIVAL take nothing back: they have other instants",
            position=timed_at,
            hint="name the column with the instant of the row and its correction, or write KEY (column)",
        )
    if change is None and not lasting:
        return timestamp, timed_at, None
    return timestamp, timed_at, EventsClause(lasting, ends, change, version)


def _physical(cursor: Cursor, watermark: Watermark | None) -> tuple[str, Position, EventsClause]:
    """Read `FORMAT CEDR [COUNT BY column]`: the other columns of a physical stream have fixed names."""
    position = cursor.position
    cursor.accept("FORMAT")
    if not cursor.accept("CEDR"):
        hint = "write FORMAT CEDR, FORMAT DEBEZIUM, or CHANGES BY column"
        raise cursor.error(f"there is no FORMAT {cursor.shown()}", hint)
    begin, *others = (Name(column, position) for column in CEDR)
    _check_watermark(watermark, begin, "or leave WATERMARK out")
    ends, change, shortened = others
    counts = cursor.name("the column with the counts") if cursor.accept("COUNT", "BY") else None
    return begin.text, position, EventsClause(True, ends, change, None, shortened, counts)


def _change(cursor: Cursor, key: tuple[Name, ...]) -> Name | None:
    """Read `CHANGES BY column`, which has to follow KEY."""
    if cursor.accept("CHANGES"):
        cursor.expect("BY", "after CHANGES")
        return cursor.name("the column with the change")
    if key:
        raise LanguageError(
            "a stream whose rows change nothing has no key",
            position=key[0].position,
            hint="leave it out, or write CHANGES BY op for rows that insert, update or delete by key",
        )
    return None


def _valid(cursor: Cursor, watermark: Watermark | None) -> tuple[str, Position, Name | None]:
    """Read what follows VALID: `FROM column [TO end]`."""
    cursor.expect("FROM", "after VALID")
    position = cursor.position
    column = cursor.name("the column that begins a row's lifetime")
    _check_watermark(watermark, column, "or leave WATERMARK out")
    ends = cursor.name("the column that ends a row's lifetime") if cursor.accept("TO") else None
    return column.text, position, ends


def _check_watermark(watermark: Watermark | None, column: Name, otherwise: str) -> None:
    if watermark is not None and column.text.lower() != watermark.column.text.lower():
        raise LanguageError(
            f"the stream is timed by {column.text}, and the watermark is for {watermark.column.text}",
            position=column.position,
            hint=f"name one column in both, {otherwise}",
        )
