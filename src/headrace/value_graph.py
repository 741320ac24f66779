"""The worth of the values of a column: Aurora's value-based QoS graph, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from headrace.elements import Float64Array
from headrace.steps import WHOLE

_LARGE: Final = 1e300
"""Points beyond are taken to be here where utility is computed with doubles."""


class ValuesBetween(NamedTuple):
    """The values between two numbers, without these.

    Attributes:
        low, high: the numbers; None where there is none on that side.
    """

    low: Fraction | None
    high: Fraction | None

    @property
    def text(self) -> str:
        """Where they lie, as in `below 100`."""
        if self.low is None:
            return "of any value" if self.high is None else f"below {_number(self.high)}"
        if self.high is None:
            return f"above {_number(self.low)}"
        return f"between {_number(self.low)} and {_number(self.high)}"


@dataclass(frozen=True)
class ValueGraph:
    """The worth of rows to the reader of an answer, by the value that they have in one of its columns.

    Carney and others, Monitoring streams (VLDB 2002), section 7.1: a value-based QoS graph, by which a
    semantic drop is inserted. The utility of a value between two points is on the line through them, below
    the first point it is the first one's, and above the last point the last one's.

    A row that has no value there, NULL or NaN, has no utility and is never left out: nobody has said that it
    matters less than others.

    Attributes:
        column: the name of the column.
        points: values, rising, each with its utility, from 0 to 1.
    """

    column: str
    points: tuple[tuple[Decimal, Decimal], ...]

    @property
    def text(self) -> str:
        """The points as they are written."""
        return f"({', '.join(f'{_written(value)}: {_written(utility)}' for value, utility in self.points)})"

    @property
    def largest(self) -> int:
        """The largest utility of a value (millionths)."""
        return int(WHOLE * max(utility for _, utility in self.points))

    def utilities(self, values: Float64Array) -> Float64Array:
        """float64[n]: about what each of n values is worth; NaN for NaN.

        Args:
            values: float64[n].
        """
        places, worths = np.array(self.points, dtype=np.float64).T
        found = np.interp(values, np.clip(places, -_LARGE, _LARGE), worths)
        return np.where(np.isnan(values), np.nan, found)

    def left_out(self, threshold: int) -> tuple[ValuesBetween, ...]:
        """The values whose utility is below a threshold, in order.

        The utility changes without jumps, so they lie between numbers that are not among them.

        Args:
            threshold: the least utility of a row that is kept (millionths).
        """
        return tuple(self._below(Fraction(threshold, WHOLE)))

    def _below(self, least: Fraction) -> Iterator[ValuesBetween]:
        points = [(Fraction(value), Fraction(utility)) for value, utility in self.points]
        low: Fraction | None = None
        for (value, utility), (after, then) in pairwise(points):
            if (utility < least) == (then < least):
                continue
            crossing = value + (least - utility) * (after - value) / (then - utility)
            if utility < least:
                yield ValuesBetween(low, crossing)
            low = crossing
        if points[-1][1] < least:
            yield ValuesBetween(low, None)

    def told(self, threshold: int, verb: str = "are") -> str:
        """The rows that are left out, as a sentence; that all are kept where there are none.

        Args:
            threshold: the least utility of a row that is kept (millionths).
            verb: `are`, or `would be`.
        """
        found = " or ".join(one.text for one in self.left_out(threshold))
        return f"rows with {self.column} {found} {verb} left out" if found else f"all rows {verb} kept"


def _written(value: Decimal) -> str:
    """All digits of a number, without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(value: Fraction) -> str:
    """A number as it is written, or about so."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"about {float(value):.6g}"
    whole = Decimal(value.numerator) / Decimal(value.denominator)
    return _written(whole)
