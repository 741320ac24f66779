"""Events at the ends of windows, without a memory of the window before."""

from __future__ import annotations

from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Filter,
    Istream,
    Join,
    LimitedJoin,
    Plan,
    Project,
    Relation,
    SemiJoin,
    TimeWindow,
    TopK,
    Unnest,
    Weighing,
    WindowBounds,
    WindowEvents,
    inputs_of,
    with_inputs,
)
from headrace.algebra.properties import POINTWISE
from headrace.expressions.tree import Column, Expression


def events_from_windows(plan: Plan) -> Plan:
    """Show rows that have their window's bounds at its last instant, instead of asking which ones are new.

    Before: `ISTREAM(SELECT k, COUNT(*), window_end FROM HOP(bid, 1, 60) GROUP BY k, window_end)`
    After: what the list without ISTREAM has at the last instant of each window

    Between two such instants nothing changes if all windows below move at the same ones. And from one to the
    next all rows do, since they have other bounds. So all of them are new there, and none is elsewhere.
    """
    if not isinstance(plan, Istream):
        return plan
    bounds = _bounds_in(plan.input)
    if bounds is None or not _moves_with(plan.input, bounds):
        return plan
    return _at_ends(plan.input) or plan


def _bounds_in(plan: Plan) -> WindowBounds | None:
    """The node that adds a start or an end of windows that is a column of the plan; None without one."""
    return next((found for place in range(len(plan.schema)) if (found := _bound(plan, place))), None)


def _bound(plan: Plan, place: int) -> WindowBounds | None:
    """The node that adds a column, if that is a start or an end of windows."""
    match plan:
        case WindowBounds(input=below) if not isinstance(plan, WindowEvents):
            return plan if place >= len(below.schema) else _bound(below, place)
        case Project(items=items):
            return _of_column(plan.input, items[place][1])
        case Aggregate(keys=keys):
            return _of_column(plan.input, keys[place][1]) if place < len(keys) else None
        case Filter() | Distinct() | Coalesce():
            return _bound(plan.input, place)
        case TopK():
            return _bound(plan.input, place) if place < len(plan.input.schema) else None
        case Join(left=left, right=right):
            width = len(left.schema)
            return _bound(left, place) if place < width else _bound(right, place - width)
        case SemiJoin(left=left):
            return _bound(left, place)
        case _:
            return None


def _of_column(plan: Plan, expression: Expression) -> WindowBounds | None:
    return _bound(plan, expression.index) if isinstance(expression, Column) else None


def _at_ends(plan: Plan) -> Plan | None:
    """The plan with rows at the last instants of its windows only; None where it has other rows as well."""
    match plan:
        case WindowBounds(input=below):
            return WindowEvents(below, plan.size, plan.slide, plan.offset)
        case Filter() | Project() | Unnest() | TopK() | Distinct() | Coalesce() | Aggregate():
            shown = _at_ends(plan.input)
            return None if shown is None else with_inputs(plan, (shown,))
        case SemiJoin(left=left, right=right):
            shown = _at_ends(left)
            return None if shown is None else with_inputs(plan, (shown, right))
        case Join(left=left, right=right):
            sides = _at_ends(left), _at_ends(right)
            return None if sides == (None, None) else with_inputs(plan, (sides[0] or left, sides[1] or right))
        case _:
            return None


def _moves_with(plan: Plan, bounds: WindowBounds) -> bool:
    """Whether the content of a plan changes only at the last instants of windows, if at all."""
    match plan:
        case WindowEvents() | LimitedJoin() | Weighing():
            return False
        case TimeWindow(smallest=None):
            return _moves_at_ends(plan, bounds)
        case WindowBounds(input=below):
            return _moves_at_ends(plan, bounds) and _moves_with(below, bounds)
        case Relation():
            return plan.is_constant
        case _:
            inputs = inputs_of(plan)
            return isinstance(plan, POINTWISE) and all(_moves_with(part, bounds) for part in inputs)


def _moves_at_ends(plan: TimeWindow | WindowBounds, bounds: WindowBounds) -> bool:
    own, others = (plan.slide, plan.offset), (bounds.slide, bounds.offset)
    return [one.length for one in own] == [one.length for one in others]
