"""Forget partitions whose last row a filter above leaves out."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, LiveRow, Plan, RowWindow
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Column


def forget_rows_left_out(plan: Plan) -> Plan:
    """Make a window of the last row and a filter by a BOOLEAN column above it one node.

    Before: `Filter active` over `RowWindow PARTITION BY id ROWS 1`
    After: `RowWindow PARTITION BY id ROWS 1 WHERE active`, of which a partition whose last row is not active
    has no state.

    A condition that has to be computed stays above: queries often differ in it and read one window, as those
    of a relation that is given by changes do, whose deletions a column marks.
    """
    match plan:
        case Filter(input=RowWindow(rows=1, slide=1) as window, predicate=predicate):
            parts = conjuncts(predicate)
            live = next((part for part in parts if isinstance(part, Column)), None)
            if live is None or isinstance(window, LiveRow):
                return plan
            made = LiveRow(window.input, 1, keys=window.keys, live=live)
            rest = conjunction(part for part in parts if part is not live)
            return made if rest is None else Filter(made, rest)
        case _:
            return plan
