"""The table functions TUMBLE, HOP, CUMULATE, SESSION and GAP_FILL: `TUMBLE(TABLE bid, DESCRIPTOR(ts), ...)`.

Arguments come in the order of Calcite and Flink, or by name, as in Flink: `SIZE => INTERVAL '10' SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.algebra.kinds import Filling
from headrace.errors import LanguageError, Position
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import FromItem, Name, WindowFunction
from headrace.suggestions import did_you_mean
from headrace.time import Duration

DURATIONS: Final[dict[str, tuple[str, ...]]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP", "MAX"),
    "GAP_FILL": ("STEP", "WITHIN"),
}
"""The functions, and their durations in their order."""

_CALLED: Final = {"WITHIN": "longest gap"}
"""The words for durations in messages that have no names."""

_BY_SERIES: Final = ("SESSION", "GAP_FILL")
"""The functions that take PARTITION BY."""

_OPTIONAL: Final = ("OFFSET", "MAX")
"""The durations that may be left out."""

WRITTEN: Final[dict[str, str]] = {
    "TUMBLE": "write TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS)",
    "HOP": "the slide comes first: HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
    "CUMULATE": "the step comes first: CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
    "INTERVAL '1' HOUR)",
    "SESSION": "write SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '5' MINUTES)",
    "GAP_FILL": "write GAP_FILL(TABLE reading PARTITION BY device, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
    "INTERVAL '1' HOUR, 'LAST')",
}
"""How each is written, for hints."""


def at_table_function(cursor: Cursor) -> bool:
    """Whether `TABLE(...)` or a window function comes next."""
    return (cursor.at("TABLE") or cursor.word() in tuple(DURATIONS)) and cursor.word(1) == "("


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
        raise cursor.error(f"{cursor.shown()} is not a table function", WRITTEN["TUMBLE"])
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
    keys = _partition(cursor, name)
    time, described, durations, filling = _arguments(cursor, name)
    if keys and described:
        raise LanguageError(
            f"{name} is partitioned twice", position=described[0].position, hint=WRITTEN[name]
        )
    for wanted in DURATIONS[name]:
        if wanted not in durations and wanted not in _OPTIONAL:
            raise cursor.error(
                f"the {_called(wanted)} of {name} is missing, before {cursor.shown()}", WRITTEN[name]
            )
    cursor.expect(")", f"to close {name}")
    return WindowFunction(name, data, time, keys or described, durations, position, filling=filling)


def _called(label: str) -> str:
    return _CALLED.get(label, label.lower())


def _partition(cursor: Cursor, name: str) -> tuple[Name, ...]:
    """Read `PARTITION BY a, b` or `PARTITION BY (a, b)`, if it comes next."""
    if not cursor.at("PARTITION BY"):
        return ()
    if name not in _BY_SERIES:
        raise cursor.error(f"{name} takes no PARTITION BY", "group by the columns instead")
    cursor.index += 1
    parentheses = cursor.accept("(")
    names = [cursor.name("a column after PARTITION BY")]
    while cursor.at(",") and (parentheses or cursor.word(2) in (",", ")")):
        cursor.index += 1
        names.append(cursor.name("a column after PARTITION BY"))
    if parentheses:
        cursor.expect(")", "after the columns of PARTITION BY")
    return tuple(names)


def _arguments(
    cursor: Cursor, name: str
) -> tuple[
    Name | None,
    tuple[Name, ...],
    dict[str, tuple[Duration, Position]],
    tuple[Filling, Position] | None,
]:
    """Read what follows the table: the timestamp, which may be left out, keys, durations, and a filling."""
    descriptors: dict[str, tuple[Name, ...]] = {}
    durations: dict[str, tuple[Duration, Position]] = {}
    filling: tuple[Filling, Position] | None = None
    described = ("TIMECOL", "KEY") if name == "SESSION" else ("TIMECOL",)
    others = (*DURATIONS[name], "FILL") if name == "GAP_FILL" else DURATIONS[name]
    while cursor.accept(","):
        position = cursor.position
        given = {*descriptors, *durations, *(("FILL",) if filling else ())}
        label = _label(cursor, name, (*described, *others))
        if label in given:
            raise LanguageError(f"{name} has two arguments {label}", position=position)
        if label is None:
            label = _by_place(cursor, described, others, given)
        if label is None:
            raise cursor.error(f"{name} has too many arguments", WRITTEN[name])
        if label in described:
            descriptors[label] = _descriptor(cursor, several=label == "KEY")
        elif label == "FILL":
            filling = _filling(cursor)
        else:
            durations[label] = parse_duration_at(cursor, f"the {_called(label)} of {name}"), position
    (time, *_), keys = descriptors.get("TIMECOL", (None,)), descriptors.get("KEY", ())
    return time, keys, durations, filling


def _by_place(
    cursor: Cursor, described: tuple[str, ...], others: tuple[str, ...], given: set[str]
) -> str | None:
    """The argument that comes next without a name; None if all have been given."""
    free = [label for label in others if label not in given]
    # What is filled with is a word, too.
    is_column = cursor.at("DESCRIPTOR") or (_at_column(cursor) and free != ["FILL"])
    return (
        next((label for label in described if label not in given), None)
        if is_column
        else next(iter(free), None)
    )


def _filling(cursor: Cursor) -> tuple[Filling, Position]:
    """Read what GAP_FILL fills gaps with."""
    position, token = cursor.position, cursor.peek()
    word = "" if token is None else str(token.text).upper()
    filling = next((one for one in Filling if one.value == word), None)
    if filling is None:
        hint = did_you_mean(word, [one.value for one in Filling]) or "write 'LAST', 'LINEAR' or 'NULL'"
        raise cursor.error(f"GAP_FILL fills gaps with no {cursor.shown()}", hint)
    cursor.index += 1
    return filling, position


def _at_column(cursor: Cursor) -> bool:
    """Whether the name of a column comes next, alone, as other systems write the timestamp."""
    return cursor.at_name() and cursor.word(1) in (",", ")")


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


def _descriptor(cursor: Cursor, several: bool) -> tuple[Name, ...]:
    if _at_column(cursor):
        return (cursor.name("a column"),)
    if not cursor.accept("DESCRIPTOR"):
        raise cursor.error(f"DESCRIPTOR is missing, before {cursor.shown()}", "write DESCRIPTOR(column)")
    cursor.expect("(", "after DESCRIPTOR")
    names = [cursor.name("a column in DESCRIPTOR")]
    while several and cursor.accept(","):
        names.append(cursor.name("a column in DESCRIPTOR"))
    cursor.expect(")", "to close DESCRIPTOR")
    return tuple(names)
