"""The clause CONSISTENCY of a query."""

from __future__ import annotations

from typing import Final

from headrace.algebra.arrival import Unit
from headrace.errors import LanguageError
from headrace.language.parsing.cursor import Cursor
from headrace.language.parsing.time_clauses import parse_rows
from headrace.language.parsing.window_clauses import parse_duration_at
from headrace.language.statements import Consistency
from headrace.suggestions import did_you_mean
from headrace.time import Duration

_LEVELS: Final = ("STRONG", "MIDDLE", "WEAK")

_ROWS: Final = ("ROW", "ROWS")

_HINT: Final = (
    "write CONSISTENCY STRONG, CONSISTENCY MIDDLE, CONSISTENCY WEAK, or "
    "CONSISTENCY (BLOCK 5 SECONDS, REMEMBER 1 MINUTE)"
)


def parse_consistency(cursor: Cursor) -> Consistency:
    """Read `CONSISTENCY MIDDLE` or `CONSISTENCY (BLOCK 5 SECONDS, REMEMBER 1 MINUTE)`, or one of the two.

    BLOCK may also be `5 SECONDS BY ARRIVAL` or `100 ROWS`; in its place may be OUTPUT MAXIMAL.

    Raises:
        LanguageError: something else comes next.
    """
    position = cursor.position
    cursor.expect("CONSISTENCY", "before a level")
    if cursor.accept("STRONG"):
        return Consistency(position=position)
    if cursor.accept("MIDDLE"):
        return Consistency(Duration(0), position)
    if cursor.accept("WEAK"):
        return Consistency(Duration(0), position, Duration(0))
    if not cursor.accept("("):
        hint = did_you_mean(cursor.word(), _LEVELS) or _HINT
        raise cursor.error(f"CONSISTENCY does not know {cursor.shown()}", hint)
    block, unit, remember = None, Unit.TIME, None
    maximal = _is_maximal(cursor)
    if maximal:
        block = Duration(0)
    elif cursor.accept("BLOCK"):
        block, unit = _block(cursor)
    if block is None or cursor.accept(","):
        if not cursor.accept("REMEMBER"):
            missing = "REMEMBER" if block is not None else "BLOCK, OUTPUT or REMEMBER"
            raise cursor.error(f"{missing} is missing, before {cursor.shown()}", _HINT)
        remember = _remember(cursor)
    cursor.expect(")", "to close CONSISTENCY")
    return Consistency(block, position, remember, unit, maximal)


def _is_maximal(cursor: Cursor) -> bool:
    """Read `OUTPUT MAXIMAL`, if it comes next."""
    if not cursor.accept("OUTPUT"):
        return False
    if not cursor.accept("MAXIMAL"):
        raise cursor.error(
            f"a query's OUTPUT is MAXIMAL, not {cursor.shown()}",
            "write OUTPUT MAXIMAL in place of BLOCK; what can be taken back no more is what readers get from "
            "changes(output='final') and subscribe(output='final')",
        )
    return True


def _block(cursor: Cursor) -> tuple[Duration, Unit]:
    """Read `5 SECONDS`, `5 SECONDS BY ARRIVAL` or `100 ROWS`."""
    if cursor.word(1) in _ROWS:
        return Duration(parse_rows(cursor, "BLOCK")), Unit.ROWS
    position = cursor.position
    found = parse_duration_at(cursor, "the length after BLOCK")
    if not cursor.accept("BY"):
        return found, Unit.TIME
    cursor.expect("ARRIVAL", "after BLOCK ... BY")
    if found.unit is None and found.length:
        raise LanguageError(
            f"BLOCK {found} BY ARRIVAL needs a unit: it is a length of wall-clock time",
            position=position,
            hint=f"write BLOCK {found} SECONDS BY ARRIVAL",
        )
    return found, Unit.ARRIVAL if found.length else Unit.TIME


def _remember(cursor: Cursor) -> Duration:
    """Read `5 SECONDS`; not how much was said by the clock or counted, as BLOCK may be."""
    found = Duration(0) if cursor.word(1) in _ROWS else parse_duration_at(cursor, "the length after REMEMBER")
    if cursor.at("BY") or cursor.word(1) in _ROWS:
        raise cursor.error(
            "REMEMBER is a length of the streams' time, neither BY ARRIVAL nor a number of ROWS",
            "write REMEMBER and a length of time: which rows are left out follows from their timestamps, and "
            "not from when they come. BLOCK may be BY ARRIVAL, or a number of ROWS",
        )
    return found
