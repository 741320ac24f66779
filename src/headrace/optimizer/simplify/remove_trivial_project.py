"""No Project where nothing is mapped."""

from __future__ import annotations

from headrace.algebra.nodes import Plan, Project
from headrace.expressions.tree import Column


def remove_trivial_project(plan: Plan) -> Plan:
    """Remove a Project that gives every column of its input, in order and under its name.

    Before: `SELECT auction, price FROM (SELECT auction, price FROM bid)`
    After: `SELECT auction, price FROM bid`
    """
    match plan:
        case Project(input=below, items=items) if tuple(name for name, _ in items) == below.schema.names:
            places = [part.index if isinstance(part, Column) else None for _, part in items]
            return below if places == list(range(len(items))) else plan
        case _:
            return plan
