"""What a condition says of two timestamps: `a.ts >= b.ts - INTERVAL '5' MINUTE`, `a.at - b.at < 10`."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from headrace.expressions.tree import Call, Column, Expression, Literal, columns_of
from headrace.time import MICROSECONDS

Times = tuple[AbstractSet[int], AbstractSet[int]]
"""The columns that hold one timestamp, and those that hold another."""

Distance = tuple[int | None, int | None]
"""How much later one timestamp is than another at least and at most, in instants."""

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def distances(part: Expression, times: Times) -> Sequence[Distance]:
    """What a comparison says of how much later one timestamp is than another.

    Args:
        part: the comparison.
        times: the columns that hold the one, and those that hold the other.

    Returns:
        Nothing if it is not about these alone; BETWEEN says two things.
    """
    columns = columns_of(part)
    if len(columns) != 2 or not (columns & times[0] and columns & times[1]):
        return ()
    match part:
        case Call(function="BETWEEN", arguments=(tested, low, high)):
            compared = [_compared(">=", tested, low, times), _compared("<=", tested, high, times)]
        case Call(function="<" | "<=" | ">" | ">=" | "=" as operator, arguments=(one, other)):
            compared = [_compared(operator, one, other, times)]
        case _:
            return ()
    return [found for found in compared if found is not None]


def _compared(operator: str, one: Expression, other: Expression, times: Times) -> Distance | None:
    first, second = _sum_of(one), _sum_of(other)
    if first is None or second is None:
        return None
    total = _added(first, second, -1)
    signs = {place: sign for place, sign in total.columns if sign}
    ours = [sign for place, sign in signs.items() if place in times[0]]
    theirs = [sign for place, sign in signs.items() if place in times[1]]
    if len(signs) != 2 or sorted((*ours, *theirs)) != [-1, 1] or len(ours) != 1:
        return None
    # The one less the other compared with the constant, or the opposite.
    constant = -total.constant * ours[0]
    match operator if ours[0] == 1 else _MIRRORED[operator]:
        case ">":
            return constant + 1, None
        case ">=":
            return constant, None
        case "<":
            return None, constant - 1
        case "<=":
            return None, constant
        case _:
            return constant, constant


@dataclass(frozen=True)
class _Sum:
    """Columns, each so many times, and a number of instants."""

    columns: tuple[tuple[int, int], ...]
    constant: int


def _added(one: _Sum, other: _Sum, sign: int) -> _Sum:
    columns = dict(one.columns)
    for place, count in other.columns:
        columns[place] = columns.get(place, 0) + sign * count
    return _Sum(tuple(columns.items()), one.constant + sign * other.constant)


def _sum_of(part: Expression) -> _Sum | None:
    """A point in time, or a time between two of them, as a sum; None if it is another expression."""
    match part:
        case Column(index=index):
            return _Sum(((index, 1),), 0)
        case Literal(value=int() as number) if not isinstance(number, bool):
            return _Sum((), number)
        case Call(function="TIMESTAMPADD", arguments=(Literal(value=str() as unit), count, moment)):
            length, by, moved = MICROSECONDS.get(unit), _sum_of(count), _sum_of(moment)
            if length is None or moved is None or by is None or by.columns:
                return None
            return replace(moved, constant=moved.constant + by.constant * length)
        case Call(function="TIMESTAMPDIFF", arguments=(Literal(value="MICROSECOND"), start, end)):
            return _both(_sum_of(end), _sum_of(start), -1)
        case Call(function="+" | "-" as sign, arguments=(one, other)):
            return _both(_sum_of(one), _sum_of(other), 1 if sign == "+" else -1)
        case _:
            return None


def _both(one: _Sum | None, other: _Sum | None, sign: int) -> _Sum | None:
    return None if one is None or other is None else _added(one, other, sign)
