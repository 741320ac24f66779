"""The definitions of sections 3.2, 4.2 and 5.2 of Srivastava and Widom, PODS 2004.

Products and closure of skew bounds, what follows from the deviations and rates of clocks, and groups of
streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import ceil

Triple = tuple[int, int, int]
"""A bound: how far behind, after how much time, and after how many rows of the second stream."""

Matrix = dict[tuple[int, int], set[Triple]]
"""Sets of bounds by pair of streams, from and to; none of them empty."""


def irredundant(bounds: set[Triple]) -> set[Triple]:
    """`S-`: the set without those pairs of which another is no larger in any number (footnote 1)."""
    return {
        bound
        for bound in bounds
        if not any(
            other != bound and all(a <= b for a, b in zip(other, bound, strict=True)) for other in bounds
        )
    }


def product(
    one: Mapping[tuple[int, int], set[Triple]], other: Mapping[tuple[int, int], set[Triple]]
) -> Matrix:
    """`B * B'`. A bound that counts rows cannot be the first step of a path of which one bound is made."""
    streams = {stream for pair in (*one, *other) for stream in pair}
    found: Matrix = {}
    for first in streams:
        for second in streams:
            bounds = one.get((first, second), set()) | other.get((first, second), set())
            for middle in streams:
                for delta, wait, rows in one.get((first, middle), set()):
                    for behind, later, count in other.get((middle, second), set()):
                        if rows == 0:
                            bounds = bounds | {(delta + behind, wait + later, count)}
            if bounds:
                found[first, second] = irredundant(bounds)
    return found


def power(matrix: Mapping[tuple[int, int], set[Triple]], exponent: int) -> Matrix:
    """The matrix raised to a power; for the number of streams it is `B*`."""
    result = product(matrix, {})
    for _ in range(exponent - 1):
        result = product(result, matrix)
    return result


def of_deviations(deviations: Sequence[int]) -> Matrix:
    """Bounds between sources whose clocks deviate from one that all of them are set by (section 4.2).

    The paper's `(0, d_i + d_j)` is for clocks that never deviate by all of that. Here they may, so that it is
    one instant more.

    Args:
        deviations: of each source, at most, to either side (instants).
    """
    return {
        (first, second): {(one + other + 1, 0, 0)}
        for first, one in enumerate(deviations)
        for second, other in enumerate(deviations)
        if first != second
    }


def with_rates(matrix: Mapping[tuple[int, int], set[Triple]], rates: Mapping[int, Fraction]) -> Matrix:
    """Everything that follows from bounds and the rates of clocks, until nothing more does (section 4.2).

    What is behind by `delta` has made that up when `delta / rate` has passed.

    Args:
        matrix: the bounds.
        rates: by stream, how far its clock advances in a unit of the bounds' waits, at least.
    """
    known: Matrix = {}
    found = product(matrix, {})
    while found != known:
        known = found
        made_up = {
            (first, second): {
                (0, wait + ceil(delta / rates[second]), 0) for delta, wait, rows in bounds if not rows
            }
            for (first, second), bounds in known.items()
            if second in rates
        }
        found = product(known, made_up)
        found = product(found, found)
    return found


# --- groups of streams -------------------------------------------------------------------------------------
# All streams of a group have one heartbeat, which is made from the rows of any of them and the weakest bounds
# between them. No stream that has a heartbeat of its own is to be behind it.


def weaker(one: set[Triple], other: set[Triple]) -> set[Triple]:
    """What both sets of bounds guarantee: for each wait the weaker of the two (the paper's square union)."""
    return irredundant(
        {(max(a, d), max(b, e), max(c, f)) for (a, b, c), (d, e, f) in itertools.product(one, other)}
    )


def grouped(matrix: Mapping[tuple[int, int], set[Triple]], groups: Sequence[Sequence[int]]) -> Matrix:
    """The bounds between groups: the weakest of any of their streams on any of the other's.

    Rows of a group are not those of the stream that a bound counts, so that such bounds hold for groups of
    one stream only.

    Args:
        matrix: bounds between streams; their closure, for the strongest bounds.
        groups: of each the numbers of its streams; none is empty.
    """
    found: Matrix = {}
    for a, b in itertools.product(range(len(groups)), repeat=2):
        sets = [
            {bound for bound in matrix.get((i, j), set()) if len(groups[b]) == 1 or bound[2] == 0}
            for i in groups[a]
            for j in groups[b]
        ]
        if bounds := reduce(weaker, sets):
            found[a, b] = irredundant(bounds)
    return found
