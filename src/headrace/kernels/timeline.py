"""Step functions over time, one per key: netting of endpoint deltas and running sums.

A key's input is a vector of sums that changes at instants ("points"). Sums are int64 columns (counts, limbs
of integers) and pairs of float64 columns (high and low part of a double-double, Dekker 1971), so that what
enters and leaves cancels.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import FLOAT2, INT1, INT2, kernel

Float64Array = npt.NDArray[np.float64]


@numba.njit(cache=True, inline="always")
def _add_pair(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    total = high + other_high
    virtual = total - high
    error = (high - (total - virtual)) + (other_high - virtual) + low + other_low
    result = total + error
    return result, error - (result - total)


@kernel(INT1, INT1, INT1, INT2, FLOAT2)
def net_points(
    order: Int64Array, codes: Int64Array, times: Int64Array, ints: Int64Array, floats: Float64Array
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Add up the deltas of one key at one instant.

    Args:
        order: rows sorted by (code, time).
        codes, times: int64[n] per row.
        ints: int64[n, c], floats: float64[n, 2 * f] (high, low pairs), deltas per row.

    Returns:
        For each of the m points, in order: the first row that belongs to it (int64[m]), and the summed
        deltas (int64[m, c], float64[m, 2 * f]).
    """
    rows = len(order)
    first = np.empty(rows, dtype=np.int64)
    point_ints = np.zeros((rows, ints.shape[1]), dtype=np.int64)
    point_floats = np.zeros((rows, floats.shape[1]), dtype=np.float64)
    points = 0
    for place in range(rows):
        row = order[place]
        if place == 0 or codes[row] != codes[order[place - 1]] or times[row] != times[order[place - 1]]:
            first[points] = row
            points += 1
        for column in range(ints.shape[1]):
            point_ints[points - 1, column] += ints[row, column]
        for column in range(0, floats.shape[1], 2):
            high, low = _add_pair(
                point_floats[points - 1, column],
                point_floats[points - 1, column + 1],
                floats[row, column],
                floats[row, column + 1],
            )
            point_floats[points - 1, column] = high
            point_floats[points - 1, column + 1] = low
    return first[:points].copy(), point_ints[:points].copy(), point_floats[:points].copy()


@kernel(INT1, INT2, FLOAT2, INT2, FLOAT2)
def running_sums(
    codes: Int64Array,
    ints: Int64Array,
    floats: Float64Array,
    base_ints: Int64Array,
    base_floats: Float64Array,
) -> tuple[Int64Array, Float64Array]:
    """The sums after each point: the key's base plus all its points so far.

    Args:
        codes: int64[m], the key of each point; points of a key are adjacent and in order of time.
        ints, floats: the points' deltas, int64[m, c] and float64[m, 2 * f].
        base_ints, base_floats: the sums before the first point, per key.

    Returns:
        int64[m, c] and float64[m, 2 * f]. Where no row is left (column 0 is the row count), floats are 0.
    """
    total_ints = np.empty_like(ints)
    total_floats = np.empty_like(floats)
    for point in range(len(codes)):
        fresh = point == 0 or codes[point] != codes[point - 1]
        for column in range(ints.shape[1]):
            before = base_ints[codes[point], column] if fresh else total_ints[point - 1, column]
            total_ints[point, column] = before + ints[point, column]
        for column in range(0, floats.shape[1], 2):
            if fresh:
                high = base_floats[codes[point], column]
                low = base_floats[codes[point], column + 1]
            else:
                high = total_floats[point - 1, column]
                low = total_floats[point - 1, column + 1]
            if total_ints[point, 0] == 0:
                high, low = 0.0, 0.0
            else:
                high, low = _add_pair(high, low, floats[point, column], floats[point, column + 1])
            total_floats[point, column] = high
            total_floats[point, column + 1] = low
    return total_ints, total_floats


@kernel(INT1, INT1, numba.int64)
def count_before(times: Int64Array, order: Int64Array, bound: int) -> int:
    """How many times are below the bound, by binary search; `order` sorts `times`."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if times[order[middle]] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(INT1, INT1, numba.int64)
def smallest_per_code(codes: Int64Array, times: Int64Array, count: int) -> Int64Array:
    """The smallest time of each code 0..count-1; the largest int64 (INFINITY) for one without rows."""
    result = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    for row in range(len(codes)):
        if times[row] < result[codes[row]]:
            result[codes[row]] = times[row]
    return result


@kernel(INT1, INT1, INT1, numba.int64)
def first_rows_from(
    run_hashes: Int64Array, run_times: Int64Array, hashes: Int64Array, bound: int
) -> Int64Array:
    """For each hash the first row of a run with that hash and a time not below the bound, or -1.

    Args:
        run_hashes, run_times: int64[n], sorted by (hash, time).
        hashes: int64[k], in any order.
    """
    result = np.full(len(hashes), -1, dtype=np.int64)
    for probe in range(len(hashes)):
        low, high = 0, len(run_hashes)
        while low < high:
            middle = (low + high) // 2
            if run_hashes[middle] < hashes[probe] or (
                run_hashes[middle] == hashes[probe] and run_times[middle] < bound
            ):
                low = middle + 1
            else:
                high = middle
        if low < len(run_hashes) and run_hashes[low] == hashes[probe]:
            result[probe] = low
    return result
