"""CREATE SKEW and DROP SKEW: bounds between streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.errors import LanguageError, Position
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.statements.time_clauses import parse_rows, read_estimated
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.streams import CreateSkew, SkewPair
from headrace.language.syntax import Name
from headrace.time import Duration


def parse_create_skew(cursor: Cursor, position: Position) -> CreateSkew:
    """Read what follows CREATE SKEW: `BETWEEN a AND b (0 SECONDS, 5 SECONDS), (10 ROWS, STRICT)`.

    The streams are read as `parse_drop_skew` does. Instead of bounds there may be `ESTIMATED (...)`.

    Raises:
        LanguageError: it is malformed.
    """
    skew = parse_drop_skew(cursor, position)
    if cursor.accept("ESTIMATED"):
        _refuse_with_itself(skew, position)
        return replace(skew, **read_estimated(cursor, between=True))
    pairs = list[SkewPair]()
    while not pairs or cursor.accept(","):
        pairs.append(_skew_pair(cursor))
    return replace(skew, pairs=tuple(pairs))


def parse_drop_skew(cursor: Cursor, position: Position) -> CreateSkew:
    """Read what follows DROP SKEW: `BETWEEN a AND (b, c)`, `FROM a TO b` or `AMONG a, b, c`.

    Raises:
        LanguageError: it is malformed, or a stream is named twice.
    """
    if cursor.accept("AMONG"):
        skew = CreateSkew(_streams_among(cursor), (), (), True, position)
    else:
        both = cursor.accept("BETWEEN")
        if not both and not cursor.accept("FROM"):
            raise cursor.error(f"BETWEEN, FROM or AMONG is missing, before {cursor.shown()}", _SKEW)
        firsts = _streams(cursor, "the first stream")
        cursor.expect("AND" if both else "TO", f"after {_listed_names(firsts)}")
        skew = CreateSkew(firsts, _streams(cursor, "the second stream"), (), both, position)
    _refuse_twice(skew)
    return skew


_SKEW: Final = "write CREATE SKEW BETWEEN a AND b (0 SECONDS, 5 SECONDS), or FROM a TO b for one direction"
_AMONG: Final = "write CREATE SKEW AMONG a, b, c (0 SECONDS, 5 SECONDS)"


def _streams_among(cursor: Cursor) -> tuple[Name, ...]:
    """Read two or more streams, in parentheses or not."""
    opened = cursor.accept("(")
    names = [cursor.name("the first stream")]
    while cursor.accept(","):
        names.append(cursor.name("a stream"))
    if opened:
        cursor.expect(")", "to close the list")
    if len(names) < 2:
        raise cursor.error(f"AMONG takes two streams or more, and {names[0].text} is alone", _AMONG)
    return tuple(names)


def _streams(cursor: Cursor, what: str) -> tuple[Name, ...]:
    """Read a stream, or several in parentheses."""
    if not cursor.accept("("):
        return (cursor.name(what),)
    names = [cursor.name(what)]
    while cursor.accept(","):
        names.append(cursor.name("a stream"))
    cursor.expect(")", "to close the list")
    return tuple(names)


def _listed_names(names: Sequence[Name]) -> str:
    return ", ".join(name.text for name in names)


def _refuse_with_itself(skew: CreateSkew, position: Position) -> None:
    if skew.is_with_itself:
        name = skew.firsts[0].text
        raise LanguageError(
            f"the bounds of {name} with itself are said, not estimated, by CREATE SKEW",
            position=position,
            hint=f"write ALTER STREAM {name} ESTIMATED",
        )


def _refuse_twice(skew: CreateSkew) -> None:
    if skew.is_with_itself:
        return
    known: set[str] = set()
    for name in (*skew.firsts, *skew.seconds):
        if name.text.lower() in known:
            raise LanguageError(
                f"{name.text} is named twice",
                position=name.position,
                hint="bounds are between different streams; AMONG bounds each of some by each other",
            )
        known.add(name.text.lower())


def _skew_pair(cursor: Cursor) -> SkewPair:
    if not cursor.accept("("):
        raise cursor.error(f"a bound is missing, before {cursor.shown()}", _SKEW)
    if cursor.word(1) in ("ROW", "ROWS"):
        wait, rows = Duration(0), parse_rows(cursor, "a bound")
    else:
        wait, rows = parse_duration_at(cursor, "the wait"), 0
        if wait.unit is None and wait.length:
            message = f"the wait {wait} needs a unit: it is a length of wall-clock time"
            raise cursor.error(message, _SKEW)
    cursor.expect(",", "after the wait")
    behind = None if cursor.accept("STRICT") else parse_duration_at(cursor, "how far the second is behind")
    cursor.expect(")", "to close the bound")
    return SkewPair(wait, rows, behind)
