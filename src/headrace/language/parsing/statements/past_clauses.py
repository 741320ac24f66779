"""The clauses about the past: RETAIN of CREATE STREAM, STARTING AT and FROM of CREATE QUERY."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot.tokens import TokenType

from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.past import RetainClause, StartClause
from headrace.time import INFINITY, Duration

_MOST_ROWS: Final = 10**15
_RETAIN: Final = "write RETAIN 2 HOURS, RETAIN 10000000 ROWS or RETAIN ALL"
_START: Final = "write STARTING AT '2024-01-01T00:00:00Z', STARTING NOW, FROM -2 HOURS or FROM BEGINNING"


def parse_retain(cursor: Cursor) -> RetainClause:
    """Read what follows RETAIN.

    Raises:
        LanguageError: it is malformed.
    """
    if cursor.accept("ALL"):
        return RetainClause(Duration(INFINITY))
    if cursor.word(1) not in ("ROW", "ROWS"):
        if cursor.at("ROWS"):
            raise cursor.error("RETAIN ... ROWS takes a number", _RETAIN)
        return RetainClause(parse_duration_at(cursor, "the length after RETAIN"))
    token = cursor.peek()
    text = "" if token is None else str(token.text)
    if not text.isdecimal() or int(text) > _MOST_ROWS:
        raise cursor.error(f"RETAIN takes a number of rows, not {cursor.shown()}", _RETAIN)
    cursor.index += 2
    return RetainClause(rows=int(text))


def parse_start(cursor: Cursor) -> StartClause | None:
    """Read `STARTING AT instant`, `STARTING NOW`, `FROM -duration` or `FROM BEGINNING`; None without any.

    WITH DEAD LETTERS may follow where rows are read that came before.

    Raises:
        LanguageError: the clause is malformed.
    """
    found = _since(cursor)
    if found is None or found.now or not cursor.accept("WITH"):
        return found
    cursor.expect("DEAD", "after WITH")
    cursor.expect("LETTERS", "after WITH DEAD")
    return replace(found, letters=True)


def _since(cursor: Cursor) -> StartClause | None:
    """Since when a query answers; None where nothing says so."""
    position = cursor.position
    if cursor.accept("STARTING"):
        if cursor.accept("NOW"):
            return StartClause(None, None, position, now=True)
        cursor.expect("AT", "after STARTING")
        return StartClause(_instant(cursor), None, position)
    if not cursor.accept("FROM"):
        return None
    if cursor.accept("BEGINNING"):
        return StartClause(None, None, position)
    if not cursor.accept("-"):
        raise cursor.error(f"BEGINNING or a length of time is missing, before {cursor.shown()}", _START)
    return StartClause(None, parse_duration_at(cursor, "the length after FROM -"), position)


def _instant(cursor: Cursor) -> str | int:
    """Read an instant: a text, or a whole number."""
    cursor.accept("TIMESTAMP")
    sign = "-" if cursor.accept("-") else ""
    token = cursor.peek()
    if token is not None and token.token_type == TokenType.STRING and not sign:
        cursor.index += 1
        return str(token.text)
    text = "" if token is None else str(token.text)
    if not text.isdecimal() or len(text) > len(str(INFINITY)):
        raise cursor.error(f"an instant is missing, before {cursor.shown()}", _START)
    cursor.index += 1
    return int(sign + text)
