"""The window table functions: `TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS))` and HOP.

Arguments come in the order of Calcite and Flink, or by name, as in Flink: `SIZE => INTERVAL '10' SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.errors import LanguageError, Position
from headrace.language.cursor import Cursor
from headrace.language.suggestions import did_you_mean
from headrace.language.syntax import FromItem, Name, WindowFunction
from headrace.language.windows import parse_duration_at
from headrace.time import Duration

DURATIONS: Final[dict[str, tuple[str, ...]]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
}
"""The functions, and their durations in the order in which they stand; the offset may be left out."""

WRITTEN: Final[dict[str, str]] = {
    "TUMBLE": "write TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS)",
    "HOP": "the slide comes first: HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
}
"""How each is written, for hints."""


def at_table_function(cursor: Cursor) -> bool:
    """Whether `TABLE(...)` or one of the functions comes next."""
    return cursor.word(1) == "(" and (cursor.at("TABLE") or cursor.word() in DURATIONS)


def parse_table_function(cursor: Cursor, table: Callable[[Cursor], FromItem]) -> WindowFunction:
    """Read a table function, with `TABLE(...)` around it or without.

    Args:
        cursor: at the function.
        table: reads a table of FROM.

    Raises:
        LanguageError: no such function, or an argument is missing, unknown or given twice.
    """
    if not cursor.accept("TABLE", "("):
        return _function(cursor, table)
    if not at_table_function(cursor):
        raise cursor.error(f"{cursor.shown()} is no table function", WRITTEN["TUMBLE"])
    found = _function(cursor, table)
    cursor.expect(")", "to close TABLE")
    return found


def _function(cursor: Cursor, table: Callable[[Cursor], FromItem]) -> WindowFunction:
    position, name = cursor.position, cursor.word()
    cursor.index += 1
    cursor.expect("(", f"after {name}")
    _label(cursor, name, ("DATA",))
    if cursor.at(")") or cursor.at(","):
        raise cursor.error(f"the table of {name} is missing, before {cursor.shown()}", WRITTEN[name])
    cursor.accept("TABLE")
    data = table(cursor)
    time, durations = _arguments(cursor, name)
    for wanted in DURATIONS[name]:
        if wanted not in durations and wanted != "OFFSET":
            raise cursor.error(
                f"the {wanted.lower()} of {name} is missing, before {cursor.shown()}", WRITTEN[name]
            )
    cursor.expect(")", f"to close {name}")
    return WindowFunction(name, data, time, durations, position)


def _arguments(cursor: Cursor, name: str) -> tuple[Name | None, dict[str, tuple[Duration, Position]]]:
    """Read what follows the table: the descriptor, which may be left out, and the durations."""
    time: Name | None = None
    durations: dict[str, tuple[Duration, Position]] = {}
    while cursor.accept(","):
        position = cursor.position
        label = _label(cursor, name, ("TIMECOL", *DURATIONS[name]))
        if label in durations or (label == "TIMECOL" and time is not None):
            raise LanguageError(f"{name} has two arguments {label}", position=position)
        if label == "TIMECOL" or (
            label is None and time is None and not durations and cursor.at("DESCRIPTOR")
        ):
            time = _descriptor(cursor)
            continue
        free = [wanted for wanted in DURATIONS[name] if wanted not in durations]
        if label is None and not free:
            raise cursor.error(f"{name} has too many arguments", WRITTEN[name])
        durations[label or free[0]] = _duration(cursor, name, label or free[0])
    return time, durations


def _duration(cursor: Cursor, name: str, label: str) -> tuple[Duration, Position]:
    position = cursor.position
    return parse_duration_at(cursor, f"the {label.lower()} of {name}"), position


def _label(cursor: Cursor, name: str, known: tuple[str, ...]) -> str | None:
    """Read `NAME =>`, if it comes next."""
    if cursor.word(1) != "=>":
        return None
    label = cursor.word()
    if label not in known:
        hint = did_you_mean(label, known) or f"the arguments are {', '.join(known)}"
        raise cursor.error(f"{name} takes no argument {label} here", hint)
    cursor.index += 2
    return label


def _descriptor(cursor: Cursor) -> Name:
    if not cursor.accept("DESCRIPTOR"):
        raise cursor.error(f"DESCRIPTOR is missing, before {cursor.shown()}", "write DESCRIPTOR(column)")
    cursor.expect("(", "after DESCRIPTOR")
    name = cursor.name("the timestamp column")
    cursor.expect(")", "to close DESCRIPTOR")
    return name
