"""One Project for two."""

from __future__ import annotations

from collections import Counter

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Plan, Project
from headrace.expressions.tree import Column, Expression, Literal, transform_columns, walk


def merge_projects(plan: Plan) -> Plan:
    """Put a Project over a Project into one.

    Before: `SELECT p + 1 AS q FROM (SELECT price * 2e0 AS p, auction FROM bid)`
    After: `SELECT price * 2e0 + 1 AS q FROM bid`

    Not where an inner expression would be computed more than once; and one that can fail must still be
    computed for every row, or rows would appear that fail now: it must be a column of the outer Project.
    """
    match plan:
        case Project(input=Project(input=below, items=inner), items=outer):
            expressions = [expression for _, expression in inner]
            if not _mergeable(expressions, [expression for _, expression in outer]):
                return plan
            merged = (
                (name, transform_columns(expression, lambda place: expressions[place.index]))
                for name, expression in outer
            )
            return Project(below, tuple(merged))
        case _:
            return plan


def _mergeable(inner: list[Expression], outer: list[Expression]) -> bool:
    uses = Counter(part.index for item in outer for part in walk(item) if isinstance(part, Column))
    whole = {item.index for item in outer if isinstance(item, Column)}
    for index, expression in enumerate(inner):
        if isinstance(expression, Column | Literal):
            continue
        if uses[index] > 1 or (can_fail(expression) and index not in whole):
            return False
    return True
