"""SHOW CREATE, DESCRIBE, COMMENT ON, ALTER QUERY: what is defined, and what becomes of it."""

from __future__ import annotations

from typing import Final

from sqlglot.tokens import TokenType

from headrace.algebra.tunings.tunings import TuningKind
from headrace.errors import Position
from headrace.language.names import quoted_name
from headrace.language.parsing.clauses.window_clauses import parse_count, parse_duration_at
from headrace.language.parsing.statements.consistency import parse_consistency
from headrace.language.parsing.statements.losses import parse_share, parse_utility
from headrace.language.parsing.statements.priorities import FIELDS, PRIORITIES, parse_change
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.catalog import (
    CatalogKind,
    Comment,
    Describe,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetKeep,
    SetPriority,
    SetWindow,
    ShowCreate,
)
from headrace.language.statements.statements import QueryChange, Reoptimize, SetConsistency
from headrace.language.syntax import Name
from headrace.scheduling.priority import USUAL
from headrace.suggestions import did_you_mean
from headrace.time import UNITS, Duration

_COMMENT: Final = "write COMMENT ON QUERY name IS 'text', or COMMENT ON COLUMN name.column IS 'text'"
_SETTINGS: Final = ("SET CONSISTENCY", "SET WINDOW", "SET GRANULARITY")
_ALTER: Final = ("PAUSE", "RESUME", "RENAME TO", *_SETTINGS, "REOPTIMIZE")


def parse_show_create(cursor: Cursor, position: Position) -> ShowCreate:
    """Read what follows SHOW CREATE: what is shown, and its name.

    Raises:
        LanguageError: it is malformed.
    """
    kind = _kind(cursor)
    if kind is None:
        written = "write SHOW CREATE STREAM name, or SHOW CREATE RELATION, QUERY or SINK"
        raise cursor.error(f"STREAM, RELATION, QUERY or SINK is missing, before {cursor.shown()}", written)
    return ShowCreate(kind, cursor.name(f"the {kind.word}'s name"), position)


def parse_describe(cursor: Cursor, position: Position) -> Describe:
    """Read what follows DESCRIBE: a name, perhaps after what it is.

    Raises:
        LanguageError: the name is missing.
    """
    kind = _kind(cursor)
    return Describe(kind, cursor.name("a name" if kind is None else f"the {kind.word}'s name"), position)


def parse_comment(cursor: Cursor, position: Position) -> Comment:
    """Read what follows COMMENT: `ON QUERY name IS 'text'`, or `ON COLUMN name.column IS 'text'`.

    Raises:
        LanguageError: it is malformed.
    """
    cursor.expect("ON", "after COMMENT")
    if cursor.accept("COLUMN"):
        kind, name = None, cursor.name("the name of a stream, a relation or a query")
        cursor.expect(".", f"after {name.text}")
        column = cursor.name(f"a column of {name.text}")
    else:
        kind, column = _kind(cursor), None
        if kind is None:
            raise cursor.error(f"COMMENT ON does not know {cursor.shown()}", _COMMENT)
        name = cursor.name(f"the {kind.word}'s name")
    cursor.expect("IS", "before the comment")
    if cursor.accept("NULL"):
        return Comment(kind, name, column, None, position)
    token = cursor.peek()
    if token is None or token.token_type != TokenType.STRING:
        raise cursor.error(f"a text in quotes is missing, before {cursor.shown()}", _COMMENT)
    cursor.index += 1
    return Comment(kind, name, column, str(token.text), position)


def parse_alter_query(cursor: Cursor, position: Position) -> QueryChange:
    """Read what follows ALTER QUERY: the query's name, and what becomes of it.

    Raises:
        LanguageError: it is malformed.
    """
    name = cursor.name("the query's name")
    if cursor.accept("REOPTIMIZE"):
        return Reoptimize(name, position)
    if cursor.accept("SET"):
        return _query_setting(cursor, name, position)
    if cursor.accept("PAUSE"):
        return PauseQuery(name, position, _keeps_input(cursor))
    if cursor.accept("RESUME"):
        return ResumeQuery(name, position)
    if cursor.accept("RENAME", "TO"):
        return RenameQuery(name, cursor.name("the query's new name"), position)
    written = f"write ALTER QUERY {name.text} {{{' | '.join(_ALTER)}}}; else drop it and create it again"
    raise cursor.error(
        f"{', '.join(_ALTER[:-1])} or {_ALTER[-1]} is missing, before {cursor.shown()}",
        did_you_mean(cursor.word(), _ALTER, cutoff=0.75) or written,
    )


def _keeps_input(cursor: Cursor) -> bool:
    """Read what follows PAUSE: KEEPING INPUT, or nothing."""
    if cursor.accept("KEEPING", "INPUT"):
        return True
    if cursor.at("KEEPING") or cursor.at("KEEP"):
        raise cursor.error(f"PAUSE does not know {cursor.shown()}", "write PAUSE, or PAUSE KEEPING INPUT")
    return False


