"""INTERVAL constants as they are written: `INTERVAL '1' HOUR`, `INTERVAL '1 day 2 hours'` and their like."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.expressions.coercion import literal
from headrace.expressions.intervals import UNITS, make_interval
from headrace.expressions.tree import Expression
from headrace.language.dialect import position_of, shown_of
from headrace.schema import BIGINT
from headrace.time import CALENDAR, MICROSECONDS, unit_of

_HINT: Final = "write INTERVAL '1' HOUR, INTERVAL '90' MINUTE, INTERVAL '1 02:30:00' DAY TO SECOND"
_COUNT_HINT: Final = "before a unit write a whole number: INTERVAL n HOUR, or CAST it to BIGINT"
_NUMBER: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]{1,6})?)\s*")
_PIECE: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)")
_SIXTY: Final = r"[0-5]?[0-9]"
_CLOCK: Final = re.compile(rf"([+-]?)([0-9]+):({_SIXTY})(?::({_SIXTY}(?:\.[0-9]{{1,6}})?))?(?![0-9])")
_MONTHS: Final = re.compile(r"\s*([+-]?)([0-9]+)-(0?[0-9]|1[01])\s*")
_DAYS: Final = re.compile(
    rf"\s*([+-]?)([0-9]+)\s+([01]?[0-9]|2[0-3])(?::({_SIXTY})(?::({_SIXTY}(?:\.[0-9]{{1,6}})?))?)?\s*"
)
_PARTS: Final = {"HOUR": 1, "MINUTE": 2, "SECOND": 3}
"""How many parts of a time of day are up to a unit."""


def bind_interval(node: Any, bind: Callable[[Any], Expression]) -> Expression:
    """The INTERVAL that a text means, or a number of units.

    Args:
        node: sqlglot's tree of it.
        bind: binds an expression in it.

    Raises:
        LanguageError: it is not a valid INTERVAL.
    """
    amount, unit = node.this, node.args.get("unit")
    text = str(amount.this) if isinstance(amount, exp.Literal) else None
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = f"-{amount.this.this}"
    if isinstance(unit, exp.IntervalSpan):
        found = _spanning(text or "", str(unit.this.name).upper(), str(unit.expression.name).upper())
    elif unit is None:
        found = _written(text or "")
    elif text is None:
        found = _counted(bind(amount), _unit(str(unit.name)))
    else:
        found = _of_unit(text, _unit(str(unit.name)))
    if found is None:
        amount_shown, hint = (shown_of(amount), _COUNT_HINT) if text is None else (f"'{text}'", _HINT)
        shown = f"{amount_shown} {shown_of(unit) if unit is not None else ''}".strip()
        raise LanguageError(f"{shown} is not a valid INTERVAL", position=position_of(node), hint=hint)
    return found


def _unit(word: str) -> str | None:
    """The unit that a word means, in singular and upper case."""
    singular = word.upper().removesuffix("S")
    if singular in UNITS:
        return singular
    return {"MON": "MONTH", "Y": "YEAR", "YR": "YEAR"}.get(singular) or unit_of(word)


def _counted(count: Expression, unit: str | None) -> Expression | None:
    return make_interval(count, unit) if unit is not None and count.type == BIGINT else None


def _of_unit(text: str, unit: str | None) -> Expression | None:
    number = _NUMBER.fullmatch(text)
    if number is None or unit is None:
        return None
    if "." not in number[1]:
        return make_interval(literal(int(number[1])), unit)
    micros = Decimal(number[1]) * MICROSECONDS.get(unit, 0)
    whole = micros and micros == micros.to_integral_value()
    return make_interval(literal(int(micros)), "MICROSECOND") if whole else None


def _written(text: str) -> Expression | None:
    """`1 day 2 hours`, `2 months`, `1 day 02:30:00`: a sum of units, as PostgreSQL writes it."""
    rest, micros, months = text, 0, 0
    clock = _CLOCK.search(rest)
    if clock is not None:
        rest = rest[: clock.start()] + rest[clock.end() :]
        micros += _clock(clock[1], clock[2], clock[3], clock[4])
    pieces = _PIECE.findall(rest)
    if _PIECE.sub("", rest).strip(" ,") or not (pieces or clock):
        return None
    for number, word in pieces:
        unit = _unit(word)
        if unit is None or ("." in number and unit in CALENDAR):
            return None
        if unit in CALENDAR:
            months += int(number) * CALENDAR[unit]
        else:
            micros += int(Decimal(number) * MICROSECONDS[unit])
    if months and micros:
        return None
    if len(pieces) == 1 and clock is None:
        return _of_unit(pieces[0][0], _unit(pieces[0][1]))
    return make_interval(literal(months or micros), "MONTH" if months else "MICROSECOND")


def _spanning(text: str, first: str, last: str) -> Expression | None:
    """`'1-2' YEAR TO MONTH`, `'1 02:30:00' DAY TO SECOND`, `'02:30' HOUR TO MINUTE` and so on."""
    if (first, last) == ("YEAR", "MONTH") and (found := _MONTHS.fullmatch(text)):
        months = int(found[2]) * 12 + int(found[3])
        return make_interval(literal(-months if found[1] == "-" else months), "MONTH")
    if first == "DAY" and last in _PARTS and (found := _DAYS.fullmatch(text)):
        if sum(part is not None for part in found.groups()[2:]) != _PARTS[last]:
            return None
        micros = int(found[2]) * MICROSECONDS["DAY"] + _clock("", found[3], found[4], found[5])
        return make_interval(literal(-micros if found[1] == "-" else micros), "MICROSECOND")
    clock = _CLOCK.fullmatch(text.strip())
    if clock is None or (first, last) not in (("HOUR", "MINUTE"), ("HOUR", "SECOND"), ("MINUTE", "SECOND")):
        return None
    if (clock[4] is not None) != ((first, last) == ("HOUR", "SECOND")):
        return None
    parts = (clock[2], clock[3], clock[4]) if first == "HOUR" else ("0", clock[2], clock[3])
    return make_interval(literal(_clock(clock[1], *parts)), "MICROSECOND")


def _clock(sign: str, hours: str, minutes: str | None, seconds: str | None) -> int:
    """The microseconds of a time of day."""
    micros = (int(hours) * 60 + int(minutes or 0)) * MICROSECONDS["MINUTE"]
    micros += int(Decimal(seconds or 0) * MICROSECONDS["SECOND"])
    return -micros if sign == "-" else micros
