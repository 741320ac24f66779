"""`ORDER BY ... LIMIT k [OFFSET n]` after a query, as written."""

from __future__ import annotations

from typing import Final

from headrace.algebra.frames import MAX_ROWS
from headrace.language.parsing.cursor import Cursor
from headrace.language.parsing.named_windows import fill_in_windows
from headrace.language.parsing.qualify import limited
from headrace.language.syntax import Query, SelectQuery, SortItem

LIMITS: Final = ("ORDER BY", "LIMIT", "OFFSET")
"""The words that start one of these clauses."""


def parse_limits(cursor: Cursor, query: Query) -> Query:
    """Read `[ORDER BY keys] [LIMIT k] [OFFSET n]` after a query; the query itself where none comes.

    Raises:
        LanguageError: a clause is malformed.
    """
    position = cursor.position
    keys: list[SortItem] = []
    if cursor.accept("ORDER BY"):
        keys.append(_sort_item(cursor))
        while cursor.accept(","):
            keys.append(_sort_item(cursor))
    windows = dict(query.windows) if isinstance(query, SelectQuery) else {}
    for key in keys:
        fill_in_windows(key.expression, windows)
    bounded = cursor.accept("LIMIT")
    limit = None if not bounded or cursor.accept("ALL") else _rows(cursor, "LIMIT")
    if bounded and cursor.at(",") and cursor.word(1).isdecimal():
        raise cursor.error("LIMIT takes one number", f"write LIMIT {cursor.word(1)} OFFSET {limit}")
    moved = cursor.accept("OFFSET")
    offset = _rows(cursor, "OFFSET") if moved else 0
    if not (keys or bounded or moved):
        return query
    return limited(query, tuple(keys), limit, offset, position)


def _sort_item(cursor: Cursor) -> SortItem:
    expression = cursor.scalar("what to sort by")
    descending = cursor.accept("DESC")
    if not descending:
        cursor.accept("ASC")
    nulls_first = not descending
    if cursor.accept("NULLS"):
        nulls_first = cursor.accept("FIRST")
        if not nulls_first and not cursor.accept("LAST"):
            raise cursor.error(f"FIRST or LAST is missing after NULLS, before {cursor.shown()}")
    return SortItem(expression, descending, nulls_first)


def _rows(cursor: Cursor, clause: str) -> int:
    word = cursor.word()
    if not word.isascii() or not word.isdecimal() or len(word) > 10 or int(word) > MAX_ROWS:
        hint = f"write a whole number, at most {MAX_ROWS}"
        raise cursor.error(f"{clause} takes a number of rows, not {cursor.shown()}", hint)
    cursor.index += 1
    return int(word)
