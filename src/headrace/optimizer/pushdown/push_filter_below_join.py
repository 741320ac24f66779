"""Filter rows before they are joined."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Join, Plan
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Expression, columns_of, shift_columns


def push_filter_below_join(plan: Plan) -> Plan:
    """Move the conjuncts that read one side of a Join only, from the WHERE above it or its ON, to that side.

    Before: `SELECT * FROM a, b WHERE a.x > 1 AND b.y = 2 AND a.k = b.k`
    After: `SELECT * FROM (SELECT * FROM a WHERE x > 1), (SELECT * FROM b WHERE y = 2) WHERE a.k = b.k`

    A row may now fail that has no partner, or that another conjunct takes out: there may be more or fewer
    dead letters. A pair whose conjunct fails is not a result before, and neither is it after.
    """
    match plan:
        case Filter(input=Join() as join, predicate=predicate):
            narrowed, rest = _push(join, conjuncts(predicate))
            if narrowed is join:
                return plan
            outer = conjunction(rest)
            return narrowed if outer is None else Filter(narrowed, outer)
        case Join(residual=residual) if residual is not None:
            narrowed, rest = _push(plan, conjuncts(residual))
            return plan if narrowed is plan else replace(narrowed, residual=conjunction(rest))
        case _:
            return plan


def _push(join: Join, parts: tuple[Expression, ...]) -> tuple[Join, list[Expression]]:
    """The join with its inputs filtered by the conjuncts of one side, and the other conjuncts."""
    width = len(join.left.schema)
    left: list[Expression] = []
    right: list[Expression] = []
    rest: list[Expression] = []
    for part in parts:
        sides = {index < width for index in columns_of(part)}
        if sides == {True}:
            left.append(part)
        elif sides == {False}:
            right.append(shift_columns(part, -width))
        else:
            rest.append(part)
    if not left and not right:
        return join, rest
    return replace(join, left=_filtered(join.left, left), right=_filtered(join.right, right)), rest


def _filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)
