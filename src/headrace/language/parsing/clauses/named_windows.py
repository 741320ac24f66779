"""`WINDOW w AS (PARTITION BY ... ORDER BY ...), ...` after HAVING, and `OVER w` in SELECT and ORDER BY.

A window has a name in the text only: what it stands for is written in its place before anything is bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.language.dialect import position_of
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import Scalar, ScalarItem, SelectItem

_PARTS: Final = ("partition_by", "order", "spec")


def at_named_windows(cursor: Cursor) -> bool:
    """Whether `WINDOW name AS` comes next, and not a stream's window."""
    return cursor.at("WINDOW") and cursor.word(2) == "AS"


def parse_named_windows(cursor: Cursor, items: Iterable[SelectItem]) -> tuple[tuple[str, Scalar], ...]:
    """Read the WINDOW clause, if it comes next, and give the calls in a SELECT list the windows they name.

    Returns:
        The windows, by name in lower case.

    Raises:
        LanguageError: the clause is malformed, a name is given twice, or there is no window of a name.
    """
    windows: dict[str, Scalar] = {}
    if at_named_windows(cursor):
        cursor.index += 1
        _definition(cursor, windows)
        while cursor.accept(","):
            _definition(cursor, windows)
    for item in items:
        if isinstance(item, ScalarItem):
            fill_in_windows(item.expression, windows)
    return tuple(windows.items())


def fill_in_windows(expression: Scalar, windows: Mapping[str, Scalar]) -> None:
    """Give the calls in an expression the windows that they name.

    Raises:
        LanguageError: there is no window of a name.
    """
    for call in list(expression.find_all(exp.Window)):
        _fill_in(call, windows)


def _definition(cursor: Cursor, windows: dict[str, Scalar]) -> None:
    position = cursor.position
    name = cursor.name("the name of a window")
    if name.text.lower() in windows:
        raise LanguageError(
            f"there are two windows {name.text}", position=position, hint="rename one of them"
        )
    if not cursor.at("AS", "("):
        hint = f"write WINDOW {name.text} AS (PARTITION BY k ORDER BY ts)"
        raise cursor.error(f"a window must be in parentheses: AS (...) after {name.text}", hint)
    window = cursor.window("a window")
    _fill_in(window, windows)
    windows[name.text.lower()] = window


def _fill_in(call: Any, windows: Mapping[str, Scalar]) -> None:
    """Write the parts of the window that a call, or another window, names into it."""
    name = call.args.get("alias")
    if name is None:
        return
    text = str(name.name)
    window = windows.get(text.lower())
    if window is None:
        listed = ", ".join(windows)
        hint = f"the windows are {listed}" if windows else f"define it after HAVING: WINDOW {text} AS (...)"
        raise LanguageError(f"there is no window {text}", position=position_of(name), hint=hint)
    # After OVER alone a name is the whole window; in parentheses an order and a frame may follow it.
    for part in _PARTS if "spec" in call.args else ():
        theirs, ours = window.args.get(part), call.args.get(part)
        if (ours and (theirs or part == "partition_by")) or (part == "spec" and theirs):
            hint = f"write OVER {text}, or a window without a name"
            message = f"what follows {text} conflicts with the window {text}"
            raise LanguageError(message, position=position_of(name), hint=hint)
    for part in _PARTS:
        theirs = window.args.get(part)
        if theirs:
            copies = [one.copy() for one in theirs] if isinstance(theirs, list) else theirs.copy()
            call.set(part, copies)
    call.set("alias", None)
