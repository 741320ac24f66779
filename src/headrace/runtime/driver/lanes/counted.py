"""Counts of lanes between two commits: the seconds of their operators, and rows in front."""

from __future__ import annotations

from headrace.algebra.system_streams import system_stream
from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import WORKED


def seconds_by_lane(before: PublishedRun, after: PublishedRun) -> dict[int, float]:
    """The seconds of operators between two commits, per lane; 0 is the front.

    Args:
        before, after: the run as it was to be seen after each.
    """
    known = dict(
        zip(before.statistics.operators.keys, before.statistics.operators.total[:, WORKED], strict=True)
    )
    found: dict[int, float] = {}
    operators = after.statistics.operators
    lanes = _lanes_of(after)
    for lane, key, total in zip(lanes, operators.keys, operators.total[:, WORKED].tolist(), strict=True):
        took = total - float(known.get(key, 0.0))
        if took > 0:
            found[lane] = found.get(lane, 0.0) + took
    return found


def seconds_of(run: PublishedRun) -> dict[str, float]:
    """The smoothed seconds of operators, per query in front; what several need is shared by them."""
    recent = run.statistics.operators.recent[:, WORKED].tolist()
    found = {name: 0.0 for name in run.queries.live if run.queries.answered[name].lane is None}
    for seconds, users in zip(recent, run.queries.graph.users, strict=True):
        for name in users:
            if name in found:
                found[name] += seconds / len(users)
    return found


def _lanes_of(run: PublishedRun) -> list[int]:
    """For each operator the lane of those who need it."""
    answered = run.queries.answered
    return [(answered[users[0]].lane or 0) if users else 0 for users in run.queries.graph.users]


def rows_in_front(before: PublishedRun, after: PublishedRun) -> int:
    """The number of rows that came between two commits and that queries in front take."""
    known = before.totals.arrivals
    return sum(
        seen.rows - known.get(name, Arrivals()).rows
        for name, seen in after.totals.arrivals.items()
        if system_stream(name) is None
    )
