"""Changes by time and by key: netting into runs of a schedule, and the next change of a key."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, INT2, OFFSETS, kernel


@kernel(INT1, INT1, INT1, INT1, INT2)
def net_schedule(
    by_time: Int64Array,
    by_key: Int64Array,
    codes: Int64Array,
    times: Int64Array,
    ints: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Add up the changes of one key at one time, and put them in order of time.

    Args:
        by_time: rows sorted by time.
        by_key: rows sorted by (hash of the key, code of the key, time).
        codes, times: int64[n] per row.
        ints: int64[n, c].

    Returns:
        For each of the m netted changes, in order of time, the first row that belongs to it (int64[m]); the
        changes sorted as `by_key` (int64[m]); and the sums (int64[c, m]).
    """
    count = len(by_time)
    point_of = np.empty(count, dtype=np.int64)
    points = 0
    for place in range(count):
        row = by_key[place]
        if place == 0 or codes[row] != codes[by_key[place - 1]] or times[row] != times[by_key[place - 1]]:
            points += 1
        point_of[row] = points - 1
    order = np.full(points, -1, dtype=np.int64)
    first = np.empty(points, dtype=np.int64)
    total_ints = np.zeros((ints.shape[1], points), dtype=np.int64)
    found = 0
    for place in range(count):
        row = by_time[place]
        at = order[point_of[row]]
        if at < 0:
            at = found
            order[point_of[row]] = at
            first[at] = row
            found += 1
        for column in range(ints.shape[1]):
            total_ints[column, at] += ints[row, column]
    return first, order, total_ints


@kernel(INT1, INT1, OFFSETS, INT1, numba.int64)
def next_rows(
    run_hashes: Int64Array,
    run_times: Int64Array,
    order: npt.NDArray[np.int32],
    hashes: Int64Array,
    bound: int,
) -> Int64Array:
    """For each hash the first row of a run with that hash and a time not below the bound, or -1.

    Args:
        run_hashes, run_times: int64[n]; order: int32[n], the rows sorted by (hash, time).
        hashes: int64[k], in any order.
    """
    result = np.full(len(hashes), -1, dtype=np.int64)
    for probe in range(len(hashes)):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            row = order[middle]
            if run_hashes[row] < hashes[probe] or (
                run_hashes[row] == hashes[probe] and run_times[row] < bound
            ):
                low = middle + 1
            else:
                high = middle
        if low < len(order) and run_hashes[order[low]] == hashes[probe]:
            result[probe] = order[low]
    return result


@kernel(INT1, INT1, OFFSETS, INT1, INT1)
def first_places(
    run_hashes: Int64Array,
    run_times: Int64Array,
    order: npt.NDArray[np.int32],
    hashes: Int64Array,
    times: Int64Array,
) -> Int64Array:
    """For each hash how many rows of a run come before that hash and a time.

    Args:
        run_hashes, run_times: int64[n]; order: int32[n], the rows sorted by (hash, time).
        hashes, times: int64[k], in any order.

    Returns:
        int64[k], places in `order`.
    """
    result = np.empty(len(hashes), dtype=np.int64)
    for probe in range(len(hashes)):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            row = order[middle]
            if run_hashes[row] < hashes[probe] or (
                run_hashes[row] == hashes[probe] and run_times[row] < times[probe]
            ):
                low = middle + 1
            else:
                high = middle
        result[probe] = low
    return result


@kernel(OFFSETS, INT2, numba.int64)
def sums_at_marks(order: npt.NDArray[np.int32], sums: Int64Array, stride: int) -> Int64Array:
    """What the rows add up to before every so many of them.

    Args:
        order: int32[n], the rows in the order in which they are added up.
        sums: int64[c, n].
        stride: how far marks are apart.

    Returns:
        int64[m, c]: for mark i the sums of the first `i * stride` rows.
    """
    columns = sums.shape[0]
    found = np.zeros((len(order) // stride + 1, columns), dtype=np.int64)
    for column in range(columns):
        total = 0
        for place in range(len(order)):
            if place % stride == 0:
                found[place // stride, column] = total
            total += sums[column, order[place]]
        if len(order) % stride == 0:
            found[len(order) // stride, column] = total
    return found
