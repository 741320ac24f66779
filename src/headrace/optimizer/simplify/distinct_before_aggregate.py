"""Each value once before all of them are added up."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, SessionWindow, column
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.tree import AggregateCall, columns_of


def distinct_before_aggregate(plan: Plan) -> Plan:
    """Find the different values of an Aggregate without groups by groups of their own.

    Before: `SELECT COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS total FROM s [RANGE 9]`
    After: `SELECT COUNT(v) AS n, SUM(v) AS total FROM (SELECT v FROM s [RANGE 9] GROUP BY v)`

    All rows of an Aggregate without groups are in one bucket, and so with one task. Groups are spread over
    all buckets, and what is found in each is added up before it travels. Aggregates of rows beside those of
    values would need both, and sessions are kept row by row in any case: both stay as they are.
    """
    if not isinstance(plan, Aggregate) or plan.keys or _has_sessions(plan.input):
        return plan
    calls = [call for _, call in plan.aggregates]
    values = {call.argument for call in calls}
    if len(values) != 1 or not all(map(_is_sum_of_different, calls)):
        return plan
    (value,) = values
    if value is None or not columns_of(value):
        return plan
    below = Aggregate(plan.input, (("value", value),), ())
    added = tuple(
        (name, replace(call, argument=column(below, 0), distinct=False)) for name, call in plan.aggregates
    )
    return replace(plan, input=below, aggregates=added)


def _is_sum_of_different(call: AggregateCall) -> bool:
    return call.distinct and function_of(call).kept.is_sum and not call.others and call.condition is None


def _has_sessions(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, SessionWindow)
