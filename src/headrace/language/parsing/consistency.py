"""The clause CONSISTENCY of a query."""

from __future__ import annotations

from typing import Final

from headrace.language.parsing.cursor import Cursor
from headrace.language.parsing.window_clauses import parse_duration_at
from headrace.language.statements import Consistency
from headrace.suggestions import did_you_mean
from headrace.time import Duration

_HINT: Final = "write CONSISTENCY STRONG, CONSISTENCY MIDDLE, or CONSISTENCY (BLOCK 5 SECONDS)"


def parse_consistency(cursor: Cursor) -> Consistency:
    """Read `CONSISTENCY MIDDLE` or `CONSISTENCY (BLOCK 5 SECONDS)`.

    Raises:
        LanguageError: something else comes next.
    """
    position = cursor.position
    cursor.expect("CONSISTENCY", "before a level")
    if cursor.accept("STRONG"):
        return Consistency(position=position)
    if cursor.accept("MIDDLE"):
        return Consistency(Duration(0), position)
    if not cursor.accept("("):
        hint = did_you_mean(cursor.word(), ("STRONG", "MIDDLE")) or _HINT
        raise cursor.error(f"CONSISTENCY does not know {cursor.shown()}", hint)
    if not cursor.accept("BLOCK"):
        raise cursor.error(f"BLOCK is missing, before {cursor.shown()}", _HINT)
    block = parse_duration_at(cursor, "the length after BLOCK")
    cursor.expect(")", "to close CONSISTENCY")
    return Consistency(block, position)
