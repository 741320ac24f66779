"""The clause CONSISTENCY of a query."""

from __future__ import annotations

from typing import Final

from headrace.language.parsing.cursor import Cursor
from headrace.language.parsing.window_clauses import parse_duration_at
from headrace.language.statements import Consistency
from headrace.suggestions import did_you_mean
from headrace.time import Duration

_LEVELS: Final = ("STRONG", "MIDDLE", "WEAK")

_HINT: Final = (
    "write CONSISTENCY STRONG, CONSISTENCY MIDDLE, CONSISTENCY WEAK, or "
    "CONSISTENCY (BLOCK 5 SECONDS, REMEMBER 1 MINUTE)"
)


def parse_consistency(cursor: Cursor) -> Consistency:
    """Read `CONSISTENCY MIDDLE` or `CONSISTENCY (BLOCK 5 SECONDS, REMEMBER 1 MINUTE)`, or one of the two.

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
    block = remember = None
    if cursor.accept("BLOCK"):
        block = parse_duration_at(cursor, "the length after BLOCK")
    if block is None or cursor.accept(","):
        if not cursor.accept("REMEMBER"):
            missing = "REMEMBER" if block is not None else "BLOCK or REMEMBER"
            raise cursor.error(f"{missing} is missing, before {cursor.shown()}", _HINT)
        remember = parse_duration_at(cursor, "the length after REMEMBER")
    cursor.expect(")", "to close CONSISTENCY")
    return Consistency(block, position, remember)
