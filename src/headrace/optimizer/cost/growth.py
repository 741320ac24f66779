"""How many different values there are among so many rows, as measured on a sample.

The thesis takes values to be uniform and independent of time. Neither holds where it matters: half of all
bids are on a few auctions, and there are new auctions all the time. So the number of different values is
measured on stretches of a sample, of a few lengths; in between, and beyond, it is taken as a power of the
number of rows (Heaps' law).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array
from headrace.history import normalise_column, ordered_codes
from headrace.nested import is_nested

_STEP: Final = 4
"""Each length that is measured is so many times the next shorter one."""
_STRETCHES: Final = 8
"""So many stretches of a length are looked at, spread over the sample."""
_MOST_CHOICES: Final = 1_000.0
"""With so many times as many values as rows hardly two rows have the same one."""
_HALVINGS: Final = 60
"""After so many halvings of an interval nothing is left of it."""


@dataclass(frozen=True)
class Growth:
    """A number of different values as a function of a number of rows.

    Attributes:
        points: numbers of rows, increasing, each with how many different values so many rows have. The first
            number of rows is 1.
    """

    points: tuple[tuple[float, float], ...]

    def at(self, rows: float) -> float:
        """How many different values so many rows have, about; between 0 and `rows`."""
        if rows <= 1 or len(self.points) == 1:
            return min(max(rows, 0.0), self.points[-1][1])
        behind = next((place for place, (some, _) in enumerate(self.points) if some >= rows), None)
        place = len(self.points) - 1 if behind is None else max(1, behind)
        (less, few), (more, many) = self.points[place - 1 : place + 1]
        power = math.log(many / few) / math.log(more / less)
        return min(rows, few * math.pow(rows / less, power))

    def among(self, groups: Growth) -> Growth:
        """How many different values so many groups of rows have, by how many groups there are."""
        points = [(1.0, 1.0)]
        for rows in sorted({rows for growth in (self, groups) for rows, _ in growth.points}):
            number = groups.at(rows)
            if number > points[-1][0]:
                points.append((number, max(1.0, min(number, self.at(rows)))))
        return Growth(tuple(points))


ONE: Final = Growth(((1.0, 1.0),))
"""Of one value that all rows have."""
ALL: Final = Growth(((1.0, 1.0), (2.0, 2.0)))
"""Of values that are all different."""


def codes_of(columns: Sequence[pa.Array], rows: int) -> Int64Array:
    """int64[rows]: equal numbers where the columns are equal, NULL to NULL.

    Args:
        columns: of `rows` values each.
        rows: how many rows there are.
    """
    codes: Int64Array = np.zeros(rows, dtype=np.int64)
    for column in columns:
        if is_nested(column.type):
            # Arrow numbers single values only.
            column = pa.array(ordered_codes(normalise_column(column)))
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        places = np.asarray(encoded.indices, dtype=np.int64)
        codes = codes * (len(encoded.dictionary) + 1) + places
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes


def growth_of(codes: Int64Array, most: float = 1) -> Growth:
    """The growth of the number of different values, measured on rows in the order of time.

    Args:
        codes: int64[n], equal where the values are.
        most: of each value so many rows are counted.
    """
    if not len(codes):
        return ALL
    lengths = [len(codes)]
    while lengths[-1] > 1:
        lengths.append(max(1, lengths[-1] // _STEP))
    points = ((float(length), _different(codes, length, most)) for length in reversed(lengths))
    return Growth(tuple(points))


def evenly_spread(rows: float, different: float) -> Growth:
    """The growth of the number of different values where rows have so many, each as often as the others.

    With n values to choose from, r rows have n (1 - e^(-r/n)) different ones. This n is found by bisection.

    Args:
        rows: how many rows there are.
        different: how many different values they have, at most `rows`.
    """
    if different <= 1 or rows <= 1:
        return ONE if different <= 1 < rows else ALL
    low, high = 1.0, rows * _MOST_CHOICES
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if -middle * math.expm1(-rows / middle) < different else (low, middle)
    lengths = [1.0]
    while lengths[-1] < rows * _STEP:
        lengths.append(lengths[-1] * 2)
    return Growth(
        tuple((length, max(1.0, min(length, -high * math.expm1(-length / high)))) for length in lengths)
    )


def _different(codes: Int64Array, length: int, most: float) -> float:
    """The mean number of different values in stretches of a length, so many rows of each."""
    stretches = min(_STRETCHES, len(codes) // length)
    begins = np.linspace(0, len(codes) - length, stretches).astype(np.int64)
    counts = (np.unique(codes[begin : begin + length], return_counts=True)[1] for begin in begins)
    return float(np.mean([np.minimum(count, most).sum() for count in counts]))


def together(parts: Sequence[Growth]) -> Growth:
    """How the number of different combinations grows, taking what is combined as independent."""
    lengths = sorted({rows for part in parts for rows, _ in part.points})
    if not lengths:
        return ONE
    return Growth(
        tuple((rows, max(1.0, min(rows, math.prod(part.at(rows) for part in parts)))) for rows in lengths)
    )
