"""Durations and window clauses: `WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE)` and `[PARTITION BY k ROWS 10]`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from sqlglot.tokens import Token, TokenType

from headrace.algebra.frames import MAX_ROWS
from headrace.errors import LanguageError, Position, UserError
from headrace.language.parsing.clauses.named_windows import at_named_windows
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import (
    ColumnName,
    LifetimeFrame,
    NowFrame,
    RangeWindowFrame,
    RowsWindowFrame,
    Scalar,
    WindowClause,
    WindowFrame,
)
from headrace.time import (
    INFINITY,
    MAX_INSTANT,
    MICROSECONDS,
    UNITS,
    Duration,
    make_duration,
    parse_duration,
    too_long,
)

_WRITTEN = (
    "write WINDOW(RANGE 10 MINUTES), WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE), WINDOW(ROWS 10) or WINDOW(NOW)"
)

_BOUNDS = "write the smallest length and then the largest, as in RANGE MIN 12 HOURS, MAX 24 HOURS"
_ROW_BOUNDS = "write the smallest number and then the largest, as in ROWS MIN 50, MAX 200"
_GRANULES = (
    "write the coarsest granule and then the finest, as in GRANULARITY(COARSEST 2 HOURS, FINEST 10 SECONDS)"
)

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
    text = str(token.text).strip() if quoted else _spelled(cursor, token)
    cursor.index += 1
    try:
        if text.isdecimal():
            if len(text) > len(str(MAX_INSTANT)):
                raise too_long(text)
            return make_duration(int(text), _unit(cursor))
        duration = parse_duration(text)
    except UserError as error:
        raise LanguageError(error.message, position=position, hint=error.hint) from None
    if quoted:
        # PostgreSQL's '10 minutes'::interval.
        cursor.accept("::", "INTERVAL")
    return duration


def _spelled(cursor: Cursor, number: Token) -> str:
    """A number and what is written next to it, as in `5s`, `1h30m`, `1.5 HOURS`; then at the last token."""
    found = re.compile(r"\d[\w.]*").match(cursor.source.text, number.start)
    text = str(number.text) if found is None else found[0]
    while (following := cursor.peek(1)) is not None and following.start < number.start + len(text):
        cursor.index += 1
    if re.fullmatch(r"\d+\.\d+", text) and cursor.word(1).isalpha():
        cursor.index += 1
        return f"{text} {cursor.word()}"
    return text


def parse_sample(cursor: Cursor) -> Decimal | None:
    """Read `SAMPLE(percent)`, or None where it does not come next.

    Raises:
        LanguageError: there is no percentage in it.
    """
    if not cursor.accept("SAMPLE", "("):
        return None
    token = cursor.peek()
    text = "" if token is None or token.token_type != TokenType.NUMBER else str(token.text)
    if not re.fullmatch(r"\d{1,3}(\.\d{1,12})?", text) or not 0 < Decimal(text) <= 100:
        message = f"SAMPLE takes a percentage above 0 and up to 100, not {cursor.shown()}"
        raise cursor.error(message, "write SAMPLE(10) for a tenth of the rows")
    cursor.index += 1
    cursor.expect(")", "to close SAMPLE")
    return Decimal(text).normalize()


def parse_granularity(cursor: Cursor) -> tuple[Duration, Duration | None] | None:
    """Read `GRANULARITY(granule)` or `GRANULARITY(COARSEST coarsest, FINEST granule)`.

    Returns:
        The granule, or the finest one, and the coarsest if there are bounds; None where it does not come
        next.

    Raises:
        LanguageError: there is no duration in it, or one bound alone.
    """
    if not cursor.accept("GRANULARITY", "("):
        return None
    coarsest = None
    if cursor.accept("COARSEST"):
        coarsest = parse_duration_at(cursor, "the coarsest granule after COARSEST")
        if not cursor.accept(",", "FINEST"):
            message = f"', FINEST' is missing after COARSEST {coarsest}, before {cursor.shown()}"
            raise cursor.error(message, _GRANULES)
        granule = parse_duration_at(cursor, "the finest granule after FINEST")
    elif cursor.at("FINEST"):
        raise cursor.error("COARSEST is missing, before FINEST", _GRANULES)
    else:
        granule = parse_duration_at(cursor, "the granule's length")
    cursor.expect(")", "to close GRANULARITY")
    return granule, coarsest


def parse_window(cursor: Cursor) -> WindowClause | None:
    """Read a window clause of either style, or None where none comes next.

    Raises:
        LanguageError: the clause is malformed.
    """
    position = cursor.position
    if cursor.accept("["):
        closing = "]"
    elif not at_named_windows(cursor) and cursor.accept("WINDOW"):
        if cursor.word() in _FOREIGN:
            raise _foreign_window(cursor, position)
        cursor.expect("(", "after WINDOW")
        closing = ")"
    else:
        return None
    clause = _specification(cursor, position)
    if not cursor.accept(closing):
        raise cursor.error(f"'{closing}' is missing, before {cursor.shown()}", _WRITTEN)
    return clause


_FOREIGN = ("TUMBLING", "HOPPING", "SESSION")
"""Kinds of ksqlDB's windows."""


