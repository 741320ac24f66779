"""The k-th smallest value of a changing multiset, or all, by counts in a Fenwick tree (Fenwick 1994)."""

from __future__ import annotations

import math

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import BYTES, FLOAT1, INT1, TRUTH, int_arrays, kernel
from headrace.kernels.values.fenwick import add_count, find_place, first_step
from headrace.kernels.values.inputs import CountChanges, KeyPoints


@kernel(int_arrays(CountChanges), INT1, int_arrays(KeyPoints), FLOAT1, BYTES)
def order_statistics(
    changes: CountChanges,
    starts: Int64Array,
    points: KeyPoints,
    fractions: Float64Array,
    discrete: np.ndarray,
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """The values at some fractions of each key's sorted multiset, at every point.

    Args:
        changes: of the values' counts.
        starts: int64[k + 1]: the values of key c have the numbers from `starts[c]` up to `starts[c + 1]`,
            the smallest first.
        points: m of them.
        fractions: float64[f], each 0 (the smallest value) to 1 (the largest).
        discrete: uint8[f], 1 where the place is the first one at which at least that fraction of the values
            has been counted, and never between two of them.

    Returns:
        The numbers of the values below and above the place in question, int64[m * f] each, -1 where the
        multiset is empty, and how far between them it lies, float64[m * f]; point after point.
    """
    codes, times, numbers, counts = changes
    point_codes, point_times = points
    width = len(fractions)
    lower = np.full(len(point_codes) * width, -1, dtype=np.int64)
    upper = np.full(len(point_codes) * width, -1, dtype=np.int64)
    share = np.zeros(len(point_codes) * width, dtype=np.float64)
    tree = np.zeros(starts[-1], dtype=np.int64)
    at, total, start, size, step = 0, np.int64(0), np.int64(0), np.int64(0), np.int64(1)
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            total = np.int64(0)
            start, size = starts[code], starts[code + 1] - starts[code]
            step = first_step(size)
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            add_count(tree, start, size, numbers[at] - start, counts[at])
            total += counts[at]
            at += 1
        if total <= 0:
            continue
        for column in range(width):
            if discrete[column]:
                place = max(0.0, np.ceil(fractions[column] * total) - 1.0)
            else:
                place = fractions[column] * (total - 1)
            below = np.int64(math.floor(place))
            lower[point * width + column] = start + find_place(tree, start, size, step, below)
            share[point * width + column] = place - below
            upper[point * width + column] = lower[point * width + column]
            if place > below:
                upper[point * width + column] = start + find_place(tree, start, size, step, below + 1)
    return lower, upper, share


@kernel(int_arrays(CountChanges), INT1, int_arrays(KeyPoints), BYTES, TRUTH)
def sorted_values(
    changes: CountChanges,
    starts: Int64Array,
    points: KeyPoints,
    wanted: np.ndarray,
    distinct: bool,
) -> tuple[Int64Array, Int64Array]:
    """All values of each key's multiset, the smallest first, at every point.

    Args:
        changes, starts, points: as in `order_statistics`.
        wanted: uint8[m], 0 at the points that get no values.
        distinct: whether a value that is there several times is given once.

    Returns:
        Where each point's values start (int64[m + 1]), and their numbers.
    """
    codes, times, numbers, counts = changes
    point_codes, point_times = points
    offsets = np.zeros(len(point_codes) + 1, dtype=np.int64)
    result = np.empty(max(16, len(codes)), dtype=np.int64)
    tree = np.zeros(starts[-1], dtype=np.int64)
    live = np.zeros(starts[-1], dtype=np.int64)
    at, total, start, size, step = 0, np.int64(0), np.int64(0), np.int64(0), np.int64(1)
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            total = np.int64(0)
            start, size = starts[code], starts[code + 1] - starts[code]
            step = first_step(size)
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            number, change = numbers[at], counts[at]
            live[number] += change
            if distinct:
                change = np.int64(live[number] > 0) - np.int64(live[number] - counts[at] > 0)
            add_count(tree, start, size, number - start, change)
            total += change
            at += 1
        offsets[point + 1] = offsets[point]
        if wanted[point] and total > 0:
            offsets[point + 1] += total
            while len(result) < offsets[point + 1]:
                result = np.concatenate((result, np.empty_like(result)))
            for rank in range(total):
                result[offsets[point] + rank] = start + find_place(tree, start, size, step, rank)
    return offsets, result[: offsets[-1]].copy()
