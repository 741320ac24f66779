"""The keys of operators: what has to meet in one bucket."""

from __future__ import annotations

from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Distinct,
    GapFill,
    Join,
    NestedAggregate,
    Over,
    Plan,
    RowWindow,
    SessionAggregate,
    SessionWindow,
    TopK,
    column,
    inputs_of,
)
from headrace.algebra.properties import constants_of
from headrace.algebra.tunings.bloom import block_of
from headrace.expressions.tree import Expression


def required_keys(plan: Plan, port: int) -> tuple[Expression, ...]:
    """The expressions over an input that make up the operator's key."""
    match plan:
        case Aggregate(keys=keys) | NestedAggregate(keys=keys) | ApproximateAggregate(keys=keys):
            return tuple(expression for _, expression in keys)
        case RowWindow(keys=keys) | SessionWindow(keys=keys) | Over(keys=keys) | TopK(keys=keys):
            return keys
        case GapFill(keys=keys):
            return keys
        case SessionAggregate(by=by):
            return by
        case BloomFilter():
            return (block_of(plan),)
        case Join(equalities=equalities):
            return tuple(pair[port] for pair in equalities)
        case Distinct(input=below):
            constants = constants_of(below)
            return tuple(column(below, index) for index in range(len(below.schema)) if index not in constants)
        case _:
            below = inputs_of(plan)[port]
            return tuple(column(below, index) for index in range(len(below.schema)))
