"""The definition of groups of streams: section 5.2 of Srivastava and Widom, PODS 2004.

There all streams of a group have one heartbeat, which is made from the rows of any of them and the weakest
bounds between them. No stream that has a heartbeat of its own is to be behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product

from headrace.reference.skew import Matrix, Triple, irredundant


def weaker(one: set[Triple], other: set[Triple]) -> set[Triple]:
    """What both sets of bounds guarantee: for each wait the weaker of the two (the paper's square union)."""
    return irredundant({(max(a, d), max(b, e), max(c, f)) for (a, b, c), (d, e, f) in product(one, other)})


def grouped(matrix: Mapping[tuple[int, int], set[Triple]], groups: Sequence[Sequence[int]]) -> Matrix:
    """The bounds between groups: the weakest of any of their streams on any of the other's.

    Rows of a group are not those of the stream that a bound counts, so that such bounds hold for groups of
    one stream only.

    Args:
        matrix: bounds between streams; their closure, for the strongest bounds.
        groups: of each the numbers of its streams; none is empty.
    """
    found: Matrix = {}
    for a, b in product(range(len(groups)), repeat=2):
        sets = [
            {bound for bound in matrix.get((i, j), set()) if len(groups[b]) == 1 or bound[2] == 0}
            for i in groups[a]
            for j in groups[b]
        ]
        if bounds := reduce(weaker, sets):
            found[a, b] = irredundant(bounds)
    return found
