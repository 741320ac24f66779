"""Expressions of estimates, and how far these may be off: by the delta method.

An estimate is a sum over the rows that are kept, each times its weight w (Horvitz and Thompson, JASA 1952).
Its variance is estimated by the sum of w (w - 1) y^2 over what each adds, and the covariance of two by that
of w (w - 1) y z. Of what is computed of estimates the variance is that of its linear part at the estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.coercion import is_numeric
from headrace.expressions.functions.functions import literal, make_cast, resolve
from headrace.expressions.tree import Call, Cast, Column, Expression, columns_of
from headrace.schema import DOUBLE

ZERO: Final = literal(0.0)
ONE: Final = literal(1.0)


@dataclass(frozen=True)
class Dual:
    """A number with its derivatives.

    Attributes:
        value: the number (a DOUBLE).
        slopes: by each estimate that it depends on the derivative (DOUBLEs).
    """

    value: Expression
    slopes: Mapping[int, Expression]


def plus(left: Expression, right: Expression) -> Expression:
    """The sum of two DOUBLEs; one of them where the other is the constant 0."""
    if ZERO in (left, right):
        return right if left == ZERO else left
    return resolve("+", (left, right))


def times(left: Expression, right: Expression) -> Expression:
    """The product of two DOUBLEs; one of them where the other is the constant 1."""
    if ONE in (left, right):
        return right if left == ONE else left
    return resolve("*", (left, right))


def quotient(left: Dual, right: Dual) -> Dual:
    """A quotient, which fails where the divisor is 0."""
    value, inverse = resolve("/", (left.value, right.value)), resolve("/", (ONE, right.value))
    turned = times(resolve("NEGATE", (value,)), inverse)
    return Dual(value, _sum(_scaled(left, inverse), _scaled(right, turned)))


def dual_of(expression: Expression, estimate: Callable[[int], Dual | None]) -> Dual | None:
    """A number that is computed of estimates, with its derivatives.

    Args:
        expression: what is computed.
        estimate: the estimate in a column, or None where that holds something else.

    Returns:
        None where it is computed in another way than by `+`, `-`, `*`, `/` and casts.
    """
    if isinstance(expression, Column) and (known := estimate(expression.index)) is not None:
        return known
    if all(estimate(place) is None for place in columns_of(expression)):
        return _constant(expression)
    match expression:
        case Cast(argument=argument, type=dtype) if is_numeric(dtype):
            return dual_of(argument, estimate)
        case Call(function="+" | "-" | "*" | "/" | "NEGATE", arguments=arguments):
            parts = [dual_of(part, estimate) for part in arguments]
            found = [part for part in parts if part is not None]
            return _combined(expression.function, found) if len(found) == len(parts) else None
        case _:
            return None


def _constant(expression: Expression) -> Dual | None:
    try:
        return Dual(make_cast(expression, DOUBLE), {})
    except LanguageError:
        return None


def _combined(function: str, parts: list[Dual]) -> Dual:
    if function == "NEGATE":
        (part,) = parts
        return Dual(resolve("NEGATE", (part.value,)), _scaled(part, literal(-1.0)))
    left, right = parts
    match function:
        case "+":
            return Dual(plus(left.value, right.value), _sum(left.slopes, right.slopes))
        case "-":
            negative = _scaled(right, literal(-1.0))
            return Dual(resolve("-", (left.value, right.value)), _sum(left.slopes, negative))
        case "*":
            slopes = _sum(_scaled(left, right.value), _scaled(right, left.value))
            return Dual(times(left.value, right.value), slopes)
        case _:
            return quotient(left, right)


def _scaled(part: Dual, factor: Expression) -> dict[int, Expression]:
    return {place: times(slope, factor) for place, slope in part.slopes.items()}


def _sum(left: Mapping[int, Expression], right: Mapping[int, Expression]) -> dict[int, Expression]:
    places = dict.fromkeys((*left, *right))
    return {place: plus(left.get(place, ZERO), right.get(place, ZERO)) for place in places}
