"""The order of integers."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel

_DIGIT = 11
"""So many bits are sorted by at a time: the counts of all digits stay in the nearest cache."""
_LONG_RUNS = 16
"""From this length of ascending runs on, merging them is faster than sorting by digits."""


def stable_order(values: Int64Array) -> Int64Array:
    """The positions that sort the values, equal ones in their order; int64[n].

    What is sorted is left, what has long ascending runs is merged (as NumPy's stable sort does), and all else
    is sorted digit by digit: in half the time or less, for values far apart too.
    """
    descents = count_descents(values)
    if descents == 0:
        return np.arange(len(values))
    if descents * _LONG_RUNS < len(values):
        return np.argsort(values, kind="stable")
    return order_by_digits(values)


@kernel(INT1)
def count_descents(values: Int64Array) -> int:
    """How many values are below the one before them."""
    count = 0
    for place in range(1, len(values)):
        count += values[place] < values[place - 1]
    return count


@kernel(INT1)
def order_by_digits(values: Int64Array) -> Int64Array:
    """The positions that sort the values, equal ones in their order (radix sort); int64[n]."""
    count = len(values)
    order, other = np.arange(count), np.empty(count, dtype=np.int64)
    if count == 0:
        return order
    low, high = values.min(), values.max()
    bits = 0
    while bits < 64 and (np.uint64(high) - np.uint64(low)) >> np.uint64(bits):
        bits += 1
    passes = max(1, (bits + _DIGIT - 1) // _DIGIT)
    width = np.uint64((bits + passes - 1) // passes)
    mask = (np.uint64(1) << width) - np.uint64(1)
    # Distances from the smallest value wrap to what they are as numbers without a sign.
    keys, moved = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
    for place in range(count):
        keys[place] = np.uint64(values[place]) - np.uint64(low)
    starts = np.empty(int(mask) + 2, dtype=np.int64)
    for step in range(passes):
        shift = np.uint64(step) * width
        starts[:] = 0
        for place in range(count):
            starts[int((keys[place] >> shift) & mask) + 1] += 1
        for digit in range(int(mask)):
            starts[digit + 1] += starts[digit]
        for place in range(count):
            digit = int((keys[place] >> shift) & mask)
            other[starts[digit]], moved[starts[digit]] = order[place], keys[place]
            starts[digit] += 1
        order, other = other, order
        keys, moved = moved, keys
    return order
