"""Filter rows before they are mapped."""

from __future__ import annotations

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Filter, Plan, Project
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Expression, columns_of, transform_columns


def push_filter_below_project(plan: Plan) -> Plan:
    """Move the conjuncts of a Filter below a Project, with the mapped expressions put in for its columns.

    Before: `SELECT * FROM (SELECT auction AS a, price * 2 AS p FROM bid) WHERE a = 7 AND p > 10`
    After: `SELECT auction AS a, price * 2 AS p FROM bid WHERE auction = 7 AND price * 2 > 10`

    Only conjuncts whose columns cannot fail are moved, so that nothing fallible is computed twice. Rows that
    are filtered out before the Project no longer fail in it: there may be fewer dead letters.
    """
    match plan:
        case Filter(input=Project(input=below, items=items), predicate=predicate):
            expressions = [expression for _, expression in items]
            parts = conjuncts(predicate)
            moved = [part for part in parts if _movable(part, expressions)]
            if not moved:
                return plan
            substituted = (transform_columns(part, lambda place: expressions[place.index]) for part in moved)
            inner = conjunction(substituted)
            assert inner is not None
            project = Project(Filter(below, inner), items)
            outer = conjunction(part for part in parts if part not in moved)
            return project if outer is None else Filter(project, outer)
        case _:
            return plan


def _movable(part: Expression, expressions: list[Expression]) -> bool:
    return not any(can_fail(expressions[index]) for index in columns_of(part))
