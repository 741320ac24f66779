"""The smallest of the values that are present, where values only come and their ends are known."""

from __future__ import annotations

import heapq

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, inner, int_arrays, kernel
from headrace.kernels.values.inputs import KeyPoints, RankedIntervals

_INFINITY = int(np.iinfo(np.int64).max)


@inner
def _push_on_queue(queue, span, row, ranks):  # type: ignore[no-untyped-def]
    head, tail = span
    while tail > head and ranks[queue[tail - 1]] >= ranks[row]:
        tail -= 1
    queue[tail] = row
    return head, tail + 1


@inner
def _sweep_queue(queue, rows, times, ranks, starts, ends, since, result, needed):  # type: ignore[no-untyped-def]
    """One code whose intervals end in the order in which they start.

    What is on the queue has ever larger ranks and ends: whatever has a rank no smaller than that of a later
    interval goes. This is the monotone queue of the textbooks, with one step per interval and no heap.
    """
    span, at = (0, 0), 0
    for point in range(len(times) + 1):
        # After the last point comes what happens from `since` on.
        instant = times[point] if point < len(times) else since
        while True:
            while at < len(rows) and starts[rows[at]] <= instant:
                span = _push_on_queue(queue, span, rows[at], ranks)
                at += 1
            while span[0] < span[1] and ends[queue[span[0]]] <= instant:
                span = (span[0] + 1, span[1])
            if point < len(times):
                if span[0] < span[1]:
                    result[point] = queue[span[0]]
                break
            following = starts[rows[at]] if at < len(rows) else _INFINITY
            if span[0] < span[1]:
                needed[queue[span[0]]] = 1
                following = min(following, ends[queue[span[0]]])
            elif at == len(rows):
                break
            instant = following


@inner
def _sweep_heap(heap, rows, times, ranks, starts, ends, since, result, needed):  # type: ignore[no-untyped-def]
    """One code whose intervals end in any order."""
    heap.clear()
    at = 0
    for point in range(len(times) + 1):
        instant = times[point] if point < len(times) else since
        while True:
            while at < len(rows) and starts[rows[at]] <= instant:
                heapq.heappush(heap, (ranks[rows[at]], np.int64(rows[at])))
                at += 1
            while len(heap) > 0 and ends[heap[0][1]] <= instant:
                heapq.heappop(heap)
            if point < len(times):
                if len(heap) > 0:
                    result[point] = heap[0][1]
                break
            following = starts[rows[at]] if at < len(rows) else _INFINITY
            if len(heap) > 0:
                needed[heap[0][1]] = 1
                following = min(following, ends[heap[0][1]])
            elif at == len(rows):
                break
            instant = following


@kernel(INT1, INT1, INT1, INT)
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


@kernel(int_arrays(KeyPoints), int_arrays(RankedIntervals), INT1, INT)
def lower_envelope(
    points: KeyPoints, intervals: RankedIntervals, order: Int64Array, since: int
) -> tuple[Int64Array, Int64Array]:
    """The interval of the smallest rank that is present at each point, and who will be it later.

    Args:
        points: m of them.
        intervals: p of them.
        order: int64[p], the intervals sorted by (code, start).
        since: an instant that no point is after.

    Returns:
        int64[m], -1 where none is present; and int64[p], 1 for each interval that is the smallest at some
        instant from `since` on. The others can be forgotten: something smaller outlives them.
    """
    point_codes, point_times = points
    codes, ranks, starts, ends = intervals
    result = np.full(len(point_codes), -1, dtype=np.int64)
    needed = np.zeros(len(codes), dtype=np.int64)
    queue = np.empty(len(order), dtype=np.int64)
    heap = [(np.int64(0), np.int64(0))]
    first, at = 0, 0
    while first < len(point_codes):
        code, last = point_codes[first], first
        while last < len(point_codes) and point_codes[last] == code:
            last += 1
        while at < len(order) and codes[order[at]] < code:
            at += 1
        end, in_order = at, True
        while end < len(order) and codes[order[end]] == code:
            in_order = in_order and (end == at or ends[order[end - 1]] <= ends[order[end]])
            end += 1
        rows, times, found = order[at:end], point_times[first:last], result[first:last]
        if in_order:
            _sweep_queue(queue, rows, times, ranks, starts, ends, since, found, needed)
        else:
            _sweep_heap(heap, rows, times, ranks, starts, ends, since, found, needed)
        first, at = last, end
    return result, needed
