"""Leave out partitions before their rows are kept, or put in order."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, GapFill, Plan, RelationIndex, RowWindow, TopK
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import columns_of
from headrace.schema import DOUBLE


def push_filter_below_row_window(plan: Plan) -> Plan:
    """Move the conjuncts that read nothing but the partition's columns below a RowWindow, TopK or GapFill.

    Before: `SELECT * FROM bid WINDOW(PARTITION BY auction ROWS 10) WHERE auction = 7 AND price > 1`
    After: `SELECT * FROM (SELECT * FROM bid WHERE auction = 7) WINDOW(PARTITION BY auction ROWS 10)
    WHERE price > 1`

    No other filter may pass, since it changes which rows are the last ones (thesis, 10.3), or the first, or
    which are missing.
    A DOUBLE does not count as such a column: of equal keys, 0 and -0, one might pass and the other not. A row
    that the window never shows may now fail: there may be more dead letters.

    What a relation keeps of itself stays whole, since all queries share it.
    """
    match plan:
        case Filter(input=RelationIndex()):
            return plan
        case Filter(input=(RowWindow() | TopK() | GapFill()) as window, predicate=predicate):
            fixed = {key.index for key in window.keys if key.type != DOUBLE}
            parts = conjuncts(predicate)
            moved = [part for part in parts if columns_of(part) <= fixed]
            inner = conjunction(moved)
            if inner is None:
                return plan
            pushed = replace(window, input=Filter(window.input, inner))
            outer = conjunction(part for part in parts if part not in moved)
            return pushed if outer is None else Filter(pushed, outer)
        case _:
            return plan
