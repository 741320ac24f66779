"""Results of queries of one shape as one result, of which each query gets its group.

Where constants are data (`headrace.lowering.constants`), queries of one shape differ only in the group that
each of them picks. What comes after that, down to the result, can be done for all groups at once:

    SELECT 2 * n AS m FROM groups WHERE e = 7        SELECT 2 * n AS m, e FROM groups

So ten thousand queries of a shape are a few nodes, and an epoch takes time in proportion to its results,
whatever the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Filter, Plan, Project, WindowBounds, column
from headrace.expressions.tree import Expression, Literal
from headrace.lowering.picked import picked
from headrace.schema import unique_names


def for_all(plan: Plan) -> tuple[Plan, Literal] | None:
    """What a plan yields for all queries of its shape, with the constant that each row is for as last column.

    A row that fails after the groups is one query's, and is reported as that query's; so plans in which one
    may fail stay apart.

    Args:
        plan: a plan with constants as data.

    Returns:
        The plan for all of them, and the constant of this one; None if the result is not a group.
    """
    match plan:
        case Project(input=below, items=items) if not _may_fail(items):
            own = picked(below)
            if own is not None:
                groups, constant = own
                return with_last(groups.plan, items, groups.place), constant
            found = for_all(below)
            if found is not None:
                return with_last(found[0], items, len(found[0].schema) - 1), found[1]
        case Filter(input=below, predicate=predicate) if not can_fail(predicate):
            found = for_all(below)
            if found is not None:
                return Filter(found[0], predicate), found[1]
        case WindowBounds(input=below):
            found = for_all(below)
            if found is not None:
                return _put_last(replace(plan, input=found[0]), len(below.schema)), found[1]
    return None


def _may_fail(items: Iterable[tuple[str, Expression]]) -> bool:
    return any(can_fail(expression) for _, expression in items)


def _put_last(plan: Plan, place: int) -> Plan:
    """The columns of a plan with one of them behind all others."""
    others = (column(plan, index) for index in range(len(plan.schema)) if index != place)
    return with_last(plan, tuple((other.name, other) for other in others), place)


def with_last(below: Plan, items: tuple[tuple[str, Expression], ...], place: int) -> Plan:
    """A projection with one more column of its input as the last.

    Args:
        below: the input.
        items: names and expressions.
        place: the column's.
    """
    last = column(below, place)
    *_, name = unique_names([*(name for name, _ in items), last.name])
    return Project(below, (*items, (name, last)))
