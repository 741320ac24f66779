"""The k-skyband of intervals: those that have, at some instant, fewer than k better ones beside them.

Mouratidis, Bakiras and Papadias (SIGMOD 2006) keep for a sliding window the rows that fewer than k better and
later ones dominate. That is a walk from the last end to the first with the k best seen so far.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel


@kernel(INT1, INT1, INT1, INT1)
def cut_where_one_ends(
    order: Int64Array, codes: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, int]:
    """Cut each code's intervals into blocks in which none ends before the last has started.

    Args:
        order: intervals sorted by (code, start).
        codes, starts, ends: int64[n] per interval.

    Returns:
        The block of each interval, numbered in order, int64[n]; and how many blocks there are.
    """
    blocks = np.zeros(len(codes), dtype=np.int64)
    count, until = 0, np.int64(0)
    for place in range(len(order)):
        row = order[place]
        if place == 0 or codes[row] != codes[order[place - 1]] or starts[row] >= until:
            count += 1
            until = ends[row]
        blocks[row] = count - 1
        until = min(until, ends[row])
    return blocks, count


@kernel(INT1, INT1, INT1, INT)
def best_so_far(order: Int64Array, codes: Int64Array, ranks: Int64Array, limit: int) -> npt.NDArray[np.bool_]:
    """Which rows have fewer than `limit` strictly better ones of their code before them.

    Args:
        order: rows sorted by code, and then as they are to be gone through.
        codes, ranks: int64[n] per row; the smaller the rank the better.
        limit: at least 1.

    Returns:
        bool[n], false for rows that are not in `order`.
    """
    marks = np.zeros(len(codes), dtype=np.bool_)
    best = [np.int64(0)]
    best.clear()
    for place in range(len(order)):
        row = order[place]
        if place > 0 and codes[row] != codes[order[place - 1]]:
            best.clear()
        # The smallest of the complements, on top of the heap, is that of the largest rank.
        if len(best) < limit:
            heapq.heappush(best, ~ranks[row])
            marks[row] = True
        elif ranks[row] <= ~best[0]:
            marks[row] = True
            if ranks[row] < ~best[0]:
                heapq.heapreplace(best, ~ranks[row])
    return marks
