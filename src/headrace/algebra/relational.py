"""The operators of the relational algebra among the plan nodes, applied at every instant, and the source.

Joins have a module of their own; `headrace.algebra.nodes` says what a node is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from headrace.algebra.arity import Binary, Unary
from headrace.algebra.checks import require_boolean, require_columns, require_same_types
from headrace.algebra.kinds import SetKind
from headrace.errors import PlanError
from headrace.expressions.tree import AggregateCall, Expression, expressions_of
from headrace.schema import Field, Schema
from headrace.time import TimeDomain

if TYPE_CHECKING:
    from headrace.algebra.nodes import Plan  # The union of all nodes, these among them.


@dataclass(frozen=True)
class Source:
    """A stream that comes from outside; its elements are chronons `[t, t+1)`.

    Attributes:
        name: the stream's name in the catalog.
        schema: the columns that are read (a part of the stream's columns, or all).
        timestamp: the name of the column the stream is timed by; it need not be among those read.
        domain: what the stream's instants count.
    """

    name: str
    schema: Schema
    timestamp: str
    domain: TimeDomain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: they are."""
        return True


@dataclass(frozen=True)
class Filter(Unary):
    """`M(t)` without the payloads for which the predicate is not true."""

    predicate: Expression

    def __post_init__(self) -> None:
        require_boolean(self.predicate, "a filter's predicate")
        require_columns(self.predicate, len(self.input.schema))


@dataclass(frozen=True)
class Project(Unary):
    """`M(t)` with every payload mapped; multiplicities of equal results add up (PIPES' map)."""

    items: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        for _, expression in self.items:
            require_columns(expression, len(self.input.schema))
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """One column per item."""
        return Schema(tuple(Field(name, expression.type) for name, expression in self.items))


@dataclass(frozen=True)
class Sample(Unary):
    """The payloads of `M(t)` whose hash is among the first `percent` of a hundred (CQL's SAMPLE).

    The hash is that of `headrace.operators.sample`: of all columns, and the same for ever. So equal payloads
    are in the sample together or not at all, and so is what retracts them.
    """

    percent: Decimal

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise PlanError("SAMPLE takes a percentage above 0 and up to 100")


@dataclass(frozen=True)
class Union:
    """The sum of the inputs' contents (UNION ALL)."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise PlanError("a union needs two inputs")
        require_same_types("a union", [below.schema for below in self.inputs])

    @cached_property
    def schema(self) -> Schema:
        """The first input's schema."""
        return self.inputs[0].schema

    @cached_property
    def domain(self) -> TimeDomain:
        """What the inputs' instants count."""
        return self.inputs[0].domain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: those of all inputs are."""
        return all(below.is_chronon for below in self.inputs)


@dataclass(frozen=True)
class SetOperation(Binary):
    """Every payload of `L(t)` or `R(t)` as often as the kind makes of its multiplicities in both.

    Payloads are compared by grouping equality: NULL equals NULL. UNION ALL is `Union`.
    """

    kind: SetKind

    def __post_init__(self) -> None:
        require_same_types(self.kind.value, (self.left.schema, self.right.schema))

    @cached_property
    def schema(self) -> Schema:
        """The left input's schema."""
        return self.left.schema

    @property
    def kept(self) -> SetKind:
        """Which rows of its inputs the node keeps: its kind."""
        return self.kind


@dataclass(frozen=True)
class Aggregate(Unary):
    """One row per group of `M(t)`: the keys, then the aggregates. No rows, no group, and so no result.

    Grouping takes NULL as equal to NULL, NaN to NaN and -0 to 0. Without keys this is PIPES' scalar
    aggregation: an empty content has no result row; with `emit_empty` it has SQL's row, counts of 0 and
    NULLs, from the first instant on at which there was something to aggregate.
    """

    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    emit_empty: bool = False

    def __post_init__(self) -> None:
        if self.emit_empty and self.keys:
            raise PlanError("an empty content has no groups to emit")
        width = len(self.input.schema)
        for _, key in self.keys:
            require_columns(key, width)
        for _, call in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, width)
            if call.condition is not None:
                require_boolean(call.condition, "the condition of FILTER")
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        keys = [Field(name, key.type) for name, key in self.keys]
        return Schema((*keys, *(Field(name, call.type) for name, call in self.aggregates)))

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: an empty content's row lasts."""
        return not self.emit_empty and self.input.is_chronon


@dataclass(frozen=True)
class Distinct(Unary):
    """Every payload of `M(t)` once."""