def _foreign_window(cursor: Cursor, position: Position) -> LanguageError:
    """The error for ksqlDB's `WINDOW HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS)`."""
    kind = cursor.word()
    hint = "write FROM SESSION(TABLE name PARTITION BY key, DESCRIPTOR(ts), INTERVAL '5' MINUTES)"
    cursor.index += 1
    if cursor.accept("(", "SIZE"):
        size = slide = parse_duration_at(cursor, "the window's length")
        if cursor.accept(",", "ADVANCE", "BY"):
            slide = parse_duration_at(cursor, "the slide's length")
        hint = f"write WINDOW(RANGE {size} SLIDE {slide})"
    return LanguageError(f"WINDOW {kind} is not supported", position=position, hint=hint)


def _specification(cursor: Cursor, position: Position) -> WindowClause:
    partition = _partition(cursor)
    frame: WindowFrame
    if cursor.accept("NOW"):
        frame = NowFrame()
    elif cursor.accept("UNBOUNDED"):
        frame = RangeWindowFrame(Duration(INFINITY), None)
    elif cursor.accept("RANGE"):
        frame = _range(cursor)
    elif cursor.accept("ROWS"):
        frame = _rows(cursor)
    elif cursor.accept("LIFETIME"):
        frame = _lifetime(cursor)
    else:
        raise cursor.error(f"RANGE, ROWS or NOW is missing, before {cursor.shown()}", _WRITTEN)
    condition = cursor.scalar("the condition after WHERE") if cursor.accept("WHERE") else None
    return WindowClause(frame, partition, condition, position)


def _partition(cursor: Cursor) -> tuple[ColumnName, ...]:
    if not (cursor.accept("PARTITION BY") or cursor.accept("PARTITION", "BY")):
        return ()
    columns = [_column(cursor)]
    while cursor.accept(","):
        columns.append(_column(cursor))
    return tuple(columns)


def _column(cursor: Cursor) -> ColumnName:
    first = cursor.name("a column to partition by")
    if cursor.accept("."):
        return ColumnName(first, cursor.name("a column"))
    if cursor.at("("):
        raise cursor.error("PARTITION BY takes columns", "compute the column in a subquery in FROM")
    return ColumnName(None, first)


def _range(cursor: Cursor) -> RangeWindowFrame:
    smallest = None
    if cursor.accept("MIN"):
        smallest = parse_duration_at(cursor, "the smallest length after MIN")
        if not cursor.accept(",", "MAX"):
            raise cursor.error(f"', MAX' is missing after MIN {smallest}, before {cursor.shown()}", _BOUNDS)
        size = parse_duration_at(cursor, "the largest length after MAX")
    elif cursor.at("MAX"):
        raise cursor.error("MIN is missing, before MAX", _BOUNDS)
    else:
        unbounded = cursor.accept("UNBOUNDED")
        size = Duration(INFINITY) if unbounded else parse_duration_at(cursor, "the window's length")
    # Windows reach back anyway; CQL says so.
    cursor.accept("PRECEDING")
    slide = parse_duration_at(cursor, "the slide's length") if _slides(cursor) else None
    return RangeWindowFrame(size, slide, smallest)


def _rows(cursor: Cursor) -> RangeWindowFrame | RowsWindowFrame:
    if cursor.accept("UNBOUNDED"):
        cursor.accept("PRECEDING")
        if cursor.at("SLIDE"):
            raise cursor.error("a window of all rows cannot slide", "write ROWS with a number of rows")
        return RangeWindowFrame(Duration(INFINITY), None)
    smallest = None
    if cursor.accept("MIN"):
        smallest = parse_count(cursor, "the smallest number of rows after MIN", "MIN 50")
        if not cursor.accept(",", "MAX"):
            message = f"', MAX' is missing after MIN {smallest}, before {cursor.shown()}"
            raise cursor.error(message, _ROW_BOUNDS)
        rows = parse_count(cursor, "the largest number of rows after MAX", "MAX 200")
    elif cursor.at("MAX"):
        raise cursor.error("MIN is missing, before MAX", _ROW_BOUNDS)
    else:
        rows = parse_count(cursor, "the window's number of rows", "ROWS 10")
    cursor.accept("PRECEDING")
    if smallest is not None and cursor.at("SLIDE"):
        raise cursor.error(
            "a window of rows within bounds moves by single rows",
            f"leave SLIDE out, or write one size, as in ROWS {rows} SLIDE 5",
        )
    slide = parse_count(cursor, "the slide's number of rows", "SLIDE 5") if _slides(cursor) else 1
    return RowsWindowFrame(rows, slide, smallest)


