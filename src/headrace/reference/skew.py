"""The definitions of section 3.2 of Srivastava and Widom, PODS 2004: products and closure of skew bounds."""

from __future__ import annotations

from collections.abc import Mapping

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
