"""Interval joins: two streams whose rows meet where their timestamps are close, as Flink has them.

Before: `FROM a JOIN b ON a.k = b.k AND a.at BETWEEN b.at - 5 AND b.at + 2`
After: `FROM ISTREAM(SELECT * FROM a WINDOW(RANGE 6) JOIN b WINDOW(RANGE 3) ON a.k = b.k AND ...)`

A row of b is needed for as long as rows of a can follow that are close to it, and the other way round; so the
windows bound what has to be remembered. Each pair is there at the instant of its later row. Where one side's
rows never come first, that side has no window, and the pairs need no ISTREAM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Plan, TimeWindow
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import Call, Column, Expression, Literal, columns_of
from headrace.language.binding.scalars import Context, bind_scalar
from headrace.language.binding.scope import Bound, Scope
from headrace.language.dialect import Nested
from headrace.language.syntax import Scalar
from headrace.time import MICROSECONDS, Duration, TimeDomain


@dataclass(frozen=True)
class Near:
    """The sides of an interval join, with their windows.

    Attributes:
        left, right: the sides.
        both: whether both have one, so that a pair holds for longer than an instant.
    """

    left: Bound
    right: Bound
    both: bool


def near_sides(
    kind: JoinKind, left: Bound, right: Bound, pairs: Scope, nodes: Sequence[Scalar], position: Position
) -> Near | None:
    """The sides of a join with the windows that its conditions on their timestamps ask for.

    Args:
        kind: which rows the join keeps.
        left, right: what it joins.
        pairs: the columns of both.
        nodes: conditions that all pairs meet; those that cannot be bound here are passed over.
        position: where the join is.

    Returns:
        None if the sides are not streams without windows, or the conditions do not say both how much earlier
        and how much later one may be than the other; it is then joined as it is.

    Raises:
        LanguageError: rows without a partner are asked for, and the partner may come later.
    """
    width = len(left.plan.schema)
    times = timestamp_columns(left.plan), {width + place for place in timestamp_columns(right.plan)}
    if not all(times):
        return None
    parts = (part for node in nodes for part in _bound(node, pairs))
    bounds = [bound for part in parts for bound in _bounds(part, times)]
    least = max((low for low, _ in bounds if low is not None), default=None)
    most = min((high for _, high in bounds if high is not None), default=None)
    if least is None or most is None or (least, most) == (0, 0) or least > most:
        return None
    before, after = max(0, -least), max(0, most)
    _check_kind(kind, before, after, position)
    return Near(_remembered(left, before), _remembered(right, after), bool(before and after))


def _bound(node: Scalar, pairs: Scope) -> Sequence[Expression]:
    """The conjuncts of a condition, as far as it is one on the pairs."""
    if node.find(Nested):
        return ()
    with suppress(LanguageError):
        return conjuncts(bind_scalar(node, Context(pairs, "ON")))
    return ()


def _check_kind(kind: JoinKind, before: int, after: int, position: Position) -> None:
    """Refuse to keep rows without a partner where that may come after them."""
    waits = {
        JoinKind.LEFT: before, JoinKind.SEMI: before, JoinKind.ANTI: before, JoinKind.RIGHT: after,
        JoinKind.FULL: before or after, JoinKind.INNER: 0,
    }  # fmt: skip
    if waits[kind]:
        raise LanguageError(
            f"{kind.value} JOIN within an interval of time, where the partner of a row may come after it",
            position=position,
            hint="let the interval end with the row's own timestamp, or write WINDOW(RANGE ...) after both "
            "sides for an answer that changes when the partner comes",
        )


def _remembered(side: Bound, length: int) -> Bound:
    """A side whose rows are valid for so many instants after their own."""
    if not length:
        return side
    unit = "MICROSECOND" if side.plan.domain is TimeDomain.TIMESTAMP else None
    window: Plan = TimeWindow(side.plan, Duration(length + 1, unit))
    return replace(side, plan=window)


_Bound = tuple[int | None, int | None]
"""How much later the left row is than the right one at least and at most, in instants."""

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _bounds(part: Expression, times: tuple[frozenset[int], set[int]]) -> Iterator[_Bound]:
    """What a condition says of the distance between the timestamps of both sides."""
    columns = columns_of(part)
    if len(columns) != 2 or not (columns & times[0] and columns & times[1]):
        return
    match part:
        case Call(function="BETWEEN", arguments=(tested, low, high)):
            yield from _compared(">=", tested, low, times)
            yield from _compared("<=", tested, high, times)
        case Call(function="<" | "<=" | ">" | ">=" | "=" as operator, arguments=(one, other)):
            yield from _compared(operator, one, other, times)


def _compared(
    operator: str, one: Expression, other: Expression, times: tuple[frozenset[int], set[int]]
) -> Iterator[_Bound]:
    first, second = _sum_of(one), _sum_of(other)
    if first is None or second is None:
        return
    total = _added(first, second, -1)
    signs = {place: sign for place, sign in total.columns if sign}
    ours = [sign for place, sign in signs.items() if place in times[0]]
    theirs = [sign for place, sign in signs.items() if place in times[1]]
    if len(signs) != 2 or sorted((*ours, *theirs)) != [-1, 1] or len(ours) != 1:
        return
    # ours - theirs compared with the constant, or the opposite.
    constant = -total.constant * ours[0]
    match operator if ours[0] == 1 else _MIRRORED[operator]:
        case ">":
            yield constant + 1, None
        case ">=":
            yield constant, None
        case "<":
            yield None, constant - 1
        case "<=":
            yield None, constant
        case _:
            yield constant, constant


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