def _lifetime(cursor: Cursor) -> LifetimeFrame:
    """Read `(start, duration)`."""
    cursor.expect("(", "after LIFETIME")
    rounded = cursor.accept("FLOOR", "(")
    column = None if cursor.accept("VALID_FROM") else _instant(cursor)
    granule = None
    if rounded:
        cursor.expect("TO", "after what FLOOR rounds")
        granule = parse_duration_at(cursor, "the length that starts are rounded down to")
        cursor.expect(")", "to close FLOOR")
    earlier = cursor.at("-")
    moved = cursor.accept("-") or cursor.accept("+")
    shift = parse_duration_at(cursor, "the length by which starts are moved") if moved else None
    cursor.expect(",", "between the start and the duration of LIFETIME")
    duration, unit = _lasting(cursor)
    cursor.expect(")", "to close LIFETIME")
    return LifetimeFrame(column, granule, shift, earlier, duration, unit)


def _instant(cursor: Cursor) -> ColumnName:
    """Read the column that a stream is timed by."""
    first = cursor.name("the start: VALID_FROM, or the column that the stream is timed by,")
    return ColumnName(first, cursor.name("a column")) if cursor.accept(".") else ColumnName(None, first)


def _lasting(cursor: Cursor) -> tuple[Duration | Scalar, Duration]:
    """Read a duration that all rows have, or one that is computed of each row, and its unit."""
    if cursor.accept("UNBOUNDED"):
        return Duration(INFINITY), Duration(1)
    token = cursor.peek()
    is_number = token is not None and token.token_type == TokenType.NUMBER
    if cursor.at("INTERVAL") or (is_number and ")" in (cursor.word(1), cursor.word(2))):
        return parse_duration_at(cursor, "the duration of LIFETIME"), Duration(1)
    found, position = cursor.scalar("the duration of LIFETIME"), cursor.position
    unit = _unit(cursor)
    try:
        return found, make_duration(1, unit)
    except UserError as error:
        raise LanguageError(error.message, position=position, hint=error.hint) from None


def _slides(cursor: Cursor) -> bool:
    """Step over SLIDE, if it follows."""
    if not cursor.accept("SLIDE"):
        return False
    if cursor.at("UNBOUNDED"):
        raise cursor.error("a window cannot slide by UNBOUNDED", "write a length, such as SLIDE 1 MINUTE")
    return True


def parse_count(cursor: Cursor, what: str, example: str) -> int:
    """Read a number of rows.

    Args:
        cursor: where it is.
        what: it is, for a message.
        example: a clause with one.

    Raises:
        LanguageError: something else comes next, or it is too large.
    """
    token = cursor.peek()
    hint = f"write a whole number from 1 to {MAX_ROWS}, such as {example}"
    if token is None or token.token_type != TokenType.NUMBER:
        raise cursor.error(f"{what} is missing, before {cursor.shown()}", hint)
    text = str(token.text)
    if not text.isdecimal() or len(text) > len(str(MAX_ROWS)) or not 1 <= int(text) <= MAX_ROWS:
        raise cursor.error(f"{what} cannot be {text}", hint)
    cursor.index += 1
    unit = cursor.word()
    if unit.removesuffix("S") in MICROSECONDS:
        raise cursor.error(f"{what} has a unit of time", f"write RANGE {text} {unit}, or leave {unit} out")
    return int(text)


_AFTER_NUMBERS: Final = (
    *("SLIDE", "PRECEDING", "WHERE"),
    *("DISORDER", "STRICT", "PER", "WAIT", "LATENCY", "IDLE", "TIMEOUT", "AT", "HEARTBEATS", "AHEAD"),
    *("DEVIATION", "RATE", "FROM", "ALIGN", "LAG", "LIMIT", "HAVING", "JOIN", "UNION"),
    *("DEAD", "CORRECTIONS", "RETAIN", "OVERFLOW", "AS", "WARM", "BY", "WITH", "CONSISTENCY"),
    *("MAX", "FINEST"),
)
"""Words that may follow a length without a unit."""


def _unit(cursor: Cursor) -> str | None:
    """Step over a unit, if one follows."""
    cursor.offer(*UNITS)
    word = cursor.word()
    if not word.isalpha() or word in _AFTER_NUMBERS:
        return None
    cursor.index += 1
    return word
