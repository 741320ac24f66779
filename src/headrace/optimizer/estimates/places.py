"""The columns of an answer that are estimates with bounds behind them, by the plan that estimates it."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Istream, LargestWeight, Plan, Project, Rstream, WindowBounds
from headrace.expressions.tree import Case, Expression, columns_of


def estimates_in(plan: Plan) -> tuple[int, ...]:
    """The places of estimates: behind each are its lower and its upper bound.

    A bound is the estimate itself where no row was left out, which the largest weight of the window tells
    (`headrace.optimizer.estimates.estimated`). Names say nothing of it: a user may give any.

    Args:
        plan: the query's, optimized or not.
    """
    while isinstance(plan, Filter | Istream | Rstream):
        plan = plan.input
    if not isinstance(plan, Project):
        return ()
    weighed = _weighed(plan.input)
    items = [part for _, part in plan.items]
    return tuple(
        place
        for place, (value, *bounds) in enumerate(zip(items, items[1:], items[2:], strict=False))
        if all(_is_bound(bound, value, weighed) for bound in bounds)
    )


def _is_bound(bound: Expression, value: Expression, weighed: frozenset[int]) -> bool:
    if not isinstance(bound, Case):
        return False
    exact, known = bound.branches[0]
    return known == value and not weighed.isdisjoint(columns_of(exact))


def _weighed(plan: Plan) -> frozenset[int]:
    """The places of columns that depend on the largest weight of a window."""
    match plan:
        case LargestWeight(schema=schema):
            return frozenset({len(schema) - 1})
        case Project(items=items):
            below = _weighed(plan.input)
            return frozenset(
                at for at, (_, part) in enumerate(items) if not below.isdisjoint(columns_of(part))
            )
        case Filter() | Istream() | Rstream() | WindowBounds():
            return _weighed(plan.input)
        case _:
            return frozenset()
