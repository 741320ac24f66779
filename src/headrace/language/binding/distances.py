"""Conditions on two timestamps, such as `ABS(a.at - b.at) < 10`, and the distances for which they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Final

from headrace.expressions.tree import Call, Cast, Column, Expression, Literal, Literals, columns_of
from headrace.schema import BIGINT, DATE, DOUBLE, TIMESTAMP
from headrace.time import MICROSECONDS

Times = tuple[AbstractSet[int], AbstractSet[int]]
"""The columns that hold one timestamp, and those that hold another."""

Distance = tuple[int | None, int | None]
"""How much later one timestamp is than another at least and at most, in instants."""

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ANY: Final[Distance] = (None, None)
_DAY: Final = MICROSECONDS["DAY"]
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def distances(part: Expression, times: Times) -> Sequence[Distance]:
    """The bounds that a comparison sets to the distance of two timestamps, where it says nothing else.

    Args:
        part: the comparison.
        times: the columns that hold the one, and those that hold the other.

    Returns:
        Nothing if it is not about these alone; BETWEEN says two things.
    """
    if not _is_about(part, times):
        return ()
    found = [_compared(*one, times, exactly=True) for one in _comparisons(part)]
    return [one for one in found if one != _ANY]


def hull(part: Expression, times: Times) -> Distance:
    """A least and a greatest distance of two timestamps for which a condition may be true.

    Args:
        part: any condition: comparisons of the timestamps, of what they are rounded to and of their
            differences, with AND, OR and NOT.
        times: the columns that hold the one, and those that hold the other.

    Returns:
        None in the place of a bound that does not follow.
    """
    return _hull(part, times) if _is_about(part, times) else _ANY


def _hull(part: Expression, times: Times) -> Distance:
    match part:
        case Call(function="AND", arguments=arguments):
            return _intersected([_hull(one, times) for one in arguments])
        case Call(function="OR", arguments=arguments):
            return _joined([_hull(one, times) for one in arguments])
        case Call(function="NOT", arguments=(inner,)):
            return _hull_of_not(inner, times)
        case Call(function="IN", arguments=(tested, Literals(each=listed))):
            return _joined([_compared("=", tested, one, times) for one in listed])
        case Call(function="IN", arguments=(tested, *listed)):
            return _joined([_compared("=", tested, one, times) for one in listed])
        case _:
            return _intersected([_compared(*one, times) for one in _comparisons(part)])


def _hull_of_not(part: Expression, times: Times) -> Distance:
    match part:
        case Call(function="NOT", arguments=(inner,)):
            return _hull(inner, times)
        case Call(function="AND", arguments=arguments):
            return _joined([_hull_of_not(one, times) for one in arguments])
        case Call(function="OR", arguments=arguments):
            return _intersected([_hull_of_not(one, times) for one in arguments])
        case _:
            found = [
                _compared(_OPPOSITE[operator], one, other, times) if operator in _OPPOSITE else _ANY
                for operator, one, other in _comparisons(part)
            ]
            return _joined(found) if found else _ANY


def _intersected(parts: Iterable[Distance]) -> Distance:
    lows, highs = zip(*parts, (None, None), strict=True)
    return (
        max((low for low in lows if low is not None), default=None),
        min((high for high in highs if high is not None), default=None),
    )


def _joined(parts: Sequence[Distance]) -> Distance:
    lows, highs = zip(*parts, strict=True)
    return None if None in lows else min(lows), None if None in highs else max(highs)


def _is_about(part: Expression, times: Times) -> bool:
    columns = columns_of(part)
    return len(columns) == 2 and bool(columns & times[0] and columns & times[1])


def _comparisons(part: Expression) -> list[tuple[str, Expression, Expression]]:
    """The comparisons that a condition is made of, all of which must hold; none if it is of another kind."""
    match part:
        case Call(function="BETWEEN", arguments=(tested, low, high)):
            return [(">=", tested, low), ("<=", tested, high)]
        case Call(function="<" | "<=" | ">" | ">=" | "=" as operator, arguments=(one, other)):
            return [(operator, one, other)]
        case _:
            return []


def _compared(
    operator: str, one: Expression, other: Expression, times: Times, *, exactly: bool = False
) -> Distance:
    apart = _absolute(operator, one, other)
    if apart is not None and not exactly:
        return _intersected([_compared(*found, times) for found in apart])
    first, second = sum_of(one), sum_of(other)
    if first is None or second is None:
        return _ANY
    total = first.plus(second, -1)
    ours, theirs = (sum(count for place, count in total.columns if place in places) for places in times)
    if ours != -theirs or not ours or (exactly and (not total.is_exact or abs(ours) != 1)):
        return _ANY
    # So many times the one less the other, and something between two numbers, is compared with 0.
    if ours < 0:
        operator = _MIRRORED[operator]
    least, most = sorted((-total.least / ours, -total.most / ours))
    match operator:
        case ">":
            return floor(least) + 1, None
        case ">=":
            return ceil(least), None
        case "<":
            return None, ceil(most) - 1
        case "<=":
            return None, floor(most)
        case _:
            return ceil(least), floor(most)


def _absolute(
    operator: str, one: Expression, other: Expression
) -> list[tuple[str, Expression, Expression]] | None:
    """`ABS(x) <= y` as `x <= y` and `-x <= y`; None if it is something else."""
    match one, other:
        case Call(function="ABS", arguments=(inner,)), _ if operator in ("<", "<=", "="):
            operator = "<=" if operator == "=" else operator
            return [(operator, inner, other), (operator, Call("NEGATE", (inner,), inner.type), other)]
        case _, Call(function="ABS") if operator in (">", ">=", "="):
            return _absolute(_MIRRORED[operator], other, one)
        case _:
            return None


@dataclass(frozen=True)
class Sum:
    """Columns, each so many times, and something between two numbers.

    Attributes:
        columns: pairs of a column's place and how many times it is added.
        least, most: what is added besides, at least and at most.
    """

    columns: tuple[tuple[int, Fraction], ...]
    least: Fraction
    most: Fraction

    @property
    def is_exact(self) -> bool:
        """Whether it is known what is added besides."""
        return self.least == self.most

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        """The sum or the difference of two."""
        columns = dict(self.columns)
        for place, count in other.columns:
            columns[place] = columns.get(place, Fraction(0)) + sign * count
        bounds = sorted((sign * other.least, sign * other.most))
        kept = tuple((place, count) for place, count in columns.items() if count)
        return Sum(kept, self.least + bounds[0], self.most + bounds[1])

    def times(self, factor: Fraction, least: Fraction = Fraction(0), most: Fraction = Fraction(0)) -> Sum:
        """So many times the sum, and something between two numbers."""
        bounds = sorted((self.least * factor, self.most * factor))
        columns = tuple((place, count * factor) for place, count in self.columns if factor)
        return Sum(columns, bounds[0] + least, bounds[1] + most)


def sum_of(part: Expression) -> Sum | None:
    """A point in time, a time between two of them, or what they are rounded to, as a sum; None if it is none.

    TIMESTAMPs are microseconds, DATEs days.
    """
    match part:
        case Column(index=index):
            return Sum(((index, Fraction(1)),), Fraction(0), Fraction(0))
        case Literal(value=int() | Decimal() as number) if not isinstance(number, bool):
            return _number(Fraction(number))
        case Literal(value=float() as number) if isfinite(number):
            return _number(Fraction(number))
        case Cast(argument=inner):
            return _cast(part, inner)
        case Call(function="+" | "-" | "*", type=kind) if kind == DOUBLE:
            # Such sums may lose digits, and the instants with them.
            return None
        case Call(function=name, arguments=arguments) if name in _SUMS:
            return _SUMS[name](arguments)
        case _:
            return None


def _number(value: Fraction) -> Sum:
    return Sum((), value, value)


def _constant(part: Expression) -> Fraction | None:
    found = sum_of(part)
    return found.least if found is not None and found.is_exact and not found.columns else None


def _cast(part: Cast, inner: Expression) -> Sum | None:
    found = sum_of(inner)
    if found is None or part.type == inner.type:
        return found
    if (inner.type, part.type) == (TIMESTAMP, DATE):
        return found.times(Fraction(1, _DAY), Fraction(1 - _DAY, _DAY))
    if (inner.type, part.type) == (DATE, TIMESTAMP):
        return found.times(Fraction(_DAY))
    if part.type == DOUBLE and inner.type == BIGINT:
        # The largest whole numbers are so far from the next DOUBLE.
        return found if not found.columns else found.times(Fraction(1), Fraction(-1024), Fraction(1024))
    if part.type != BIGINT or inner.type in (TIMESTAMP, DATE):
        return None
    return found.times(Fraction(1), Fraction(-1), Fraction(1))


def _added(arguments: tuple[Expression, ...], sign: int) -> Sum | None:
    one, other = map(sum_of, arguments)
    return None if one is None or other is None else one.plus(other, sign)


def _negated(arguments: tuple[Expression, ...]) -> Sum | None:
    found = sum_of(arguments[0])
    return None if found is None else found.times(Fraction(-1))


def _multiplied(arguments: tuple[Expression, ...]) -> Sum | None:
    for factor, other in (arguments, arguments[::-1]):
        count, found = _constant(factor), sum_of(other)
        if count is not None and found is not None:
            return found.times(count)
    return None


def _whole_quotient(arguments: tuple[Expression, ...]) -> Sum | None:
    found, divisor = sum_of(arguments[0]), _constant(arguments[1])
    if found is None or not divisor:
        return None
    # Towards zero.
    return found.times(1 / divisor, Fraction(-1), Fraction(1))


def _quotient(arguments: tuple[Expression, ...]) -> Sum | None:
    # Rounded, as DOUBLEs and DECIMALs are.
    return _whole_quotient(arguments)


def _rounded(arguments: tuple[Expression, ...]) -> Sum | None:
    found = sum_of(arguments[0]) if len(arguments) == 1 else None
    return None if found is None else found.times(Fraction(1), Fraction(-1), Fraction(1))


def _moved(arguments: tuple[Expression, ...]) -> Sum | None:
    unit, count, moment = arguments
    name = unit.value if isinstance(unit, Literal) else None
    found, number = sum_of(moment), _constant(count)
    if found is None or number is None or not isinstance(name, str):
        return None
    if name in MICROSECONDS:
        return found.plus(_number(number * MICROSECONDS[name]))
    if name not in _MONTHS:
        return None
    # Months have 28 to 31 days, and what is more than the last day of one ends with it.
    days = sorted(number * _MONTHS[name] * length for length in (28, 31))
    return found.plus(Sum((), days[0] * _DAY, days[1] * _DAY))


def _difference(arguments: tuple[Expression, ...]) -> Sum | None:
    unit, start, end = arguments
    length = (
        MICROSECONDS.get(unit.value) if isinstance(unit, Literal) and isinstance(unit.value, str) else None
    )
    one, other = sum_of(end), sum_of(start)
    if length is None or one is None or other is None:
        return None
    slack = Fraction(0) if length == 1 else Fraction(1)
    return one.plus(other, -1).times(Fraction(1, length), -slack, slack)


def _days_between(arguments: tuple[Expression, ...]) -> Sum | None:
    end, start = (sum_of(part) if part.type == DATE else _days(part) for part in arguments)
    return None if end is None or start is None else end.plus(start, -1)


def _days(part: Expression) -> Sum | None:
    found = sum_of(part) if part.type == TIMESTAMP else None
    return None if found is None else found.times(Fraction(1, _DAY), Fraction(1 - _DAY, _DAY))


def _truncated(arguments: tuple[Expression, ...]) -> Sum | None:
    unit, moment = arguments[:2]
    name = unit.value.upper() if isinstance(unit, Literal) and isinstance(unit.value, str) else ""
    months = _MONTHS.get(name)
    length = MICROSECONDS.get(name, 0) if months is None else months * 31 * _DAY
    length = 7 * _DAY if name == "WEEK" else length
    found = sum_of(moment) if moment.type == TIMESTAMP else None
    return None if found is None or not length else found.times(Fraction(1), Fraction(1 - length))


def _in_units(length: int) -> Callable[[tuple[Expression, ...]], Sum | None]:
    def counted(arguments: tuple[Expression, ...]) -> Sum | None:
        found = sum_of(arguments[0]) if arguments[0].type == TIMESTAMP else None
        return None if found is None else found.times(Fraction(1, length), Fraction(1 - length, length))

    return counted


_SUMS: Final[dict[str, Callable[[tuple[Expression, ...]], Sum | None]]] = {
    "+": lambda arguments: _added(arguments, 1),
    "-": lambda arguments: _added(arguments, -1),
    "NEGATE": _negated,
    "*": _multiplied,
    "DIV": _whole_quotient,
    "/": _quotient,
    "FLOOR": _rounded,
    "CEIL": _rounded,
    "ROUND": _rounded,
    "TIMESTAMPADD": _moved,
    "TIMESTAMPDIFF": _difference,
    "DATEDIFF": _days_between,
    "DATE_TRUNC": _truncated,
    "UNIX_MICROS": _in_units(1),
    "UNIX_MILLIS": _in_units(1_000),
    "UNIX_SECONDS": _in_units(1_000_000),
}
