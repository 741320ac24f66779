"""Shortest paths by two lengths at once."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel


@kernel(INT1, INT1, INT1, INT1, INT, INT)
def best_paths(
    starts: Int64Array, targets: Int64Array, first: Int64Array, second: Int64Array, sources: int, longest: int
) -> Int64Array:
    """The lengths of the paths from each of some nodes to each node, without those that others beat in both.

    Paths are taken in order of their first length, so that one is worth keeping exactly if its second length
    is less than that of all those taken before it at its node (Martins 1984, with two objectives).

    Args:
        starts: int64[nodes + 1], where the edges of each node begin.
        targets: int64[edges], where they lead, rising for each node.
        first, second: int64[edges], their lengths, none negative.
        sources: paths begin at the nodes below this number.
        longest: paths that are longer than this, in either length, are left out; twice of it fits an int64.

    Returns:
        int64[paths, 4]: begin, end, first and second length; by begin, then in the order in which they
        are found. Paths have at least one edge.
    """
    found = np.empty((max(len(targets), 16), 4), dtype=np.int64)
    number = 0
    for source in range(sources):
        least = np.full(len(starts) - 1, longest + 1, dtype=np.int64)
        direct = np.searchsorted(targets[starts[source] : starts[source + 1]], np.arange(len(starts)))
        direct += starts[source]
        ahead = [
            (first[edge], second[edge], targets[edge]) for edge in range(starts[source], starts[source + 1])
        ]
        heapify(ahead)
        while ahead:
            one, other, node = heappop(ahead)
            if other >= least[node] or one > longest:
                continue
            least[node] = other
            if number == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[number] = (source, node, one, other)
            number += 1
            if node == source:
                continue
            for edge in range(starts[node], starts[node + 1]):
                target, length, longer = targets[edge], one + first[edge], other + second[edge]
                keep = longer < least[target]
                # Most paths are beaten by an edge, which need not have been taken yet.
                for straight in range(direct[target], direct[target + 1]):
                    keep &= length < first[straight] or longer < second[straight]
                if keep:
                    heappush(ahead, (length, longer, target))
    return found[:number]
