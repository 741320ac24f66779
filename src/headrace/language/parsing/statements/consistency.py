"""The clause CONSISTENCY of a query."""

from __future__ import annotations

from typing import Final

from headrace.algebra.arrival import Unit
from headrace.errors import LanguageError
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.statements.time_clauses import parse_rows
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.statements import Consistency
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

    Both may also be `5 SECONDS BY ARRIVAL` or `100 ROWS`; in place of BLOCK may be OUTPUT MAXIMAL.

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
    block, unit, remember, memory = None, Unit.TIME, None, Unit.TIME
    maximal = _is_maximal(cursor)
    if maximal:
        block = Duration(0)
    elif cursor.accept("BLOCK"):
        block, unit = _dial(cursor, "BLOCK")
    if block is None or cursor.accept(","):
        if not cursor.accept("REMEMBER"):
            missing = "REMEMBER" if block is not None else "BLOCK, OUTPUT or REMEMBER"
            raise cursor.error(f"{missing} is missing, before {cursor.shown()}", _HINT)
        remember, memory = _dial(cursor, "REMEMBER")
    cursor.expect(")", "to close CONSISTENCY")
    return Consistency(block, position, remember, unit, maximal, memory)


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


def _dial(cursor: Cursor, clause: str) -> tuple[Duration, Unit]:
    """Read what follows BLOCK or REMEMBER: `5 SECONDS`, `5 SECONDS BY ARRIVAL` or `100 ROWS`.

    Args:
        cursor: the place.
        clause: which of the two.
    """
    if cursor.word(1) in _ROWS:
        rows = parse_rows(cursor, clause)
        return Duration(rows), Unit.ROWS if rows else Unit.TIME
    position = cursor.position
    found = parse_duration_at(cursor, f"the length after {clause}")
    if not cursor.accept("BY"):
        return found, Unit.TIME
    cursor.expect("ARRIVAL", f"after {clause} ... BY")
    if found.unit is None and found.length:
        raise LanguageError(
            f"{clause} {found} BY ARRIVAL needs a unit: it is a length of wall-clock time",
            position=position,
            hint=f"write {clause} {found} SECONDS BY ARRIVAL",
        )
    return found, Unit.ARRIVAL if found.length else Unit.TIME
