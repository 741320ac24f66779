"""The definitions of sections 3.2 and 4.2 of Srivastava and Widom, PODS 2004.

Products and closure of skew bounds, and what follows from the deviations and rates of clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
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
