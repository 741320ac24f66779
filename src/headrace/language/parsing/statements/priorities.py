"""The clauses on a query's priority: WEIGHT, LATENCY and QOS."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, UserError
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.statements.time_clauses import parse_wall_clock
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.qos_graph import QosGraph
from headrace.scheduling.priority import USUAL, Priority
from headrace.time import MICROSECONDS

PRIORITIES: Final = ("WEIGHT", "LATENCY", "QOS")
"""The words that begin a clause."""
_WEIGHT: Final = "write WEIGHT 2 for twice the share of a query without the clause, or WEIGHT 0 for none"
_DELAY: Final = "write QOS (DELAY (0, 1), (5 SECONDS, 0.2)): a delay, and the utility of an answer so late"


def parse_priority(cursor: Cursor) -> Priority:
    """Read what a query says of its priority, if anything: `WEIGHT 2 LATENCY 1 SECOND QOS (DELAY (0, 1))`.

    Raises:
        LanguageError: a number is none, or a graph rises or leaves 0 to 1.
    """
    found, said = USUAL, set[str]()
    while (word := cursor.word()) in PRIORITIES:
        if word in said:
            raise cursor.error(f"{word} is there twice", "leave one of them out")
        said.add(word)
        found = parse_change(cursor, found)
    return found


def check_no_priority(cursor: Cursor, name: str) -> None:
    """Refuse a clause that is behind the others of CREATE QUERY.

    Args:
        cursor: it is where AS is to be.
        name: the query's.

    Raises:
        LanguageError: it is at a clause of a priority.
    """
    if (word := cursor.word()) in PRIORITIES:
        raise cursor.error(f"{word} comes before the other clauses", f"write it behind CREATE QUERY {name}")


def parse_change(cursor: Cursor, known: Priority) -> Priority:
    """Read one of the clauses; DEFAULT takes it back.

    Args:
        cursor: it is at a word of `PRIORITIES`.
        known: what holds besides.

    Raises:
        LanguageError: as of `parse_priority`.
    """
    word = cursor.word()
    cursor.index += 1
    if cursor.accept("DEFAULT"):
        none: dict[str, None] = {FIELDS[word]: None}
        return replace(known, **none)
    match word:
        case "WEIGHT":
            return replace(known, weight=_weight(cursor))
        case "LATENCY":
            return replace(known, bound=parse_wall_clock(cursor, "LATENCY"))
        case _:
            return replace(known, delay=_graph(cursor))


FIELDS: Final = {"WEIGHT": "weight", "LATENCY": "bound", "QOS": "delay"}
"""The attributes of a priority, by the words that begin their clauses."""


def _weight(cursor: Cursor) -> float:
    number = _number(cursor)
    if number is None or not 0 <= number <= 1_000_000:
        raise cursor.error(f"a weight is a number from 0 to 1,000,000, not {cursor.shown()}", _WEIGHT)
    cursor.index += 1
    return number


def _graph(cursor: Cursor) -> QosGraph:
    """Read `(DELAY (0, 1), (5 SECONDS, 0.2))`."""
    opened, position = cursor.accept("("), cursor.position
    if not cursor.accept("DELAY"):
        raise cursor.error(f"DELAY is missing after QOS, before {cursor.shown()}", _DELAY)
    points = []
    while True:
        cursor.expect("(", "before a delay and its utility")
        points.append((_delay(cursor), _utility(cursor)))
        cursor.expect(")", "after a utility")
        if not cursor.accept(","):
            break
    if opened:
        cursor.expect(")", "to close QOS")
    try:
        return QosGraph(tuple(points))
    except UserError as error:
        raise LanguageError(error.message, position=position, hint=error.hint or _DELAY) from error


def _delay(cursor: Cursor) -> float:
    """Read a delay: `0`, or a length of wall-clock time, in seconds."""
    number = _number(cursor)
    if number is not None and cursor.word(1) == ",":
        if number:
            raise cursor.error(f"the delay {cursor.word()} needs a unit", _DELAY)
        cursor.index += 1
        found = 0.0
    elif number is not None and cursor.word(1) in ("SECOND", "SECONDS"):
        # A graph may have been written with parts of seconds.
        cursor.index += 2
        found = number
    else:
        found = parse_duration_at(cursor, "a delay").length / MICROSECONDS["SECOND"]
    cursor.expect(",", "after a delay")
    return found


def _utility(cursor: Cursor) -> float:
    number = _number(cursor)
    if number is None:
        raise cursor.error(f"a utility is a number from 0 to 1, not {cursor.shown()}", _DELAY)
    cursor.index += 1
    return number


def _number(cursor: Cursor) -> float | None:
    """The number that comes next; None for anything else."""
    token = cursor.peek()
    return float(token.text) if token is not None and token.token_type == TokenType.NUMBER else None
