"""What many values of a changing multiset have in common: the most frequent one, and their bits."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, int_arrays, kernel
from headrace.kernels.values.inputs import CountChanges, KeyPoints


@kernel(int_arrays(CountChanges), INT1, int_arrays(KeyPoints))
def most_frequent(changes: CountChanges, starts: Int64Array, points: KeyPoints) -> Int64Array:
    """The value of each key's multiset that is there most often, at every point; of several the smallest.

    The winners of a tournament between the values' counts are kept: a change asks for a logarithm of them.

    Args:
        changes, starts, points: as in `order_statistics.order_statistics`.

    Returns:
        The numbers of the values, int64[m], -1 where the multiset is empty.
    """
    codes, times, numbers, counts = changes
    point_codes, point_times = points
    result = np.full(len(point_codes), -1, dtype=np.int64)
    live = np.zeros(starts[-1], dtype=np.int64)
    winners = np.empty(0, dtype=np.int64)
    at, start, leaves = 0, np.int64(0), np.int64(1)
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            start, leaves = starts[code], np.int64(1)
            while leaves < starts[code + 1] - start:
                leaves *= 2
            winners = np.empty(2 * leaves, dtype=np.int64)
            for leaf in range(leaves):
                winners[leaves + leaf] = min(leaf, starts[code + 1] - start - 1)
            for node in range(leaves - 1, 0, -1):
                winners[node] = winners[2 * node]
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            live[numbers[at]] += counts[at]
            node = (leaves + numbers[at] - start) // 2
            while node > 0:
                left, right = winners[2 * node], winners[2 * node + 1]
                winners[node] = right if live[start + right] > live[start + left] else left
                node //= 2
            at += 1
        best = start + winners[1]
        # A key without any value has no winner: what would be its is another key's.
        if starts[code + 1] > start and live[best] > 0:
            result[point] = best
    return result


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
