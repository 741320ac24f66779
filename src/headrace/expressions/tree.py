"""Bound scalar expressions: frozen trees whose columns are positions and whose types are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """A column of the input, by position; the name is for people and does not count in comparisons."""

    index: int
    name: str = field(compare=False)
    type: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant: bool, int, float, Decimal, str, date, aware datetime or None."""

    value: object
    type: pa.DataType

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and math.isnan(self.value):
            # One object for all NaNs, so that plans with one equal themselves.
            object.__setattr__(self, "value", math.nan)


@dataclass(frozen=True)
class Call:
    """A function or operator of the function table, with arguments already cast to what it takes."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True)
class Cast:
    """A change of type; a value that has no counterpart makes the row fail."""

    argument: Expression
    type: pa.DataType


@dataclass(frozen=True)
class Case:
    """`CASE WHEN c1 THEN v1 ... ELSE otherwise END`; only the branch that is taken may fail."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: pa.DataType


Expression = Column | Literal | Call | Cast | Case


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the rows of a group; `argument` is None for COUNT(*).

    Attributes:
        function: COUNT, SUM, AVG, MIN, MAX, STDDEV or VARIANCE (the sample forms, as in Spark SQL).
        argument: what is aggregated; NULLs are passed over.
        type: the result's type.
    """

    function: str
    argument: Expression | None
    type: pa.DataType


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions, left to right."""
    match expression:
        case Column() | Literal():
            return ()
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument):
            return (argument,)
        case Case(branches=branches, otherwise=otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            assert_never(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, top down."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of the input columns that the expression reads."""
    return frozenset(part.index for part in walk(expression) if isinstance(part, Column))


def transform_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """The expression with every column replaced by what `change` makes of it."""
    match expression:
        case Column():
            return change(expression)
        case Literal():
            return expression
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(transform_columns(part, change) for part in arguments))
        case Cast(argument=argument):
            return replace(expression, argument=transform_columns(argument, change))
        case Case(branches=branches, otherwise=otherwise):
            changed = tuple(
                (transform_columns(condition, change), transform_columns(value, change))
                for condition, value in branches
            )
            return replace(expression, branches=changed, otherwise=transform_columns(otherwise, change))
        case _:
            assert_never(expression)


def shift_columns(expression: Expression, offset: int) -> Expression:
    """The expression over an input whose columns start `offset` positions later."""
    return transform_columns(expression, lambda column: replace(column, index=column.index + offset))
