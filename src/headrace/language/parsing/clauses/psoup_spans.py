"""PSoup's `BEGIN (NOW - 10) END (NOW)`: one window for all streams of FROM (PSoup, section 1.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headrace.errors import LanguageError
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import (
    DerivedTable,
    FromItem,
    JoinedTable,
    NamedTable,
    NowFrame,
    PairsTable,
    SpanFrame,
    UnnestedTable,
    WindowClause,
    WindowedTable,
)

_FORM = (
    "write BEGIN (NOW - 10 SECONDS) END (NOW), with a bare number for integer timestamps; for what a query q "
    "answered between two instants, ask SELECT ... FROM HISTORY OF q BEGIN 5 END 12"
)
_FIXED = (
    "for all rows since then write WINDOW(RANGE UNBOUNDED) after the streams, and conditions on their "
    "timestamps; for what a query q answered between two instants, "
    "ask SELECT ... FROM HISTORY OF q BEGIN 5 END 12"
)


def parse_span(cursor: Cursor, tables: tuple[FromItem, ...]) -> tuple[FromItem, ...]:
    """Read the clause, if it comes next, and put the tables under a window that holds the same rows.

    Raises:
        LanguageError: the clause is malformed, asks for another span than one up to now, or is beside
            a window.
    """
    position = cursor.position
    if not cursor.accept("BEGIN"):
        return tables
    cursor.expect("(", "after BEGIN")
    if not cursor.accept("NOW"):
        raise cursor.error(f"BEGIN takes NOW or a time before it, not {cursor.shown()}", _FIXED)
    frame: NowFrame | SpanFrame = NowFrame()
    if cursor.accept("-"):
        frame = SpanFrame(parse_duration_at(cursor, "the length after NOW -"))
    for word in (")", "END", "(", "NOW", ")"):
        if not cursor.accept(word):
            raise cursor.error(f"a span is up to now: {word} is missing, before {cursor.shown()}", _FORM)
    window = WindowClause(frame, (), None, position)
    return tuple(_spanned(table, window) for table in tables)


def _spanned(table: FromItem, window: WindowClause) -> FromItem:
    match table:
        case JoinedTable(left=left, right=right):
            return replace(table, left=_spanned(left, window), right=_spanned(right, window))
        case UnnestedTable(left=left):
            return replace(table, left=_spanned(left, window))
        case NamedTable() | DerivedTable() | WindowedTable() | PairsTable():
            if table.window is not None:
                hint = "leave one of them out"
                message = "BEGIN and END cannot be combined with a window"
                raise LanguageError(message, position=table.window.position, hint=hint)
            return replace(table, window=window)
        case _:
            assert_never(table)
