"""`ORDER BY ... LIMIT k [OFFSET n]` after a query, as written, and FETCH for LIMIT (SQL:2008)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.frames import MAX_ROWS
from headrace.errors import LanguageError, Position
from headrace.language.parsing.clauses.named_windows import fill_in_windows
from headrace.language.parsing.rewrites.qualify import limited
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import QuerySyntax, SelectQuery, SortItem, TopQuery

LIMITS: Final = ("ORDER BY", "LIMIT", "OFFSET", "FETCH")
"""The words that start one of these clauses."""

_FETCH: Final = "write FETCH FIRST 3 ROWS ONLY, or WITH TIES"


def parse_limits(cursor: Cursor, query: QuerySyntax) -> QuerySyntax:
    """Read `[ORDER BY keys] [LIMIT k] [OFFSET n]` after a query; the query itself where none comes.

    `FETCH FIRST k ROWS ONLY` is LIMIT k, and comes after OFFSET; either may have WITH TIES.

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
    ties = cursor.position if limit is not None and cursor.accept("WITH", "TIES") else None
    moved = cursor.accept("OFFSET")
    offset = _rows(cursor, "OFFSET") if moved else 0
    fetched = not bounded and (_accept_rows(cursor, moved) or cursor.accept("FETCH"))
    if fetched:
        limit, ties = _fetch(cursor)
    if not (keys or bounded or moved or fetched):
        return query
    found = limited(query, tuple(keys), limit, offset, position)
    if ties is None:
        return found
    if not keys or offset:
        lacks = "has no OFFSET" if keys else "needs an ORDER BY, which says what a tie is"
        hint = "write ORDER BY x DESC FETCH FIRST 3 ROWS WITH TIES"
        raise LanguageError(f"WITH TIES {lacks}", position=ties, hint=hint)
    assert isinstance(found, TopQuery)
    return replace(found, with_ties=True)


def _accept_rows(cursor: Cursor, moved: bool) -> bool:
    """Step over ROWS after the number of OFFSET; whether FETCH follows it, which is stepped over, too."""
    return moved and (cursor.accept("ROWS") or cursor.accept("ROW")) and cursor.accept("FETCH")


def _fetch(cursor: Cursor) -> tuple[int, Position | None]:
    """Read `FIRST k ROWS ONLY` or `... WITH TIES`: the number, and where the ties are asked for."""
    if not (cursor.accept("FIRST") or cursor.accept("NEXT")):
        raise cursor.error(f"FIRST is missing after FETCH, before {cursor.shown()}", _FETCH)
    limit = 1 if cursor.word() in ("ROW", "ROWS") else _rows(cursor, "FETCH FIRST")
    if not (cursor.accept("ROW") or cursor.accept("ROWS")):
        raise cursor.error(f"ROWS is missing after FETCH FIRST, before {cursor.shown()}", _FETCH)
    position = cursor.position
    if cursor.accept("WITH", "TIES"):
        return limit, position
    if not cursor.accept("ONLY"):
        raise cursor.error(f"ONLY or WITH TIES is missing after ROWS, before {cursor.shown()}", _FETCH)
    return limit, None


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
