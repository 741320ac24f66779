"""Streams that are treated as one, so that a hundred thousand sources cost a few groups.

Srivastava and Widom, PODS 2004, section 5.2. The bounds of a group are the weakest that its streams have, its
arrivals are those of all of them joined by `Arrivals.beside`, and it has one heartbeat.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product

from headrace.heartbeats.skew import Bound, Bounds, SkewMatrix, without_redundant


def weaker(one: Bounds, other: Bounds) -> Bounds:
    """What both sets of bounds guarantee: for each wait the weaker of the two (the paper's square union)."""
    return without_redundant(
        Bound(max(a.delta, b.delta), max(a.wait, b.wait), max(a.rows, b.rows)) for a, b in product(one, other)
    )


def of_any(sets: Iterable[Bounds], streams: int) -> Bounds:
    """What all of some sets of bounds guarantee, to a group of so many streams.

    Rows of a group are not those of the stream that a bound counts, so that such bounds hold for groups of
    one stream only.
    """
    usable = (tuple(one for one in bounds if streams == 1 or not one.rows) for bounds in sets)
    return reduce(weaker, usable)


def grouped(matrix: SkewMatrix, groups: Sequence[Sequence[int]]) -> SkewMatrix:
    """The bounds between groups: the weakest of any of their streams on any of the other's.

    Args:
        matrix: bounds between streams; their closure, for the strongest bounds.
        groups: of each the numbers of its streams; none is empty.
    """
    found = {
        (a, b): of_any((matrix.between(i, j) for i in groups[a] for j in groups[b]), len(groups[b]))
        for a, b in product(range(len(groups)), repeat=2)
    }
    latencies = tuple(max(matrix.latencies[i] for i in group) for group in groups)
    return SkewMatrix(latencies, found)


def by_parameters(parameters: Iterable[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Groups of streams with equal parameters, in the order in which these come first."""
    found: dict[Hashable, list[int]] = {}
    for stream, value in enumerate(parameters):
        found.setdefault(value, []).append(stream)
    return tuple(map(tuple, found.values()))


def of_kinds(
    sizes: Sequence[int],
    latencies: Sequence[int],
    own: Sequence[Bounds],
    between: Mapping[tuple[int, int], Bounds],
) -> SkewMatrix:
    """The bounds between groups of sources of one kind each, without those between single sources.

    Args:
        sizes: how many sources each group has.
        latencies: of the sources of each (microseconds).
        own: bounds from a source of a group to itself.
        between: bounds from a source of a group to another source, of a second group or of the same.
    """
    found = {}
    for a, b in product(range(len(sizes)), repeat=2):
        sets = [between.get((a, b), ())] if a != b or sizes[a] > 1 else []
        found[a, b] = of_any([*sets, own[a]] if a == b else sets, sizes[b])
    return SkewMatrix(tuple(latencies), found)