def _query_setting(
    cursor: Cursor, name: Name, position: Position
) -> SetConsistency | SetKeep | SetPriority | SetWindow:
    """Read what follows SET: a query's level or the size of its windows, perhaps in parentheses."""
    opened = cursor.accept("(")
    found: SetConsistency | SetKeep | SetPriority | SetWindow
    if cursor.accept("KEEP"):
        is_utility = cursor.accept("UTILITY")
        kept = parse_utility(cursor) if is_utility else parse_share(cursor)
        found = SetKeep(name, kept, position, is_utility)
        if opened:
            cursor.expect(")", "to close SET")
        return found
    if (reason := _FIXED.get(cursor.word())) is not None:
        raise cursor.error(f"{cursor.word()} of {name.text} cannot change: {reason}", _ANEW)
    if (word := cursor.word()) in PRIORITIES:
        found = SetPriority(name, FIELDS[word], parse_change(cursor, USUAL), position)
    elif cursor.at("WINDOW") or cursor.at("GRANULARITY"):
        found = _sized(cursor, name, position)
    elif cursor.at("CONSISTENCY"):
        found = SetConsistency(name, parse_consistency(cursor), position)
    else:
        level = f"write CONSISTENCY {cursor.word()}" if cursor.word() in _LEVELS else None
        hint = level or _as_in_text(cursor, "WINDOW") or did_you_mean(cursor.word(), _SETTABLE) or _SET_HINT
        missing = f"{', '.join(_SETTABLE[:-1])} or {_SETTABLE[-1]} is missing after SET"
        raise cursor.error(f"{missing}, before {cursor.shown()}", hint)
    if opened:
        cursor.expect(")", "to close SET")
    return found


def _sized(cursor: Cursor, name: Name, position: Position) -> SetWindow:
    """Read `WINDOW [OF stream] size`, where the size may be a number of ROWS, or `GRANULARITY ...`."""
    word, what = cursor.word(), "the window's size" if cursor.at("WINDOW") else "the granule's length"
    kind = TuningKind.WINDOW if cursor.accept("WINDOW") else TuningKind.GRANULE
    if kind is TuningKind.GRANULE:
        cursor.accept("GRANULARITY")
    stream = cursor.name(f"the stream after {word} OF") if cursor.accept("OF") else None
    place = cursor.position
    clause = word if stream is None else f"{word} OF {quoted_name(stream.text)}"
    if (hint := _as_in_text(cursor, clause)) is not None:
        raise cursor.error(f"{what} is missing, before {cursor.shown()}", hint)
    if cursor.at("-"):
        raise cursor.error(f"{what} cannot be -{cursor.word(1)}", "write a length within its bounds")
    if kind is TuningKind.WINDOW and cursor.word(1) in ("ROWS", "ROW"):
        kind, size = TuningKind.ROWS, Duration(parse_count(cursor, "the window's number of rows", "100 ROWS"))
        cursor.index += 1
    else:
        size = parse_duration_at(cursor, what)
    return SetWindow(name, stream, kind, size, position, place)


def _as_in_text(cursor: Cursor, clause: str) -> str | None:
    """The hint for who writes a size as in a query's text, as in ROWS 3 or (RANGE 5 MINUTES).

    Args:
        cursor: where the size is to be.
        clause: what is before it.

    Returns:
        None where something else comes next.
    """
    ahead = 1 if cursor.at("(") else 0
    word = cursor.word(ahead)
    named = word in ("ROWS", "ROW", "RANGE", "=")
    if not ahead and not named:
        within = f"write one size within its bounds, such as {clause} 10 MINUTES"
        return f"{within}; bounds are part of the query" if word in _BOUNDS else None
    number, unit = cursor.word(ahead + named), cursor.word(ahead + named + 1)
    if not number.isdecimal() or (clause.startswith("GRANULARITY") and "ROWS" in (word, unit)):
        return _SET_HINT
    if word in ("ROWS", "ROW"):
        unit = "ROWS"
    return f"write {clause} {number}{f' {unit}' if unit in (*UNITS, 'ROWS') else ''}"


_SETTABLE: Final = ("CONSISTENCY", "WINDOW", "GRANULARITY", "KEEP", *PRIORITIES)
_LEVELS: Final = ("STRONG", "MIDDLE", "WEAK")
_BOUNDS: Final = ("MIN", "MAX", "FINEST", "COARSEST")
_SET_HINT: Final = (
    "write SET (WINDOW 10 MINUTES), SET (WINDOW 100 ROWS), SET (GRANULARITY 1 MINUTE), "
    "SET (CONSISTENCY MIDDLE), SET (KEEP 0.5), SET (WEIGHT 2) or SET (LATENCY 1 SECOND)"
)
_ANEW: Final = "drop the query, and create it again with what it is to have"
_FIXED: Final = {
    "HEARTBEATS": "operators that wait have other state than those that do not",
    "WARM": "it says how a query begins",
    "STARTING": "it says how a query begins",
    "FROM": "it says how a query begins",
    "RETAIN": "results are kept for all queries alike: SET retain_epochs = 100",
    "LOSS": "what is borne of loss is part of a query's answer, which has bounds or not",
}
"""What a query has besides its text that ALTER QUERY does not change, and why."""


def _kind(cursor: Cursor) -> CatalogKind | None:
    """Read STREAM, RELATION, QUERY or SINK, if one of them comes next."""
    return next((kind for kind in CatalogKind if cursor.accept(kind.value)), None)
