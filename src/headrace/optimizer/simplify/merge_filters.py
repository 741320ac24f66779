"""One Filter for two."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Plan
from headrace.expressions.tree import Call
from headrace.schema import BOOLEAN


def merge_filters(plan: Plan) -> Plan:
    """Put a Filter over a Filter into one.

    Before: `SELECT * FROM (SELECT * FROM bid WHERE price > 1) WHERE auction = 7`
    After: `SELECT * FROM bid WHERE price > 1 AND auction = 7`

    A row that the inner filter takes out may now fail in the outer predicate, and then it is a dead letter;
    it is in neither result.
    """
    match plan:
        case Filter(input=Filter(input=below, predicate=first), predicate=second):
            return Filter(below, Call("AND", (first, second), BOOLEAN))
        case _:
            return plan
