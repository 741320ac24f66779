"""Add up the rows of sessions while they go on."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, SessionAggregate, SessionWindow
from headrace.algebra.predicates import conjunction
from headrace.expressions.aggregates.functions import KeptValues, function_of
from headrace.expressions.tree import (
    AggregateCall,
    Column,
    Expression,
    columns_of,
    expressions_of,
    transform_call,
    transform_columns,
)


def aggregate_sessions(plan: Plan) -> Plan:
    """Put an Aggregate and the SessionWindow below it into one node, which keeps no rows of open sessions.

    Before: `SELECT k, COUNT(*) FROM SESSION(TABLE s PARTITION BY k, ts, 5) GROUP BY k, window_start`, by all
    rows of a session, once it has ended
    After: the same, by what the rows add up to so far

    Where each group is of one session, and each aggregate is a sum or a first or last value. No expression
    may read the session's bounds, which are not known yet, but groups may have them as they are; and none may
    fail, since a row that is set apart has them. Filters and lists between the two become a part of the node.
    """
    if not isinstance(plan, Aggregate):
        return plan
    groups, conditions = plan, list[Expression]()
    while isinstance(groups.input, Filter | Project):
        below = groups.input
        if isinstance(below, Filter):
            conditions.append(below.predicate)
            groups = replace(groups, input=below.input)
            continue
        items = [item for _, item in below.items]
        if any(map(can_fail, items)):
            return plan
        conditions = [_over(condition, items) for condition in conditions]
        groups = _read_from(groups, below, items)
    together = _together(groups, conditions)
    return plan if together is None else together


def _read_from(plan: Aggregate, below: Project, items: list[Expression]) -> Aggregate:
    """The Aggregate over the input of a Project, with its items in the place of columns."""
    return replace(
        plan,
        input=below.input,
        keys=tuple((name, _over(key, items)) for name, key in plan.keys),
        aggregates=tuple(
            (name, transform_call(call, lambda part: _over(part, items))) for name, call in plan.aggregates
        ),
    )


def _over(expression: Expression, items: list[Expression]) -> Expression:
    return transform_columns(expression, lambda one: items[one.index])


def _together(plan: Aggregate, conditions: list[Expression]) -> Plan | None:
    """One node for an Aggregate and a SessionWindow below it with conditions between; None for others."""
    window = plan.input
    if not isinstance(window, SessionWindow):
        return None
    width = len(window.input.schema)
    columns = {key.index for _, key in plan.keys if isinstance(key, Column)}
    read: list[Expression] = [key for _, key in plan.keys if not isinstance(key, Column)]
    read += [part for _, call in plan.aggregates for part in expressions_of(call)] + conditions
    if any(can_fail(part) or max(columns_of(part), default=0) >= width for part in read):
        return None
    if not {key.index for key in window.keys} <= columns:
        return None
    if not all(_is_small(call) for _, call in plan.aggregates):
        return None
    condition = conjunction(tuple(conditions)) if conditions else None
    return SessionAggregate(
        window.input, window.gap, window.keys, window.longest, condition, plan.keys, plan.aggregates
    )


def _is_small(call: AggregateCall) -> bool:
    """Whether what an aggregate keeps of any number of final rows has a bound."""
    kept = function_of(call).kept
    return kept is KeptValues.ENDS or (kept.is_sum and not call.distinct)
