"""Durations and window clauses: `WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE)` and `[RANGE 10 MINUTES]`."""

from __future__ import annotations

from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, UserError
from headrace.language.cursor import Cursor
from headrace.language.syntax import WindowClause
from headrace.language.unsupported import WINDOWS
from headrace.time import INFINITY, MAX_INSTANT, Duration, make_duration, parse_duration

_WRITTEN = "write WINDOW(RANGE 10 MINUTES), WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE) or WINDOW(NOW)"

_DURATION = "write a number and a unit, such as 5 SECONDS"


def parse_duration_at(cursor: Cursor, what: str) -> Duration:
    """Read `5 SECONDS`, `INTERVAL '5' SECONDS`, `INTERVAL '5 seconds'` or, for integer timestamps, `5`.

    Raises:
        LanguageError: something else comes next, or the duration is too long.
    """
    cursor.accept("INTERVAL")
    position = cursor.position
    token = cursor.peek()
    quoted = token is not None and token.token_type == TokenType.STRING
    if token is None or not (token.token_type == TokenType.NUMBER or quoted):
        raise cursor.error(f"{what} is missing, before {cursor.shown()}", _DURATION)
    text = str(token.text).strip()
    cursor.index += 1
    try:
        if not text.isdecimal():
            return parse_duration(text)
        if len(text) > len(str(MAX_INSTANT)):
            raise UserError(f"the duration {text} is too long", hint="write UNBOUNDED instead")
        return make_duration(int(text), _unit(cursor))
    except UserError as error:
        hint = error.hint if text.isdecimal() else _DURATION
        raise LanguageError(error.message, position=position, hint=hint) from None


def parse_window(cursor: Cursor) -> WindowClause | None:
    """Read a window clause of either style, or None where none comes next.

    Raises:
        LanguageError: the clause is malformed or asks for a window that is not built yet.
    """
    position = cursor.position
    if cursor.accept("["):
        closing = "]"
    elif cursor.accept("WINDOW"):
        cursor.expect("(", "after WINDOW")
        closing = ")"
    else:
        return None
    size, slide = _specification(cursor)
    if not cursor.accept(closing):
        if hint := WINDOWS.get(cursor.word()):
            raise cursor.error(f"a window with {cursor.word()} is not supported yet", hint)
        raise cursor.error(f"'{closing}' is missing, before {cursor.shown()}", _WRITTEN)
    return WindowClause(size, slide, position)


def _specification(cursor: Cursor) -> tuple[Duration | None, Duration | None]:
    if hint := WINDOWS.get(cursor.word()):
        raise cursor.error(f"a window with {cursor.word()} is not supported yet", hint)
    if cursor.accept("NOW"):
        return None, None
    if not cursor.accept("RANGE"):
        raise cursor.error(f"RANGE or NOW is missing, before {cursor.shown()}", _WRITTEN)
    size = (
        Duration(INFINITY) if cursor.accept("UNBOUNDED") else parse_duration_at(cursor, "the window's length")
    )
    if cursor.at("PRECEDING"):
        raise cursor.error("windows reach back anyway", "leave PRECEDING out")
    if not cursor.accept("SLIDE"):
        return size, None
    if cursor.at("UNBOUNDED"):
        raise cursor.error("a window cannot slide by UNBOUNDED", "write a duration, such as SLIDE 1 MINUTE")
    return size, parse_duration_at(cursor, "the slide's length")


def _unit(cursor: Cursor) -> str | None:
    """Step over a unit, if one follows."""
    word = cursor.word()
    if not word.isalpha() or word in ("SLIDE", "PRECEDING", *WINDOWS):
        return None
    cursor.index += 1
    return word
