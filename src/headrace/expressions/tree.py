"""Bound scalar expressions: frozen trees whose columns are positions and whose types are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Final, assert_never

import pyarrow as pa

from headrace.expressions.user import UserAggregate, UserFunction


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
            # One object for all NaNs, also in `Literals`, so that plans with one equal themselves.
            object.__setattr__(self, "value", math.nan)


@dataclass(frozen=True)
class Literals:
    """Constants of one type, one after the other among the arguments of IN: as many `Literal`s in one object.

    Attributes:
        values: those of the `Literal`s.
        type: the type of each of them.
    """

    values: tuple[object, ...]
    type: pa.DataType

    def __post_init__(self) -> None:
        if pa.types.is_floating(self.type):
            object.__setattr__(self, "values", tuple(one.value for one in self.each))

    @property
    def each(self) -> tuple[Literal, ...]:
        """The constants one by one."""
        return tuple(Literal(value, self.type) for value in self.values)

    @cached_property
    def array(self) -> pa.Array:
        """The values for the functions of Arrow."""
        return pa.array(self.values, self.type)

    def __repr__(self) -> str:
        # Identities of state are made of such texts, and do not depend on how constants are held.
        return ", ".join(f"Literal(value={value!r}, type={self.type!r})" for value in self.values)


@dataclass(frozen=True)
class Call:
    """A function or operator, with arguments already cast to what it takes.

    Attributes:
        function: its name in the function table, or that of the user's function.
        arguments: what it is applied to.
        type: the result's type.
        user: the user's function, or None for one of the function table.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    user: UserFunction | None = None


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


LONG: Final = 64
"""A list of more constants than these is held in one object."""

Expression = Column | Literal | Literals | Call | Cast | Case

Arguments = tuple[Expression, ...]


def listed(constants: Sequence[Literal]) -> Arguments:
    """Constants of one type as arguments of IN: one by one, or in one object if they are many."""
    if len(constants) <= LONG:
        return tuple(constants)
    return (Literals(tuple(constant.value for constant in constants), constants[0].type),)


@dataclass(frozen=True)
class SortKey:
    """What rows are sorted by.

    Attributes:
        expression: the values to sort by; NaN counts as the largest number.
        descending: whether the largest value comes first.
        nulls_first: whether NULL comes before all values; as in Spark, it does unless `descending`.
    """

    expression: Expression
    descending: bool = False
    nulls_first: bool = True


class Side(Enum):
    """Which number an approximate aggregate gives; the value is what is written behind its bound."""

    ESTIMATE = ""
    LOWER = "LOWER BOUND"
    UPPER = "UPPER BOUND"


@dataclass(frozen=True)
class Within:
    """How far an approximate aggregate may be from the exact one.

    Attributes:
        percent: by so much of a hundred of the exact value at most.
        side: the estimate, or a bound between which and the other one the exact value lies.
    """

    percent: Decimal
    side: Side = Side.ESTIMATE


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the rows of a group; `argument` is None for COUNT(*).

    Attributes:
        function: a name of the aggregate table, no synonym, such as COUNT, SUM or PERCENTILE, or that of the
            user's aggregate.
        argument: what is aggregated; NULLs are passed over, except by FIRST and LAST.
        type: the result's type.
        others: the arguments after the first one: the other column of CORR, those of COUNT(DISTINCT a, b),
            the fraction of PERCENTILE.
        distinct: whether equal values count once.
        order: what the rows are sorted by, for FIRST and LAST; rows that are equal in it follow the argument.
        condition: FILTER (WHERE condition): only rows for which it is true count; None for all rows.
        user: the user's aggregate, or None for one of the table.
        within: how far from the exact value it may be, None for the exact one; `ApproximateAggregate` has
            such calls alone.
    """

    function: str
    argument: Expression | None
    type: pa.DataType
    others: tuple[Expression, ...] = ()
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    condition: Expression | None = None
    user: UserAggregate | None = None
    # Identities of state are made of such texts, and have not changed by it; see `named_by`.
    within: Within | None = field(default=None, repr=False)


def arguments_of(call: AggregateCall) -> tuple[Expression, ...]:
    """What an aggregate reads of a row that it takes in: its arguments, then what it sorts by."""
    first = () if call.argument is None else (call.argument,)
    return (*first, *call.others, *(key.expression for key in call.order))


def expressions_of(call: AggregateCall) -> tuple[Expression, ...]:
    """All expressions of an aggregate over the rows of its group: `arguments_of` and the condition."""
    return (*arguments_of(call), *(() if call.condition is None else (call.condition,)))


def transform_call(call: AggregateCall, change: Callable[[Expression], Expression]) -> AggregateCall:
    """The aggregate with every one of its expressions changed."""
    return replace(
        call,
        argument=None if call.argument is None else change(call.argument),
        others=tuple(map(change, call.others)),
        order=tuple(replace(key, expression=change(key.expression)) for key in call.order),
        condition=None if call.condition is None else change(call.condition),
    )


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions, left to right."""
    match expression:
        case Column() | Literal() | Literals():
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
        case Literal() | Literals():
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
