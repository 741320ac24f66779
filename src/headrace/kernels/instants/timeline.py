"""Step functions over time, one per key: netting of endpoint deltas and running sums.

A key's input is a vector of sums that changes at instants ("points"). Sums are int64 columns (counts, limbs
of exact numbers), so that what enters and leaves cancels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import BYTES, INT, INT1, INT2, INT2_OUT, OFFSETS, kernel


@kernel(INT1, INT1, INT1, INT2)
def net_points(
    order: Int64Array, codes: Int64Array, times: Int64Array, ints: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Add up the deltas of one key at one instant.

    Args:
        order: rows sorted by (code, time).
        codes, times: int64[n] per row.
        ints: int64[n, c], deltas per row.

    Returns:
        For each of the m points, in order: the first row that belongs to it (int64[m]), and the summed
        deltas (int64[m, c]).
    """
    rows = len(order)
    first = np.empty(rows, dtype=np.int64)
    point_ints = np.zeros((rows, ints.shape[1]), dtype=np.int64)
    points = 0
    for place in range(rows):
        row = order[place]
        if place == 0 or codes[row] != codes[order[place - 1]] or times[row] != times[order[place - 1]]:
            first[points] = row
            points += 1
        for column in range(ints.shape[1]):
            point_ints[points - 1, column] += ints[row, column]
    return first[:points].copy(), point_ints[:points].copy()


@kernel(INT1, INT2, INT)
def add_by_code(codes: Int64Array, ints: Int64Array, count: int) -> Int64Array:
    """The sums of the rows of each code 0..count-1.

    Args:
        codes: int64[n].
        ints: int64[n, c].

    Returns:
        int64[count, c].
    """
    total_ints = np.zeros((count, ints.shape[1]), dtype=np.int64)
    for row in range(len(codes)):
        code = codes[row]
        for column in range(ints.shape[1]):
            total_ints[code, column] += ints[row, column]
    return total_ints


