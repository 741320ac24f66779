"""The clauses of CREATE STREAM that say how a stream's time moves, such as IDLE AFTER."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, Position
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.statements.past_clauses import parse_retain
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.overflow import Overflow
from headrace.language.statements.streams import (
    AlterStream,
    DeviationClause,
    EstimationClause,
    PerClause,
    RateClause,
    TimeClauses,
    ValuesOf,
)
from headrace.language.syntax import Name
from headrace.suggestions import did_you_mean
from headrace.time import INFINITY, MICROSECONDS, Duration

_EXAMPLES: Final = {
    "DISORDER": "DISORDER 5 SECONDS, DISORDER 10 ROWS, DISORDER FOR 99.9 PERCENT",
    "CORRECTIONS": "CORRECTIONS WITHIN 72 HOURS",
    "ESTIMATED": "ESTIMATED",
    "STRICT": "STRICT",
    "PER": "PER column",
    "LATENCY": "LATENCY 2 SECONDS",
    "IDLE": "IDLE AFTER 30 SECONDS",
    "TIMEOUT": "TIMEOUT 1 MINUTE",
    "AT": "AT MOST 1 DAY AHEAD, AT MOST 1 MINUTE BEHIND",
    "HEARTBEATS": "HEARTBEATS FROM column",
    "DEVIATION": "DEVIATION 2 SECONDS",
    "RATE": "RATE 9 SECONDS PER 10 SECONDS",
    "DEAD": "DEAD LETTERS KEEP 7 DAYS",
    "RETAIN": "RETAIN 2 HOURS",
    "OVERFLOW": "OVERFLOW DROP OLDEST",
}
"""How each clause is written, by its first word."""

_KNOWN: Final = ", ".join(_EXAMPLES.values())


def parse_time_clauses(cursor: Cursor, given: TimeClauses) -> TimeClauses:
    """Read the clauses that follow `TIMESTAMP BY column`, each at most once, in any order.

    There may be a DISORDER in time and another one in rows.

    Args:
        cursor: behind the timestamp column.
        given: what other parts of the statement have said, as WATERMARK FOR does.

    Raises:
        LanguageError: one is malformed or given twice, or two contradict each other.
    """
    return _read(cursor, given)[0]


def parse_altered_clauses(cursor: Cursor, name: Name, position: Position) -> AlterStream:
    """Read what follows ALTER STREAM and a name: the clauses that replace what was said before.

    Raises:
        LanguageError: a clause is malformed, or there is none.
    """
    read = _read_listed if cursor.accept("SET") else _read
    clauses, changed = read(cursor, TimeClauses())
    if not changed:
        hint = f"the clauses are {_KNOWN}; or write ADD COLUMN name TYPE"
        raise cursor.error(f"a clause is missing, before {cursor.shown()}", hint)
    # How far rows may be out of order is said as a whole; what is said now replaces what was said before.
    order = {"disorder", "rows", "percent", "estimation", "strict"}
    return AlterStream(name, clauses, frozenset(changed | order if changed & order else changed), position)


def _read_listed(cursor: Cursor, given: TimeClauses) -> tuple[TimeClauses, set[str]]:
    """Read what follows SET: clauses in parentheses, with commas between them."""
    cursor.expect("(", "after SET")
    clauses, changed = given, set[str]()
    while True:
        if cursor.word() in _FIXED:
            raise cursor.error(
                f"{cursor.word()} of a stream cannot change: what is final was said with it",
                "define another stream, or drop this one with what reads it: DROP STREAM name CASCADE",
            )
        place = cursor.position
        clauses, found = _read(cursor, clauses)
        if not found:
            raise cursor.error(f"a clause is missing, before {cursor.shown()}", f"the clauses are {_KNOWN}")
        if twice := found & changed:
            what = " and ".join(sorted(twice))
            raise LanguageError(f"{what} is said twice", position=place, hint="leave one of them out")
        changed |= found
        if not cursor.accept(","):
            cursor.expect(")", "to close SET")
            return clauses, changed


_FIXED: Final = (
    *("FROM", "FORMAT", "OPTIONS", "TIMESTAMP", "KEY", "CHANGES", "VALID", "VERSION", "COUNT", "WATERMARK"),
    "COLUMNS",
)
"""How clauses of CREATE STREAM begin that ALTER STREAM does not change."""


_ORDER: Final = {
    "STRICT": "that timestamps only rise",
    "ESTIMATED": "that the rows show by how much they fall",
    "DISORDER": "by how much they may fall",
    "DISORDER n ROWS": "after how many rows they do not fall any more",
    "DISORDER FOR p PERCENT": "that the rows show by how much most of them fall",
    "CORRECTIONS WITHIN": "how late rows are corrected",
}
"""The clauses of which one says how far rows may be out of order, or two that count time and rows."""

_BOTH: Final = {"DISORDER", "DISORDER n ROWS"}
"""The clauses of it that hold together."""


def _read(cursor: Cursor, given: TimeClauses) -> tuple[TimeClauses, set[str]]:
    """Read clauses until none follows; also the fields that they set."""
    clauses, said = given, _said_of_order(given)
    changed: set[str] = set()
    while True:
        position = cursor.position
        found = next((words for words in _READERS if cursor.accept(*words.split())), None)
        if found is None:
            _refuse_misspelt(cursor)
            return clauses, changed
        read = _READERS[found](cursor)
        name = _name_of(found, read)
        if name in said:
            raise LanguageError(f"{name} is given twice", position=position, hint="leave one of them out")
        said.add(name)
        both = sorted(said & _ORDER.keys(), reverse=True)
        if len(both) > 1 and set(both) != _BOTH:
            raise LanguageError(
                f"{' and '.join(both)} contradict each other",
                position=position,
                hint=f"{both[0]} says {_ORDER[both[0]]}; {both[1]}, {_ORDER[both[1]]}",
            )
        clauses, changed = replace(clauses, **read), changed | read.keys()


def _name_of(found: str, read: Mapping[str, Any]) -> str:
    """The name of a clause that has been read, where several begin with the same words."""
    match found:
        case "AT MOST":
            return f"AT MOST ... {''.join(read).upper()}"
        case "DISORDER" if "rows" in read:
            return "DISORDER n ROWS"
        case "DISORDER" if "percent" in read:
            return "DISORDER FOR p PERCENT"
        case _:
            return found


def _said_of_order(given: TimeClauses) -> set[str]:
    """The names of the clauses that have said how far rows may be out of order."""
    said = {
        "DISORDER": given.disorder,
        "DISORDER n ROWS": given.rows,
        "DISORDER FOR p PERCENT": given.percent,
        "ESTIMATED": given.estimation,
        "STRICT": given.strict or None,
    }
    return {name for name, value in said.items() if value is not None}


def _disorder(cursor: Cursor) -> dict[str, Any]:
    if cursor.accept("FOR"):
        return {"percent": _percent(cursor)}
    token, unit = cursor.peek(), cursor.word(1)
    if token is None or token.token_type != TokenType.NUMBER or unit not in ("ROW", "ROWS"):
        return {"disorder": parse_duration_at(cursor, "the bound after DISORDER")}
    return {"rows": parse_rows(cursor, "DISORDER")}


def _corrections(cursor: Cursor) -> dict[str, Any]:
    return {"disorder": parse_duration_at(cursor, "the bound after CORRECTIONS WITHIN")}


def _percent(cursor: Cursor) -> Decimal:
    found = _number(cursor)
    if found is None or not 0 < found <= 100:
        message = f"DISORDER FOR takes a percentage above 0 and up to 100, not {cursor.shown()}"
        raise cursor.error(message, _PERCENT)
    cursor.index += 1
    if not cursor.accept("PERCENT"):
        raise cursor.error(f"PERCENT is missing, before {cursor.shown()}", _PERCENT)
    return found


_PERCENT: Final = "write DISORDER FOR 99.9 PERCENT"


def _number(cursor: Cursor) -> Decimal | None:
    """The number that comes next, of a few digits; None if something else does."""
    text = str(getattr(cursor.peek(), "text", ""))
    return Decimal(text) if re.fullmatch(r"\d{1,3}(\.\d{1,12})?", text) else None


def read_estimated(cursor: Cursor, *, between: bool = False) -> dict[str, Any]:
    """Read what follows ESTIMATED, of one stream or between streams."""
    if not cursor.accept("("):
        return {"estimation": EstimationClause()}
    found: dict[str, Any] = {}
    while True:
        if "alpha" not in found and cursor.accept("ALPHA"):
            found["alpha"] = _alpha(cursor)
        elif not {"rows", "duration"} & found.keys() and cursor.accept("WINDOW"):
            found |= _window(cursor)
        elif "wait" not in found and cursor.at("WAIT"):
            found["wait"] = _estimated_wait(cursor, between=between)
        else:
            raise cursor.error(f"{cursor.shown()} is unexpected here", _ESTIMATED)
        if not cursor.accept(","):
            break
    if {"wait", "duration"} <= found.keys():
        # The window of a bound is of the time of rows, and a wait is of the clock's.
        raise cursor.error("WAIT goes with a WINDOW of rows", _ESTIMATED_WAIT)
    cursor.expect(")", "to close ESTIMATED")
    return {"estimation": EstimationClause(**found)}


_ESTIMATED: Final = "write ESTIMATED (WINDOW 1000 ROWS, ALPHA 0.5)"
_ESTIMATED_WAIT: Final = "write ESTIMATED (WINDOW 1000 ROWS, WAIT 10 SECONDS)"


def _estimated_wait(cursor: Cursor, *, between: bool) -> Duration:
    if not between:
        raise cursor.error(
            "WAIT is of bounds between streams",
            "write CREATE SKEW FROM a TO b ESTIMATED (WAIT 10 SECONDS), or LATENCY for one stream",
        )
    cursor.accept("WAIT")
    length = parse_duration_at(cursor, "the length after WAIT")
    if not length.length:
        raise cursor.error("WAIT needs a length above zero", _ESTIMATED_WAIT)
    return length


def _alpha(cursor: Cursor) -> Decimal:
    found = _number(cursor)
    if found is None or found > 1:
        raise cursor.error(f"ALPHA takes a number from 0 to 1, not {cursor.shown()}", _ESTIMATED)
    cursor.index += 1
    return found


def _window(cursor: Cursor) -> dict[str, Any]:
    if cursor.word(1) in ("ROW", "ROWS"):
        return {"rows": parse_rows(cursor, "WINDOW")}
    length = parse_duration_at(cursor, "the length after WINDOW")
    if not length.length:
        raise cursor.error("WINDOW needs a length above zero", _ESTIMATED)
    return {"duration": length}


_MOST_ROWS: Final = 1_000_000
"""Of DISORDER n ROWS and other numbers of rows."""


def parse_rows(cursor: Cursor, what: str) -> int:
    """Read `10 ROWS`, where a number and that word come next.

    Raises:
        LanguageError: there are too many, or none.
    """
    text = str(getattr(cursor.peek(), "text", ""))
    if not text.isdecimal() or len(text) > len(str(_MOST_ROWS)) or not 1 <= int(text) <= _MOST_ROWS:
        message = f"{what} takes a number of rows from 1 to {_MOST_ROWS:,}, not {cursor.shown()}"
        raise cursor.error(message, "write 10 ROWS")
    cursor.index += 2
    return int(text)


def _strict(cursor: Cursor) -> dict[str, Any]:
    return {"strict": True}


def _per(cursor: Cursor) -> dict[str, Any]:
    column = cursor.name("the column after PER")
    listed = _values(cursor) if cursor.accept("OF") else ()
    wait = parse_wall_clock(cursor, "WAIT") if cursor.accept("WAIT") else None
    return {"per": PerClause(column, listed, wait)}


def _values(cursor: Cursor) -> tuple[str | int, ...] | ValuesOf:
    """Read what follows OF: a list of values, or the relation that has them."""
    if not cursor.at("("):
        relation = cursor.name("a list of values in parentheses, or a relation, after OF")
        column = None
        if cursor.accept("("):
            column = cursor.name(f"the column of {relation.text}")
            cursor.expect(")", "after the column")
        return ValuesOf(relation, column)
    cursor.expect("(", "after OF")
    listed = [_listed(cursor)]
    while cursor.accept(","):
        listed.append(_listed(cursor))
    cursor.expect(")", "to close the list")
    return tuple(dict.fromkeys(listed))


def _listed(cursor: Cursor) -> str | int:
    """Read a value of the list after OF: a text or a whole number."""
    token, sign = cursor.peek(), ""
    if cursor.accept("-"):
        token, sign = cursor.peek(), "-"
    if token is not None and token.token_type == TokenType.STRING and not sign:
        cursor.index += 1
        return str(token.text)
    if token is None or token.token_type != TokenType.NUMBER or not str(token.text).isdecimal():
        raise cursor.error(f"OF takes texts or whole numbers, not {cursor.shown()}", "write OF ('a', 'b')")
    cursor.index += 1
    return int(sign + str(token.text))


def _latency(cursor: Cursor) -> dict[str, Any]:
    return {"latency": parse_wall_clock(cursor, "LATENCY")}


def _idle(cursor: Cursor) -> dict[str, Any]:
    return {"idle_after": parse_wall_clock(cursor, "IDLE AFTER")}


def _timeout(cursor: Cursor) -> dict[str, Any]:
    return {"timeout": parse_wall_clock(cursor, "TIMEOUT")}


def _beside_clock(cursor: Cursor) -> dict[str, Any]:
    length = parse_wall_clock(cursor, "AT MOST")
    for word in ("AHEAD", "BEHIND"):
        if cursor.accept(word):
            return {word.lower(): length}
    raise cursor.error(
        f"AHEAD or BEHIND is missing, before {cursor.shown()}",
        f"write AT MOST {length} AHEAD, or AT MOST {length} BEHIND, of the clock",
    )


def _heartbeats(cursor: Cursor) -> dict[str, Any]:
    return {"heartbeats": cursor.name("the column after HEARTBEATS FROM")}


def _deviation(cursor: Cursor) -> dict[str, Any]:
    position = cursor.position
    length = parse_duration_at(cursor, "the length after DEVIATION")
    clock = cursor.name("the clock after FROM") if cursor.accept("FROM") else None
    return {"deviation": DeviationClause(length, clock, position)}


def _rate(cursor: Cursor) -> dict[str, Any]:
    position = cursor.position
    gain = parse_duration_at(cursor, "the length after RATE")
    if not gain.length:
        message = "RATE needs a length above zero: a clock that may stand still has none"
        raise LanguageError(message, position=position, hint=f"write {_EXAMPLES['RATE']}, or leave it out")
    cursor.expect("PER", f"after RATE {gain}")
    return {"rate": RateClause(gain, parse_wall_clock(cursor, "PER"), position)}


def _letters(cursor: Cursor) -> dict[str, Any]:
    kept = Duration(INFINITY) if cursor.accept("ALL") else parse_wall_clock(cursor, "DEAD LETTERS KEEP")
    return {"letters": kept}


def _retain(cursor: Cursor) -> dict[str, Any]:
    return {"retain": parse_retain(cursor)}


def _overflow(cursor: Cursor) -> dict[str, Any]:
    for policy in Overflow:
        if cursor.accept(*policy.value.split()):
            return {"overflow": policy}
    raise cursor.error(
        f"OVERFLOW takes a policy, not {cursor.shown()}",
        "write OVERFLOW BLOCK, OVERFLOW DROP OLDEST or OVERFLOW DROP NEWEST",
    )


_READERS: Final[Mapping[str, Callable[[Cursor], dict[str, Any]]]] = {
    "DISORDER": _disorder,
    "CORRECTIONS WITHIN": _corrections,
    "STRICT": _strict,
    "ESTIMATED": read_estimated,
    "PER": _per,
    "LATENCY": _latency,
    "IDLE AFTER": _idle,
    "TIMEOUT": _timeout,
    "AT MOST": _beside_clock,
    "HEARTBEATS FROM": _heartbeats,
    "DEVIATION": _deviation,
    "RATE": _rate,
    "DEAD LETTERS KEEP": _letters,
    "RETAIN": _retain,
    "OVERFLOW": _overflow,
}
"""From the words that a clause begins with to what reads the rest of it."""


def parse_wall_clock(cursor: Cursor, clause: str) -> Duration:
    """Read a length of wall-clock time, which has a unit whatever timestamps count.

    Raises:
        LanguageError: there is none, or it has no unit or no length.
    """
    position = cursor.position
    length = parse_duration_at(cursor, f"the length after {clause}")
    written = f"write {clause} {Duration(max(length.length, 1) * MICROSECONDS['SECOND'], 'SECOND')}"
    if length.unit is None:
        message = f"{clause} {length} needs a unit: it is a length of wall-clock time"
        raise LanguageError(message, position=position, hint=written)
    if not length.length:
        raise LanguageError(f"{clause} needs a length above zero", position=position, hint=written)
    return length


def _refuse_misspelt(cursor: Cursor) -> None:
    """Say of a word that begins no clause which one was meant.

    Raises:
        LanguageError: what comes next looks like such a clause.
    """
    words = {words.split()[0]: words for words in _READERS}
    word = cursor.word()
    if word in words:
        rest = words[word].split()[1:]
        raise LanguageError(
            f"{' '.join(rest)} is missing after {word}",
            position=_behind(cursor),
            hint=f"write {_EXAMPLES[word]}",
        )
    if word in ("OF", "WAIT"):
        raise cursor.error(f"{word} belongs to PER", "write PER column OF ('a', 'b') WAIT 1 MINUTE")
    if word and (hint := did_you_mean(word, words)) is not None:
        raise cursor.error(f"{cursor.shown()} is unexpected here", hint)


def _behind(cursor: Cursor) -> Position:
    cursor.index += 1
    return cursor.position
