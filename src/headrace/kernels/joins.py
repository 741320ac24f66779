"""Joins of sorted runs: by hash, and by hash and overlap of intervals."""

from __future__ import annotations

import numba
import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel

_FOR_EVER = 2**62
"""From this length on, an interval counts as reaching back to the beginning; instants lie within it."""


@numba.njit(cache=True, inline="always")
def _grow(array, used):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(array), dtype=np.int64)
    larger[:used] = array[:used]
    return larger


@kernel(INT1, INT1)
def match_hashes(probes: Int64Array, run: Int64Array) -> tuple[Int64Array, Int64Array]:
    """All pairs of a probe and a row of a run with the same hash.

    Args:
        probes: int64[k], sorted.
        run: int64[n], sorted.

    Returns:
        Positions in `probes` and in `run`, in order of the probes, then of the rows.
    """
    left = np.empty(len(probes) + 16, dtype=np.int64)
    right = np.empty(len(probes) + 16, dtype=np.int64)
    found = 0
    start = 0
    for probe in range(len(probes)):
        key = probes[probe]
        low, high = start, len(run)
        while low < high:
            middle = (low + high) // 2
            if run[middle] < key:
                low = middle + 1
            else:
                high = middle
        start = low
        row = low
        while row < len(run) and run[row] == key:
            if found == len(left):
                left = _grow(left, found)
                right = _grow(right, found)
            left[found] = probe
            right[found] = row
            found += 1
            row += 1
    return left[:found].copy(), right[:found].copy()


@kernel(INT1, INT1, INT1, INT1, INT1, INT1, numba.int64)
def join_intervals(
    left_hashes: Int64Array,
    left_ts: Int64Array,
    left_te: Int64Array,
    right_hashes: Int64Array,
    right_ts: Int64Array,
    right_te: Int64Array,
    reach: int,
) -> tuple[Int64Array, Int64Array]:
    """All pairs of rows with the same hash whose intervals overlap.

    Both inputs are sorted by (hash, ts). `reach` is the length of the longest right interval: a right row
    that starts `reach` or more before a left one cannot meet it, which bounds the search within a key.

    Returns:
        Positions on the left and on the right, in order of the left rows, then of the right ones.
    """
    left = np.empty(len(left_hashes) + 16, dtype=np.int64)
    right = np.empty(len(left_hashes) + 16, dtype=np.int64)
    found = 0
    group = 0
    for row in range(len(left_hashes)):
        key = left_hashes[row]
        earliest = left_ts[row] - reach if reach < _FOR_EVER else np.iinfo(np.int64).min
        while group < len(right_hashes) and right_hashes[group] < key:
            group += 1
        low, high = group, len(right_hashes)
        while low < high:
            middle = (low + high) // 2
            if right_hashes[middle] < key or (right_hashes[middle] == key and right_ts[middle] < earliest):
                low = middle + 1
            else:
                high = middle
        while low < len(right_hashes) and right_hashes[low] == key and right_ts[low] < left_te[row]:
            if right_te[low] > left_ts[row]:
                if found == len(left):
                    left = _grow(left, found)
                    right = _grow(right, found)
                left[found] = row
                right[found] = low
                found += 1
            low += 1
    return left[:found].copy(), right[:found].copy()
