"""The smallest of the values that are present, where values only come and their ends are known."""

from __future__ import annotations

import heapq

import numba
import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel

_INFINITY = int(np.iinfo(np.int64).max)


@numba.njit(cache=True)
def _advance(heap, at, order, codes, ranks, starts, ends, code, instant):  # type: ignore[no-untyped-def]
    """Push what of the code has started by the instant, pop what ends on top; the next interval's place."""
    while at < len(order) and codes[order[at]] == code and starts[order[at]] <= instant:
        heapq.heappush(heap, (ranks[order[at]], np.int64(order[at])))
        at += 1
    while len(heap) > 0 and ends[heap[0][1]] <= instant:
        heapq.heappop(heap)
    return at


@kernel(INT1, INT1, INT1, numba.int64)
def smallest_rows(codes: Int64Array, ranks: Int64Array, rows: Int64Array, count: int) -> Int64Array:
    """For each code 0..count-1 the first of its rows with the smallest rank, or -1; int64[count].

    Args:
        codes, ranks: int64[n].
        rows: the rows to look at.
    """
    result = np.full(count, -1, dtype=np.int64)
    for place in range(len(rows)):
        row = rows[place]
        best = result[codes[row]]
        if best < 0 or ranks[row] < ranks[best]:
            result[codes[row]] = row
    return result


@kernel(INT1, INT1, INT1, INT1, INT1, INT1, INT1, numba.int64)
def lower_envelope(
    point_codes: Int64Array,
    point_times: Int64Array,
    order: Int64Array,
    codes: Int64Array,
    ranks: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
    since: int,
) -> tuple[Int64Array, Int64Array]:
    """The interval of the smallest rank that is present at each point, and who will be it later.

    Args:
        point_codes, point_times: int64[m], sorted by (code, time).
        order: intervals sorted by (code, start).
        codes, ranks, starts, ends: int64[p] per interval.
        since: an instant that no point lies behind.

    Returns:
        int64[m], -1 where none is present; and int64[p], 1 for each interval that is the smallest at some
        instant from `since` on. The others can be forgotten: something smaller outlives them.
    """
    result = np.full(len(point_codes), -1, dtype=np.int64)
    needed = np.zeros(len(codes), dtype=np.int64)
    heap = [(np.int64(0), np.int64(0))]
    heap.clear()
    at = 0
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            heap.clear()
            while at < len(order) and codes[order[at]] < code:
                at += 1
        at = _advance(heap, at, order, codes, ranks, starts, ends, code, point_times[point])
        if len(heap) > 0:
            result[point] = heap[0][1]
        if point + 1 < len(point_codes) and point_codes[point + 1] == code:
            continue
        instant = since
        while len(heap) > 0 or (at < len(order) and codes[order[at]] == code):
            at = _advance(heap, at, order, codes, ranks, starts, ends, code, instant)
            following = _INFINITY
            if at < len(order) and codes[order[at]] == code:
                following = int(starts[order[at]])
            if len(heap) > 0:
                needed[heap[0][1]] = 1
                following = min(following, int(ends[heap[0][1]]))
            instant = following
    return result, needed
