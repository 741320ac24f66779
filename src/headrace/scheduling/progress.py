"""Progress charts: how much of a row is left in memory after so much processor time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class PathStep(NamedTuple):
    """An operator that a row still has before it.

    Attributes:
        cost: the processor time for a row that it takes (seconds).
        selectivity: rows that wait for the next operator, for a row that it takes; 0 where they leave.
    """

    cost: float
    selectivity: float


class ChartPoint(NamedTuple):
    """A point of a progress chart.

    Attributes:
        seconds: the processor time that a row has had.
        size: how many rows it then is.
    """

    seconds: float
    size: float


def progress_chart(steps: Sequence[PathStep]) -> tuple[ChartPoint, ...]:
    """The points through which a row goes, from (0, 1) on.

    Babcock, Babu, Datar and Motwani, Chain: Operator Scheduling for Memory Minimization in Data Stream
    Systems (SIGMOD 2003), section 2.

    Args:
        steps: the operators, in the order in which the row comes to them.
    """
    points = [ChartPoint(0.0, 1.0)]
    for cost, selectivity in steps:
        seconds, size = points[-1]
        points.append(ChartPoint(seconds + size * cost, size * selectivity))
    return tuple(points)


def lower_envelope(chart: Sequence[ChartPoint]) -> tuple[ChartPoint, ...]:
    """The points of a chart from each of which one goes to the next by the steepest descent there is.

    No point of the chart is below the lines between them, and each line is less steep than the one before. Of
    several points in one direction the furthest is taken. (Babcock and others, section 3.)
    """
    found, place = [chart[0]], 0
    while place < len(chart) - 1:
        here = chart[place]
        later = range(place + 1, len(chart))
        place = min(later, key=lambda one: (slope_between(here, chart[one]), -one))
        found.append(chart[place])
    return tuple(found)


def first_slope(steps: Sequence[PathStep]) -> float:
    """The slope of the first line of the lower envelope (rows a second); low where memory is soon free."""
    begin, end = next(pairwise(lower_envelope(progress_chart(steps))))
    return slope_between(begin, end)


def slope_between(begin: ChartPoint, end: ChartPoint) -> float:
    """Rows for a second of processor time between two points; below 0 where rows get fewer."""
    return per_second(end.size - begin.size, end.seconds - begin.seconds)


def per_second(amount: float, seconds: float) -> float:
    """An amount for a second; infinite where it takes no time, and 0 where there is none."""
    if seconds > 0:
        return amount / seconds
    return math.copysign(math.inf, amount) if amount else 0.0
