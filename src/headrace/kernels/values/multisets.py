"""The most frequent values of changing multisets, and the bits that their values have in common."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, Number, inner, int_arrays, kernel
from headrace.kernels.values.inputs import CountChanges, KeyPoints


@kernel(int_arrays(CountChanges), INT1, int_arrays(KeyPoints), INT)
def most_frequent(
    changes: CountChanges, starts: Int64Array, points: KeyPoints, most: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The values of each key's multiset that are there most often, at every point; of several the smallest.

    The winners of a tournament between the values' counts are kept: a change asks for a logarithm of them.

    Args:
        changes, starts, points: as in `order_statistics.order_statistics`.
        most: so many of them, at least 1.

    Returns:
        Where each point's values start (int64[m + 1]), their numbers, and how often each is there.
    """
    codes, times, numbers, counts = changes
    point_codes, point_times = points
    offsets = np.zeros(len(point_codes) + 1, dtype=np.int64)
    found = np.empty((2, max(16, len(point_codes))), dtype=np.int64)
    live = np.zeros(starts[-1], dtype=np.int64)
    winners = np.empty(0, dtype=np.int64)
    at, start, leaves = 0, np.int64(0), 1
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            start = starts[code]
            winners = _tournament(starts[code + 1] - start)
            leaves = len(winners) // 2
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            _count(live, winners, start, leaves, numbers[at], counts[at])
            at += 1
        end = offsets[point]
        # A key without any value has no winner: what would be its is another key's.
        while starts[code + 1] > start and end < offsets[point] + most and live[start + winners[1]] > 0:
            if end == found.shape[1]:
                found = np.concatenate((found, np.empty_like(found)), axis=1)
            best = start + winners[1]
            found[0, end], found[1, end] = best, live[best]
            end += 1
            if most > 1:
                # It stands back until the others of the point are found.
                _count(live, winners, start, leaves, best, -live[best])
        if most > 1:
            for place in range(offsets[point], end):
                _count(live, winners, start, leaves, found[0, place], found[1, place])
        offsets[point + 1] = end
    return offsets, found[0, : offsets[-1]].copy(), found[1, : offsets[-1]].copy()


@inner
def _tournament(size: Number) -> Int64Array:
    """The winners where none of so many values is there: that of each node, then the values."""
    leaves = np.int64(1)
    while leaves < size:
        leaves *= 2
    winners = np.empty(2 * leaves, dtype=np.int64)
    for leaf in range(leaves):
        winners[leaves + leaf] = min(leaf, size - 1)
    for node in range(leaves - 1, 0, -1):
        winners[node] = winners[2 * node]
    return winners


@inner
def _count(
    live: Int64Array, winners: Int64Array, start: Number, leaves: Number, number: Number, change: Number
) -> None:
    """Change how often a value is there, and let it play against the others again."""
    live[number] += change
    node = (leaves + number - start) // 2
    while node > 0:
        left, right = winners[2 * node], winners[2 * node + 1]
        winners[node] = right if live[start + right] > live[start + left] else left
        node //= 2


@kernel(int_arrays(CountChanges), INT1, int_arrays(KeyPoints))
def common_bits(
    changes: CountChanges, values: Int64Array, points: KeyPoints
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The bits that all values of each key's multiset have, that some have, and that an odd number has.

    Args:
        changes, points: as in `order_statistics.order_statistics`.
        values: int64[v], the value of each number.

    Returns:
        The bits of each kind at every point, int64[m] each; 0 where the multiset is empty.
    """
    codes, times, numbers, counts = changes
    point_codes, point_times = points
    found = (
        np.zeros(len(point_codes), dtype=np.int64),
        np.zeros(len(point_codes), dtype=np.int64),
        np.zeros(len(point_codes), dtype=np.int64),
    )
    having = np.zeros(64, dtype=np.int64)
    at, total = 0, np.int64(0)
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            having[:], total = 0, np.int64(0)
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            for bit in range(64):
                having[bit] += counts[at] * ((values[numbers[at]] >> bit) & 1)
            total += counts[at]
            at += 1
        if total <= 0:
            continue
        for bit in range(64):
            mask = np.int64(1) << np.int64(bit)
            found[0][point] |= mask if having[bit] == total else 0
            found[1][point] |= mask if having[bit] > 0 else 0
            found[2][point] |= mask if having[bit] & 1 else 0
    return found