@kernel(INT1, INT1, INT1, INT)
def touched_codes(
    rows: Int64Array, codes: Int64Array, others: Int64Array, count: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The codes that endpoints have, numbered from 0 on in ascending order.

    Args:
        rows: int64[n], the row that an endpoint belongs to, or -1 - row.
        codes: int64[r], 0..count-1, per row.
        others: codes that are numbered in any case.

    Returns:
        The number of each endpoint's code (int64[n]); the k codes that have one (int64[k]); and the number of
        each code, or -1 (int64[count]).
    """
    numbers = np.full(count, -1, dtype=np.int64)
    for place in range(len(rows)):
        row = rows[place]
        numbers[codes[row if row >= 0 else -1 - row]] = 0
    for code in others:
        numbers[code] = 0
    touched = np.empty(count, dtype=np.int64)
    found = 0
    for code in range(count):
        if numbers[code] == 0:
            numbers[code] = found
            touched[found] = code
            found += 1
    result = np.empty(len(rows), dtype=np.int64)
    for place in range(len(rows)):
        row = rows[place]
        result[place] = numbers[codes[row if row >= 0 else -1 - row]]
    return result, touched[:found].copy(), numbers


@kernel(INT1, INT1, INT1, INT1, INT2, INT2, INT1, INT2_OUT)
def running_points(
    order: Int64Array,
    codes: Int64Array,
    rows: Int64Array,
    times: Int64Array,
    ints: Int64Array,
    base_ints: Int64Array,
    columns: Int64Array,
    total_ints: Int64Array,
) -> tuple[int, Int64Array, Int64Array, Int64Array, Int64Array]:
    """The points at which the sums of keys change, and the sums from each on.

    One pass over the endpoints in order of time, which touches nothing but the keys' running sums at random.

    Args:
        order: endpoints sorted by time.
        codes, times: int64[n] per endpoint.
        rows: int64[n], the row whose sums an endpoint adds, or -1 - row where it takes them away.
        ints: int64[r, c], the sums per row.
        base_ints: int64[k, c], the sums before the first point, per code.
        columns: the columns of these that are not 0 in all rows.
        total_ints: int64[c, n + k], all 0; becomes the sums from each point on, then before the first point
            of each code, m + k in all.

    Returns:
        The number m of points; for each of them, in order of time, its code, its time, and the point before
        of the same code or -1 (int64[n], of which m count); and the last point of each code, or -1
        (int64[k]).
    """
    count = len(order)
    point_codes = np.empty(count, dtype=np.int64)
    point_times = np.empty(count, dtype=np.int64)
    previous = np.empty(count, dtype=np.int64)
    sums = base_ints.copy()
    last = np.full(len(base_ints), -1, dtype=np.int64)
    points = 0
    for place in range(count):
        endpoint = order[place]
        code = codes[endpoint]
        point = last[code]
        if point < 0 or point_times[point] != times[endpoint]:
            previous[points] = point
            point = points
            points += 1
            last[code] = point
            point_codes[point] = code
            point_times[point] = times[endpoint]
        row = rows[endpoint]
        sign = 1
        if row < 0:
            row = -1 - row
            sign = -1
        for column in columns:
            sums[code, column] += sign * ints[row, column]
            total_ints[column, point] = sums[code, column]
    for code in range(len(base_ints)):
        total_ints[:, points + code] = base_ints[code]
    return points, point_codes, point_times, previous, last


@kernel(INT1, INT1, BYTES, BYTES, BYTES, INT1, INT1)
def segments(
    codes: Int64Array,
    times: Int64Array,
    present: npt.NDArray[np.uint8],
    base_present: npt.NDArray[np.uint8],
    changed: npt.NDArray[np.uint8],
    covered: Int64Array,
    until: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The elements that turn what was emitted into what holds now.

    Args:
        codes, times: int64[m], the points in order of time.
        present: uint8[m], whether there is something to emit from a point on; base_present: uint8[k].
        changed: uint8[m], whether what there is differs from what was there before the point.
        covered: int64[k], up to where the value before the first point was emitted (BEGINNING: it was not).
        until: int64[k], where the segment of the last point ends.

    Returns:
        For each element its row (a point, or m + k for the value before the first point of key k), its start,
        its end and its sign; int64[n] each.
    """
    count = len(codes)
    beginning = np.iinfo(np.int64).min
    ends = np.empty(count, dtype=np.int64)
    first = until.copy()
    last = np.full(len(until), -1, dtype=np.int64)
    for point in range(count):
        if changed[point]:
            code = codes[point]
            if last[code] < 0:
                first[code] = times[point]
            else:
                ends[last[code]] = times[point]
            last[code] = point
    rows = np.empty(count + len(until), dtype=np.int64)
    starts = np.empty(count + len(until), dtype=np.int64)
    stops = np.empty(count + len(until), dtype=np.int64)
    signs = np.empty(count + len(until), dtype=np.int64)
    found = 0
    for code in range(len(until)):
        if last[code] >= 0:
            ends[last[code]] = until[code]
        if base_present[code] and covered[code] != beginning and covered[code] != first[code]:
            rows[found] = count + code
            starts[found] = min(covered[code], first[code])
            stops[found] = max(covered[code], first[code])
            signs[found] = -1 if first[code] < covered[code] else 1
            found += 1
    for point in range(count):
        if changed[point] and present[point] and times[point] < ends[point]:
            rows[found] = point
            starts[found] = times[point]
            stops[found] = ends[point]
            signs[found] = 1
            found += 1
    return rows[:found].copy(), starts[:found].copy(), stops[:found].copy(), signs[:found].copy()


@kernel(INT1, OFFSETS, INT)
def count_before(times: Int64Array, order: npt.NDArray[np.int32], bound: int) -> int:
    """How many times are below the bound, by binary search; `order` sorts `times`."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if times[order[middle]] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(INT1, INT1, INT)
def smallest_per_code(codes: Int64Array, times: Int64Array, count: int) -> Int64Array:
    """The smallest time of each code 0..count-1; the largest int64 (INFINITY) for one without rows."""
    result = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    for row in range(len(codes)):
        if times[row] < result[codes[row]]:
            result[codes[row]] = times[row]
    return result
