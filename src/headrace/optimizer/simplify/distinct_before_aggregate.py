"""Each value once before all of them are added up."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, SessionWindow, column
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.tree import AggregateCall, Expression, columns_of
from headrace.schema import unique_names


def distinct_before_aggregate(plan: Plan) -> Plan:
    """Find the different values of an Aggregate without groups by groups of their own.

    Before: `SELECT COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS total FROM s [RANGE 9]`
    After: `SELECT COUNT(v) AS n, SUM(v) AS total FROM (SELECT v FROM s [RANGE 9] GROUP BY v)`

    All rows of an Aggregate without groups are in one bucket, and so with one task. Groups are spread over
    all buckets, and what is found in each is added up before it travels. Aggregates of rows beside those of
    values would need both, and sessions are kept row by row in any case: both stay as they are.
    """
    if not isinstance(plan, Aggregate) or plan.keys:
        return plan
    value = different_value(plan)
    return plan if value is None else over_values(plan, value)


def different_value(plan: Aggregate) -> Expression | None:
    """The expression of whose different values an Aggregate has sums; None if it has anything else."""
    calls = [call for _, call in plan.aggregates]
    values = {call.argument for call in calls}
    if len(values) != 1 or not all(map(_is_sum_of_different, calls)) or _has_sessions(plan.input):
        return None
    (value,) = values
    return value if value is not None and columns_of(value) else None


def over_values(plan: Aggregate, value: Expression) -> Aggregate:
    """An Aggregate over its groups, each cut up by a value, of which it has the different ones."""
    *_, name = unique_names([*(name for name, _ in plan.keys), "value"])
    below = Aggregate(plan.input, (*plan.keys, (name, value)), ())
    keys = tuple((name, column(below, place)) for place, (name, _) in enumerate(plan.keys))
    added = tuple(
        (name, replace(call, argument=column(below, len(keys)), distinct=False))
        for name, call in plan.aggregates
    )
    return replace(plan, input=below, keys=keys, aggregates=added)


def _is_sum_of_different(call: AggregateCall) -> bool:
    return call.distinct and function_of(call).kept.is_sum and not call.others and call.condition is None


def _has_sessions(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, SessionWindow)
