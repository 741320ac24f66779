"""Map rows once, before they enter a row window, and not again when they leave it."""

from __future__ import annotations

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import LiveRow, Plan, Project, RelationIndex, RowWindow
from headrace.expressions.tree import Column, Expression, columns_of
from headrace.schema import DOUBLE


def push_project_below_row_window(plan: Plan) -> Plan:
    """Move a Project below a RowWindow (thesis, rules 10.11 and 10.12).

    Before: `SELECT auction, bidder, bidder = 1 AS own FROM bid [PARTITION BY auction ROWS 10]`
    After: `SELECT * FROM (SELECT auction, bidder, bidder = 1 AS own FROM bid) [PARTITION BY auction ROWS 10]`

    The columns of the partition must survive (10.12), and that which says what is live. The rows of one
    instant must stay in their order, which is that of their columns from left to right: the result must begin
    with the same columns, and the others must depend on these alone. An expression that can fail stays where
    it is: below the window, it would take rows away that push others out.
    """
    match plan:
        case Project(input=RelationIndex()):
            return plan
        case Project(input=RowWindow(input=below, keys=keys) as window, items=items):
            expressions = [expression for _, expression in items]
            kept = {
                part.index: place
                for place, part in reversed(list(enumerate(expressions)))
                if isinstance(part, Column)
            }
            read = (*keys, window.live) if isinstance(window, LiveRow) else keys
            if not all(key.index in kept for key in read) or not _keeps_order(window, expressions):
                return plan
            return window.over(Project(below, items), kept)
        case _:
            return plan


def _keeps_order(window: RowWindow, items: list[Expression]) -> bool:
    """Whether rows of one partition and instant are ordered alike by their columns and by the items."""
    fixed = {key.index for key in window.keys}
    rest = [index for index in range(len(window.schema)) if index not in fixed]
    seen = 0
    for item in items:
        if seen < len(rest) and isinstance(item, Column) and item.index == rest[seen]:
            seen += 1
        elif isinstance(item, Column) and item.index in fixed.union(rest[:seen]):
            continue
        elif can_fail(item) or not columns_of(item) <= _exact(window, fixed.union(rest[:seen])):
            return False
    return True


def _exact(window: RowWindow, places: set[int]) -> set[int]:
    """The columns whose equal values are identical; among DOUBLEs, 0 equals -0."""
    return {place for place in places if window.schema[place].type != DOUBLE}
