"""One window for those of several streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.algebra.nodes import Plan, Project, TimeWindow, Union


def pull_window_above_union(plan: Plan) -> Plan:
    """Put one time window over a union whose inputs have the same one, below their lists.

    Before: `SELECT a AS x FROM r [RANGE 5] UNION ALL SELECT b FROM s [RANGE 5]`
    After: `SELECT * FROM (SELECT a AS x FROM r UNION ALL SELECT b FROM s) [RANGE 5]`

    A list reads the rows and not when they are valid, and neither does a union (thesis, rules 10.9 and
    10.10). The window is then beside what is over the union, which can cut it into panes. An expression of a
    list is asked for rows too that no window shows, between two slides: there may be more dead letters.
    """
    if not isinstance(plan, Union):
        return plan
    parts = [_parted(below) for below in plan.inputs]
    windows = [window for _, window in parts if window is not None]
    if len(windows) < len(parts) or not all(_is_like(window, windows[0]) for window in windows):
        return plan
    inputs = (_listed(window.input, above) for (above, _), window in zip(parts, windows, strict=True))
    return replace(windows[0], input=Union(tuple(inputs)))


def _parted(plan: Plan) -> tuple[Sequence[Project], TimeWindow | None]:
    """The projects above a window, from above, and the window, if there is one."""
    above = []
    while isinstance(plan, Project):
        above.append(plan)
        plan = plan.input
    return above, plan if isinstance(plan, TimeWindow) else None


def _is_like(window: TimeWindow, other: TimeWindow) -> bool:
    if window.smallest is not None or other.smallest is not None:
        # Each has a size of its own, which may change.
        return False
    return (window.size, window.slide, window.offset) == (other.size, other.slide, other.offset)


def _listed(plan: Plan, above: Sequence[Project]) -> Plan:
    for part in reversed(above):
        plan = Project(plan, part.items)
    return plan
