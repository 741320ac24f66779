"""NOW() and its like: calls of the clock, which only conditions on a stream's timestamp may hold."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.language.binding.scope import Scope
from headrace.language.dialect import position_of
from headrace.schema import TIMESTAMP

_NAMES: Final = ("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "MZ_NOW", "GETDATE")
_WORDS: Final = ("CURRENT_TIMESTAMP", "LOCALTIMESTAMP")
"""Those that need no parentheses."""


def is_clock_call(node: Any) -> bool:
    """Whether a node is NOW() or means the same; it may still be a column of that name."""
    if isinstance(node, exp.Anonymous):
        return not node.expressions and str(node.name).upper() in _NAMES
    return isinstance(node, exp.Column) and not node.args.get("table") and str(node.name).upper() in _WORDS


def asks_clock(node: Any) -> bool:
    """Whether there is such a call in an expression."""
    return any(is_clock_call(part) for part in node.walk())


def clock_error(node: Any, scope: Scope) -> LanguageError:
    """What to write instead of a call of the clock.

    Args:
        node: the call.
        scope: the tables it is applied to.
    """
    found = ((table, name, column) for table in scope.tables for name, column in table.columns)
    times = (
        f"{table.alias}.{name}" if table.alias and len(scope.tables) > 1 else name
        for table, name, column in found
        if column.type == TIMESTAMP
    )
    name = str(node.name).upper()
    return LanguageError(
        f"{name} is compared with the timestamp of a stream without a window, in WHERE alone",
        position=position_of(node),
        hint=f"write {next(times, 'ts')} > NOW() - INTERVAL '1' HOUR for the rows of the last hour; a stream "
        "that is created with TIMESTAMP BY ARRIVAL has a column with the clock's reading",
    )
