"""Predicates as lists of conjuncts, and the equalities of a join among them."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.expressions.tree import Call, Expression, columns_of, shift_columns
from headrace.schema import BOOLEAN

Equality = tuple[Expression, Expression]


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """The parts of a predicate that AND connects, left to right."""
    match predicate:
        case Call(function="AND", arguments=arguments):
            return tuple(part for argument in arguments for part in conjuncts(argument))
        case _:
            return (predicate,)


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """The parts connected by AND from the left, or None if there are no parts."""
    result: Expression | None = None
    for part in parts:
        result = part if result is None else Call("AND", (result, part), BOOLEAN)
    return result


def split_equalities(
    parts: Iterable[Expression], left_width: int
) -> tuple[tuple[Equality, ...], tuple[Expression, ...]]:
    """The equalities between the two sides of a join, and what is left of the conjuncts.

    Args:
        parts: conjuncts over the columns of both inputs, the left ones first.
        left_width: the number of the left input's columns.

    Returns:
        Pairs of an expression over the left and one over the right input, and the other conjuncts.
    """
    equalities: list[Equality] = []
    rest: list[Expression] = []
    for part in parts:
        equality = _equality(part, left_width)
        if equality is None:
            rest.append(part)
        else:
            equalities.append(equality)
    return tuple(equalities), tuple(rest)


def _equality(part: Expression, left_width: int) -> Equality | None:
    match part:
        case Call(function="=", arguments=(one, other)):
            pass
        case _:
            return None
    sides = [{index < left_width for index in columns_of(side)} for side in (one, other)]
    if sides == [{False}, {True}]:
        one, other = other, one
    elif sides != [{True}, {False}]:
        return None
    return one, shift_columns(other, -left_width)
