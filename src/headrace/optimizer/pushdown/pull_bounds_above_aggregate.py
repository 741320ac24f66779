"""Group rows by what distinguishes them, and not by their window, of which an instant has only one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, WindowBounds, column, instant_type
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.tree import (
    Column,
    Expression,
    columns_of,
    expressions_of,
    transform_call,
    transform_columns,
)


def pull_bounds_above_aggregate(plan: Plan) -> Plan:
    """Take the start and the end of windows out of an Aggregate's keys, and add them to its result.

    Before: `SELECT k, COUNT(*), window_end FROM HOP(bid, 1, 60) GROUP BY k, window_start, window_end`
    After: `SELECT k, COUNT(*) FROM bid WINDOW(RANGE 60 SLIDE 1) GROUP BY k`, and beside its rows the end of
    the window that each instant shows.

    At every instant all rows have the same bounds (`WindowBounds`), so they make no groups. The same holds
    for what is computed from the bounds alone, and a condition on them leaves all rows of an instant or none.
    A key or a condition that reads the bounds and can fail stays, and with it all of them. The same rows
    fail, each once instead of once per window.
    """
    if not isinstance(plan, Aggregate):
        return plan
    found = _without_bounds(plan.input)
    if found is None or not any(found.depends(key) for _, key in plan.keys):
        return plan
    early = [(name, key) for name, key in plan.keys if found.is_free(key)]
    late = [key for _, key in plan.keys if not found.is_free(key)]
    if not all(map(found.can_be_late, late)):
        return plan
    if not all(found.is_free(part) for _, call in plan.aggregates for part in expressions_of(call)):
        return plan
    calls = [(name, transform_call(call, found.early)) for name, call in plan.aggregates]
    if not early and not calls:
        # A node without keys needs something to show; nobody reads it.
        calls = [("n", resolve_aggregate("COUNT", None))]
    keys = tuple((name, found.early(key)) for name, key in early)
    groups = replace(plan, input=found.plan, keys=keys, aggregates=tuple(calls))
    return _with_keys(plan, groups, found)


def _with_keys(plan: Aggregate, groups: Aggregate, found: _Below) -> Plan:
    """The groups with the bounds beside them, and the columns of the plan read off both."""
    whole: Plan = replace(found.bounds, input=groups)
    width = len(groups.schema)
    ends = {place: column(whole, width + place) for place in (0, 1)}
    conditions = [transform_columns(part, lambda one: ends[one.index]) for part in found.conditions]
    predicate = conjunction(conditions)
    if predicate is not None:
        whole = Filter(whole, predicate)
    others = iter(range(width))
    items: list[tuple[str, Expression]] = []
    for name, key in plan.keys:
        if found.is_free(key):
            items.append((name, column(whole, next(others))))
        else:
            items.append((name, transform_columns(found.late(key), lambda one: ends[one.index])))
    items += [(name, column(whole, place)) for (name, _), place in zip(plan.aggregates, others, strict=False)]
    return Project(whole, tuple(items))


@dataclass(frozen=True)
class _Below:
    """What is below an aggregate, without the bounds of its windows.

    Attributes:
        plan: filters and projections over a window.
        bounds: the node that added the bounds.
        places: the places in `plan` of the columns that do not depend on the bounds.
        computed: the other columns, by place, as expressions over the start, column 0, and the end, column 1.
        conditions: what filters asked of the start and the end.
    """

    plan: Plan
    bounds: WindowBounds
    places: Mapping[int, int]
    computed: Mapping[int, Expression]
    conditions: tuple[Expression, ...] = ()

    def depends(self, expression: Expression) -> bool:
        """Whether an expression reads the bounds."""
        return any(place in self.computed for place in columns_of(expression))

    def is_free(self, expression: Expression) -> bool:
        """Whether an expression does not depend on the bounds."""
        return not self.depends(expression)

    def can_be_late(self, expression: Expression) -> bool:
        """Whether an expression reads nothing but the bounds, and never fails."""
        return columns_of(expression) <= self.computed.keys() and not can_fail(expression)

    def early(self, expression: Expression) -> Expression:
        """An expression that does not depend on the bounds, over `plan`."""
        return transform_columns(expression, lambda one: replace(one, index=self.places[one.index]))

    def late(self, expression: Expression) -> Expression:
        """An expression that reads only the bounds, over these."""
        return transform_columns(expression, lambda one: self.computed[one.index])


def _without_bounds(plan: Plan) -> _Below | None:
    """Filters and projections down to the bounds of windows; None where they cannot do without these."""
    match plan:
        case WindowBounds(input=below):
            width = len(below.schema)
            ends = (Column(place, "", instant_type(plan)) for place in (0, 1))
            return _Below(below, plan, {place: place for place in range(width)}, dict(enumerate(ends, width)))
        case Filter(input=below, predicate=predicate):
            found = _without_bounds(below)
            return None if found is None else _filtered(found, predicate)
        case Project(input=below, items=items):
            found = _without_bounds(below)
            return None if found is None else _projected(found, items)
        case _:
            return None


def _filtered(found: _Below, predicate: Expression) -> _Below | None:
    parts = conjuncts(predicate)
    early = [found.early(part) for part in parts if found.is_free(part)]
    late = [part for part in parts if found.depends(part)]
    if not all(map(found.can_be_late, late)):
        return None
    rest = conjunction(early)
    below = found.plan if rest is None else Filter(found.plan, rest)
    conditions = (*found.conditions, *map(found.late, late))
    return replace(found, plan=below, conditions=conditions)


def _projected(found: _Below, items: tuple[tuple[str, Expression], ...]) -> _Below | None:
    late = {place: item for place, (_, item) in enumerate(items) if found.depends(item)}
    if not all(map(found.can_be_late, late.values())):
        return None
    early = [place for place in range(len(items)) if place not in late]
    kept = tuple((items[place][0], found.early(items[place][1])) for place in early)
    return replace(
        found,
        plan=Project(found.plan, kept),
        places={old: new for new, old in enumerate(early)},
        computed={place: found.late(item) for place, item in late.items()},
    )
