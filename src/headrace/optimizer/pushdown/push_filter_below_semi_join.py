"""Filter rows before they are looked for among other rows, or padded."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Filter, OuterJoin, Plan, SemiJoin
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Expression, columns_of, shift_columns


def push_filter_below_semi_join(plan: Plan) -> Plan:
    """Move the conjuncts of a WHERE to the side of a SemiJoin or OuterJoin all of whose rows are kept.

    Before: `SELECT * FROM a LEFT JOIN b ON a.k = b.k WHERE a.x > 1`
    After: `SELECT * FROM (SELECT * FROM a WHERE x > 1) AS a LEFT JOIN b ON a.k = b.k`

    A row may now fail that the join takes out: there may be more or fewer dead letters.
    """
    match plan:
        case Filter(input=SemiJoin() as join, predicate=predicate):
            return replace(join, left=Filter(join.left, predicate))
        case Filter(input=OuterJoin(kind=JoinKind.LEFT) as join, predicate=predicate):
            width = len(join.left.schema)
            moved = [part for part in conjuncts(predicate) if _reads(part, 0, width)]
            return _moved(plan, moved, replace(join, left=_filtered(join.left, moved)))
        case Filter(input=OuterJoin(kind=JoinKind.RIGHT) as join, predicate=predicate):
            width = len(join.left.schema)
            moved = [part for part in conjuncts(predicate) if _reads(part, width, len(join.schema))]
            shifted = [shift_columns(part, -width) for part in moved]
            return _moved(plan, moved, replace(join, right=_filtered(join.right, shifted)))
        case _:
            return plan


def _reads(part: Expression, start: int, end: int) -> bool:
    """Whether an expression reads columns from the range and no others."""
    columns = columns_of(part)
    return bool(columns) and all(start <= index < end for index in columns)


def _filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _moved(plan: Filter, moved: list[Expression], join: OuterJoin) -> Plan:
    if not moved:
        return plan
    rest = conjunction(part for part in conjuncts(plan.predicate) if part not in moved)
    return join if rest is None else Filter(join, rest)
