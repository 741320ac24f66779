"""The worth of an answer by how late it is, or by how much of its input it has: Aurora's QoS graphs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headrace.errors import UserError

QosKind = Literal["delay", "loss"]
"""A delay graph falls: its x is seconds. A loss graph rises: its x is the share of the rows that is kept."""

_X: Final = {"delay": "delays", "loss": "shares"}
_RANGES: Final = {"delay": "from 0 on", "loss": "from 0 to 1"}
_WRONG_WAY: Final = {
    "delay": "a later answer cannot be worth more",
    "loss": "an answer of more rows cannot be worth less",
}
QOS_HINTS: Final = {
    "delay": "write DELAY (0, 1), (5 SECONDS, 0.2): a delay, and the utility of an answer so late",
    "loss": "write LOSS TOLERANT (0.2: 0.5, 0.5: 0.8): the share that is kept, and its utility",
}
"""The way in which graphs are written."""


@dataclass(frozen=True)
class QosGraph:
    """The utility of an answer, from 0 to 1, as a piecewise linear function of one number.

    Carney and others, Monitoring streams (VLDB 2002), section 4.1, figures 4a and 4b. Between two points it
    is on the line through them, before the first it is the first one's, and after the last the last one's.

    Attributes:
        points: numbers, rising, each with its utility: seconds of delay, or shares from 0 to 1.
        kind: `delay`, where utilities do not rise, or `loss`, where they do not fall.

    Raises:
        UserError: there are no points, a number is not finite, is below 0 or comes twice or out of order, a
            utility is not from 0 to 1, or utilities go the wrong way.
    """

    points: tuple[tuple[float, float], ...]
    kind: QosKind = "delay"

    def __post_init__(self) -> None:
        if not self.points:
            raise UserError(f"a {self.kind} graph has at least one point", hint=QOS_HINTS[self.kind])
        for place, point in enumerate(self.points):
            wrong = wrong_point(self.kind, self.points[:place], point)
            if wrong:
                raise UserError(wrong, hint=QOS_HINTS[self.kind])

    def at(self, x: float) -> float:
        """The utility at a number, from 0 to 1."""
        after = bisect_right(self.points, x, key=_number)
        if after == 0:
            return self.points[0][1]
        if after == len(self.points):
            return self.points[-1][1]
        (begin, low), (end, high) = self.points[after - 1], self.points[after]
        return low + (high - low) * (x - begin) / (end - begin)

    def slope(self, x: float, over: float = 0.0) -> float:
        """The slope of the utility from a number on: below 0 where it falls.

        Args:
            x: the number.
            over: the mean slope from x to x + over is meant; with 0, that of the line that goes on from x.

        Returns:
            Utility for one of x.
        """
        if over > 0:
            return (self.at(x + over) - self.at(x)) / over
        after = bisect_right(self.points, x, key=_number)
        if after in (0, len(self.points)):
            return 0.0
        (begin, low), (end, high) = self.points[after - 1], self.points[after]
        return (high - low) / (end - begin)

    def falls_from(self, x: float) -> float:
        """The first number, not below x, from which on the utility falls; infinity where it never does."""
        for (begin, low), (end, high) in zip(self.points, self.points[1:], strict=False):
            if end > x and high < low:
                return max(x, begin)
        return math.inf


def wrong_point(kind: QosKind, before: Sequence[tuple[float, float]], point: tuple[float, float]) -> str:
    """Say why a point cannot come next in a graph; empty if it can.

    Args:
        kind: that of the graph.
        before: the points before it.
        point: a number, and its utility.
    """
    x, utility = point
    if not 0 <= utility <= 1:
        return f"a utility is from 0 to 1, not {utility:.12g}"
    if not (0 <= x <= 1 if kind == "loss" else 0 <= x < math.inf):
        return f"the {_X[kind]} of a {kind} graph are {_RANGES[kind]}, not {x:.12g}"
    last, worth = before[-1] if before else (-math.inf, utility)
    if x <= last:
        return f"the {_X[kind]} of a {kind} graph rise"
    if utility > worth if kind == "delay" else utility < worth:
        return f"{_WRONG_WAY[kind]}: {utility:.12g} comes after {worth:.12g}"
    return ""


def _number(point: tuple[float, float]) -> float:
    return point[0]
