"""Filter rows before their validity is extended."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Granularity, Plan, Split, TimeWindow, WindowBounds
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Expression, columns_of


def push_filter_below_window(plan: Plan) -> Plan:
    """Move a Filter below a TimeWindow (thesis, rule 10.8), a Granularity or a Split.

    Of a filter above a WindowBounds, what it asks of the rows is moved.

    Before: `SELECT * FROM (SELECT * FROM bid) WINDOW(RANGE 10 MINUTES) WHERE price > 1`
    After: `SELECT * FROM (SELECT * FROM bid WHERE price > 1) WINDOW(RANGE 10 MINUTES)`

    The same rows are asked, so the same rows fail; and, between two granules, rows that are never seen.
    """
    match plan:
        case Filter(input=TimeWindow() | Granularity() | Split() as window, predicate=predicate):
            below = window.input
            return replace(window, input=Filter(below, predicate))
        case Filter(input=WindowBounds() as windows, predicate=predicate):
            return _below_bounds(windows, predicate)
        case _:
            return plan


def _below_bounds(windows: WindowBounds, predicate: Expression) -> Plan:
    """Conjuncts that read a window's start or end stay above."""
    width = len(windows.input.schema)
    parts = conjuncts(predicate)
    early = conjunction(part for part in parts if all(place < width for place in columns_of(part)))
    late = conjunction(part for part in parts if any(place >= width for place in columns_of(part)))
    below = windows
    if early is not None:
        below = replace(windows, input=push_filter_below_window(Filter(windows.input, early)))
    return below if late is None else Filter(below, late)
