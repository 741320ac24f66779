"""No window where it is one instant long."""

from __future__ import annotations

from headrace.algebra.nodes import Plan, TimeWindow


def remove_now_window(plan: Plan) -> Plan:
    """Remove a TimeWindow of one instant without slide, which changes nothing (thesis, rule 10.7).

    Before: `SELECT * FROM ticks WINDOW(RANGE 1)`
    After: `SELECT * FROM ticks`
    """
    match plan:
        case TimeWindow(input=below, size=size, slide=slide) if size.length == 1 and slide.length == 1:
            return below
        case _:
            return plan
