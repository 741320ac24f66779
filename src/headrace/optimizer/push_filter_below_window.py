"""Filter rows before their validity is extended."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Plan, TimeWindow


def push_filter_below_window(plan: Plan) -> Plan:
    """Move a Filter below a TimeWindow (thesis, rule 10.8).

    Before: `SELECT * FROM (SELECT * FROM bid) WINDOW(RANGE 10 MINUTES) WHERE price > 1`
    After: `SELECT * FROM (SELECT * FROM bid WHERE price > 1) WINDOW(RANGE 10 MINUTES)`

    The same rows are asked, so the same rows fail.
    """
    match plan:
        case Filter(input=TimeWindow(input=below) as window, predicate=predicate):
            return replace(window, input=Filter(below, predicate))
        case _:
            return plan
