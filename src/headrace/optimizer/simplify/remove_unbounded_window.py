"""ISTREAM over an unbounded window is the stream itself, as the thesis rewrites CQL (15.1.1)."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Istream, Plan, Project, TimeWindow, Union
from headrace.time import INFINITY


def remove_unbounded_window(plan: Plan) -> Plan:
    """Take the window out of `ISTREAM(SELECT L FROM S [RANGE UNBOUNDED] WHERE C)`.

    What is new in an unbounded window at an instant are the rows of that instant:

        SELECT ISTREAM(L) FROM S [RANGE UNBOUNDED] WHERE C   becomes   SELECT L FROM S [NOW] WHERE C

    The state that held all rows so far is gone. Filters, projections and unions may be in between.
    """
    if not isinstance(plan, Istream):
        return plan
    below = _without_window(plan.input)
    return plan if below is None else below


def _without_window(plan: Plan) -> Plan | None:
    """The plan over the stream itself, or None where something else than its rows decides."""
    match plan:
        case TimeWindow(size=size, slide=slide, input=below):
            return below if size.length == INFINITY and slide.length == 1 else None
        case Filter(input=below) | Project(input=below):
            inner = _without_window(below)
            return None if inner is None else replace(plan, input=inner)
        case Union(inputs=inputs):
            parts = [_without_window(part) for part in inputs]
            found = tuple(part for part in parts if part is not None)
            return replace(plan, inputs=found) if len(found) == len(parts) else None
        case _:
            return None
