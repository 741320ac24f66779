"""Aggregations that follow from others with the same groups, which compute all that they do and perhaps more.

So a query that shows less of what another one has computed, in another order or under other names, can read
the operator of that one.
"""

from __future__ import annotations

from collections.abc import Collection

from headrace.algebra.failure import aggregate_can_fail
from headrace.algebra.nodes import Aggregate, Plan, column, inputs_of, project, with_inputs
from headrace.expressions.tree import AggregateCall, Column, Expression, transform_call, transform_columns
from headrace.lowering.early import alone
from headrace.optimizer import optimize


def covered(plan: Plan, others: Collection[Plan]) -> Plan:
    """A plan whose aggregations read others wherever they follow from them.

    Args:
        plan: what a query is to be carried out as.
        others: parts of what one is carried out as that runs.
    """
    aggregates = [other for other in others if isinstance(other, Aggregate)]
    known: dict[int, Plan] = {}

    def over(part: Plan) -> Plan:
        # What is used twice stays one object.
        if id(part) not in known:
            known[id(part)] = _covered(part, aggregates) or again(part)
        return known[id(part)]

    def again(part: Plan) -> Plan:
        below = inputs_of(part)
        return with_inputs(part, tuple(map(over, below))) if below else part

    return over(plan)


def _covered(part: Plan, aggregates: Collection[Aggregate]) -> Plan | None:
    if not isinstance(part, Aggregate):
        return None
    found = (part if part == other else _above(part, other) for other in aggregates)
    return next((plan for plan in found if plan is not None), None)


def in_terms_of(part: Aggregate, other: Aggregate) -> Aggregate | None:
    """An aggregation over the input of another one; None where that lacks a column.

    Args:
        part: the aggregation.
        other: the one that reads at least the same columns.
    """
    places = {name: place for place, name in enumerate(other.input.schema.names)}
    names = part.input.schema.names
    if part.settled != other.settled or not places.keys() >= set(names):
        return None

    def moved(one: Column) -> Expression:
        return column(other.input, places[names[one.index]])

    keys = tuple((name, transform_columns(key, moved)) for name, key in part.keys)
    calls = tuple(
        (name, transform_call(call, lambda one: transform_columns(one, moved)))
        for name, call in part.aggregates
    )
    return Aggregate(other.input, keys, calls, part.settled)


def _above(part: Aggregate, other: Aggregate) -> Plan | None:
    """An aggregation in terms of another one; None where it does not follow from it."""
    made = in_terms_of(part, other)
    if made is None:
        return None
    theirs: list[Expression] = [key for _, key in other.keys]
    shown: list[Expression | AggregateCall] = [*theirs, *(call for _, call in other.aggregates)]
    if len(made.keys) != len(theirs) or any(key not in theirs for _, key in made.keys):
        return None
    if any(call not in shown for _, call in made.aggregates):
        return None
    left = {call for _, call in other.aggregates} - {call for _, call in made.aggregates}
    if any(map(aggregate_can_fail, left)):
        # It may end its query, or leave out rows, which the others are of.
        return None
    # Its rows are those of the other one if that, with less to compute, becomes what it is.
    if alone(optimize(made))[0] != part:
        return None
    shows = (*made.keys, *made.aggregates)
    return project(other, tuple((name, column(other, shown.index(one))) for name, one in shows))
