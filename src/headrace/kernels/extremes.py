"""MIN and MAX over a changing multiset: presence intervals of values, and a sweep with a heap."""

from __future__ import annotations

import heapq

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel

_INFINITY = np.iinfo(np.int64).max


@kernel(INT1, INT1, INT1, INT1, INT1)
def presence_intervals(
    order: Int64Array, codes: Int64Array, ranks: Int64Array, times: Int64Array, counts: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The intervals in which a value of a key has a positive count.

    Args:
        order: rows sorted by (code, rank, time).
        codes, ranks, times, counts: int64[n]; a row changes the count of value `rank` of key `code`.

    Returns:
        The row that opens each interval, its start and its end (INFINITY while it is open); int64[p] each.
    """
    opening = np.empty(len(order), dtype=np.int64)
    starts = np.empty(len(order), dtype=np.int64)
    ends = np.empty(len(order), dtype=np.int64)
    found = 0
    count = np.int64(0)
    is_open = False
    for place in range(len(order)):
        row = order[place]
        if place > 0:
            last = order[place - 1]
            if codes[row] != codes[last] or ranks[row] != ranks[last]:
                count = np.int64(0)
                is_open = False
        count += counts[row]
        if place + 1 < len(order):
            following = order[place + 1]
            if (
                codes[following] == codes[row]
                and ranks[following] == ranks[row]
                and times[following] == times[row]
            ):
                continue
        if count > 0 and not is_open:
            opening[found] = row
            starts[found] = times[row]
            ends[found] = _INFINITY
            found += 1
            is_open = True
        elif count <= 0 and is_open:
            ends[found - 1] = times[row]
            is_open = False
    return opening[:found].copy(), starts[:found].copy(), ends[:found].copy()


@kernel(INT1, INT1, INT1, INT1, INT1, INT1, INT1)
def smallest_present(
    point_codes: Int64Array,
    point_times: Int64Array,
    order: Int64Array,
    codes: Int64Array,
    ranks: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
) -> Int64Array:
    """The interval of the smallest rank that is present at each point, or -1 where none is.

    Args:
        point_codes, point_times: int64[m], sorted by (code, time).
        order: intervals sorted by (code, start).
        codes, ranks, starts, ends: int64[p] per interval.
    """
    result = np.full(len(point_codes), -1, dtype=np.int64)
    heap = [(np.int64(0), np.int64(0))]
    heap.clear()
    at = 0
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            heap.clear()
            while at < len(order) and codes[order[at]] < code:
                at += 1
        while at < len(order) and codes[order[at]] == code and starts[order[at]] <= point_times[point]:
            heapq.heappush(heap, (ranks[order[at]], np.int64(order[at])))
            at += 1
        while len(heap) > 0 and ends[heap[0][1]] <= point_times[point]:
            heapq.heappop(heap)
        if len(heap) > 0:
            result[point] = heap[0][1]
    return result
