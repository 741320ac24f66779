"""Let an aggregate whose rows are cut by window say nothing of windows that have not ended."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Aggregate, Filter, Plan, Project, WindowBounds, with_inputs


def settle_below_bounds(plan: Plan) -> Plan:
    """Mark the Aggregate below a WindowBounds as settled, where windows overlap.

    Before: every group's row up to where a row leaves it, in as many windows, and taken back when one comes
    After: the row of each group and window once the window has ended

    Where windows do not overlap, a row of an aggregate ends with its window anyway.
    """
    if isinstance(plan, WindowBounds) and plan.slide.length < plan.size.length:
        return with_inputs(plan, (_settled(plan.input),))
    return plan


def _settled(plan: Plan) -> Plan:
    match plan:
        case Filter() | Project():
            return with_inputs(plan, (_settled(plan.input),))
        case Aggregate(settled=False):
            return replace(plan, settled=True)
        case _:
            return plan
