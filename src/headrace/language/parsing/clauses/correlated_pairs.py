"""Pairs of series in FROM: `CORRELATED PAIRS OF (query) OVER (RANGE 1 HOUR SLIDE 1 MINUTE) ABOVE 0.9`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates.pairs import USAGE
from headrace.language.parsing.clauses.tables import parse_decoration
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import DerivedTable, PairsTable, QuerySyntax, RangeWindowFrame, WindowClause
from headrace.time import Duration

_THRESHOLD: Final = "write a correlation from -1 to 1, such as ABOVE 0.9 or BELOW -0.9"
_VALUES: Final = "write a whole number from 2 to 1000000000, as in AT LEAST 30 VALUES"


def at_correlated_pairs(cursor: Cursor) -> bool:
    """Whether `CORRELATED PAIRS OF` comes next, and not a stream that is called so."""
    return cursor.at("CORRELATED", "PAIRS", "OF") or cursor.at("CORRELATED", "PAIRS", "(")


def parse_correlated_pairs(cursor: Cursor, query: Callable[[Cursor], QuerySyntax]) -> PairsTable:
    """Read pairs of series with their window, thresholds, lags, alias and columns.

    Args:
        cursor: at CORRELATED.
        query: reads a query in parentheses.

    Raises:
        LanguageError: a part is missing, given twice, or no correlation.
    """
    position = cursor.position
    cursor.accept("CORRELATED", "PAIRS")
    cursor.expect("OF", "after CORRELATED PAIRS")
    start = cursor.position
    if not cursor.at("("):
        raise cursor.error(f"the query of the series is missing, before {cursor.shown()}", USAGE)
    data = DerivedTable(query(cursor), None, None, start)
    over, step = _window(cursor)
    above, below = _thresholds(cursor)
    lag = fewest = None
    while True:
        place = cursor.position
        if cursor.accept("LAG", "UP", "TO"):
            _refuse_second("LAG", lag, place)
            lag = parse_duration_at(cursor, "the longest lag"), place
        elif cursor.accept("AT", "LEAST"):
            _refuse_second("AT LEAST", fewest, place)
            fewest = _count(cursor), place
            cursor.expect("VALUES", "after the number of AT LEAST")
        else:
            break
    alias, window, columns = parse_decoration(cursor)
    return PairsTable(data, over, step, above, below, lag, fewest, alias, window, columns, position)


def _window(cursor: Cursor) -> tuple[WindowClause, tuple[Duration, Position] | None]:
    """Read `OVER (RANGE size [SLIDE slide] [ALIGN step])`."""
    if not cursor.accept("OVER"):
        raise cursor.error(f"OVER is missing, before {cursor.shown()}", USAGE)
    cursor.expect("(", "after OVER")
    position = cursor.position
    if not cursor.accept("RANGE"):
        raise cursor.error(f"RANGE is missing, before {cursor.shown()}", USAGE)
    if cursor.at("UNBOUNDED"):
        raise cursor.error("series are correlated over a window of some length", USAGE)
    size = parse_duration_at(cursor, "the window's length")
    slide = parse_duration_at(cursor, "the slide's length") if cursor.accept("SLIDE") else None
    place, step = cursor.position, None
    if cursor.accept("ALIGN"):
        step = parse_duration_at(cursor, "the distance of the instants"), place
    if slide is None and step is None:
        hint = f"write (RANGE {size} SLIDE {Duration(1, size.unit)}), with a SLIDE, an ALIGN or both"
        raise cursor.error(f"SLIDE or ALIGN is missing, before {cursor.shown()}", hint)
    cursor.expect(")", "to close OVER")
    return WindowClause(RangeWindowFrame(size, slide), (), None, position), step


def _thresholds(cursor: Cursor) -> tuple[float | None, float | None]:
    """Read `ABOVE x`, `BELOW x`, or both with OR between them."""
    found: dict[str, float] = {}
    while True:
        word = cursor.word()
        if word not in ("ABOVE", "BELOW"):
            raise cursor.error(f"ABOVE or BELOW is missing, before {cursor.shown()}", _THRESHOLD)
        if word in found:
            raise cursor.error(f"{word} is given twice", "write ABOVE 0.9 OR BELOW -0.9")
        cursor.index += 1
        found[word] = _correlation(cursor, word)
        if not cursor.accept("OR"):
            return found.get("ABOVE"), found.get("BELOW")


def _correlation(cursor: Cursor, word: str) -> float:
    position, sign = cursor.position, -1.0 if cursor.accept("-") else 1.0
    token = cursor.peek()
    if token is None or token.token_type != TokenType.NUMBER:
        raise cursor.error(f"the number after {word} is missing, before {cursor.shown()}", _THRESHOLD)
    found = sign * float(token.text) if re.fullmatch(r"[\d.]+(e[-+]?\d+)?", token.text, re.I) else 2.0
    if not -1.0 <= found <= 1.0:
        minus = "-" if sign < 0 else ""
        message = f"a correlation is between -1 and 1, and never {word} {minus}{token.text}"
        raise LanguageError(message, position=position, hint=_THRESHOLD)
    cursor.index += 1
    return found


def _count(cursor: Cursor) -> int:
    token = cursor.peek()
    text = "" if token is None or token.token_type != TokenType.NUMBER else str(token.text)
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 2:
        raise cursor.error(f"AT LEAST takes a number of values, not {cursor.shown()}", _VALUES)
    cursor.index += 1
    return int(text)


def _refuse_second(what: str, before: object, position: Position) -> None:
    if before is not None:
        raise LanguageError(f"{what} is given twice", position=position, hint="leave one of them out")
