"""Frames of time: running sums over the instants of each partition, and where frames start among them."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT1_OUT, INT2, INT2_OUT, kernel


@kernel(INT1, INT1, INT1, INT)
def number_instants(
    order: Int64Array, codes: Int64Array, times: Int64Array, count: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Number the different instants of each code, code after code.

    Rows are passed over in order of time, so that what is read or written at random is as small as the codes.

    Args:
        order: rows sorted by time.
        codes, times: int64[n]; every code 0..count-1 has a row.

    Returns:
        The number of each row's instant (int64[n]), the m instants (int64[m]), and where those of each code
        start (int64[count + 1]).
    """
    first = np.zeros(count + 1, dtype=np.int64)
    last = np.empty(count, dtype=np.int64)
    for row in order:
        code = codes[row]
        if first[code + 1] == 0 or last[code] != times[row]:
            first[code + 1] += 1
            last[code] = times[row]
    for code in range(count):
        first[code + 1] += first[code]
    numbers = np.empty(len(codes), dtype=np.int64)
    instants = np.empty(first[count], dtype=np.int64)
    number = first[:-1] - 1
    for row in order:
        code = codes[row]
        if number[code] < first[code] or instants[number[code]] != times[row]:
            number[code] += 1
            instants[number[code]] = times[row]
        numbers[row] = number[code]
    return numbers, instants, first


@kernel(INT1, INT1, INT1, INT1, INT2, INT2)
def running_sums(
    order: Int64Array,
    codes: Int64Array,
    numbers: Int64Array,
    first: Int64Array,
    ints: Int64Array,
    bases: Int64Array,
) -> Int64Array:
    """The sums of each code before each of its instants, and after the last one.

    Sums wrap around, so that differences of them are right wherever the differences themselves fit.

    Args:
        order: rows sorted by time.
        codes, numbers: int64[n], the code of each row, and the number of its instant.
        first: int64[k + 1], where the instants of each code start.
        ints: int64[n, c], what each row adds.
        bases: int64[k, c], the sums before the first instant.

    Returns:
        int64[c, m + k]: those before instant p of code i are at p + i.
    """
    count, width = len(first) - 1, ints.shape[1]
    result = np.empty((width, first[count] + count), dtype=np.int64)
    totals, ahead = bases.copy(), first[:-1].copy()
    for row in order:
        code, number = codes[row], numbers[row]
        if number == ahead[code]:
            for column in range(width):
                result[column, number + code] = totals[code, column]
            ahead[code] += 1
        for column in range(width):
            totals[code, column] += ints[row, column]
    for code in range(count):
        for column in range(width):
            result[column, first[code + 1] + code] = totals[code, column]
    return result


@kernel(INT1, INT1, INT2, INT1, INT2, INT2_OUT)
def subtract_columns(
    places: Int64Array,
    taken: Int64Array,
    taken_from: Int64Array,
    given: Int64Array,
    given_by: Int64Array,
    result: Int64Array,
) -> None:
    """Write the differences of columns of two matrices.

    Args:
        places: int64[n], the columns to write.
        taken: int64[n], which column of `taken_from`, int64[c, _], is subtracted for each of them,
        taken_from: where it is.
        given: int64[m], from which column of `given_by`, int64[c, _], by place.
        given_by: where that is.
        result: int64[c, m].
    """
    for row in range(len(result)):
        for number in range(len(places)):
            place = places[number]
            result[row, place] = given_by[row, given[place]] - taken_from[row, taken[number]]


@kernel(INT1, INT1, INT, INT1, INT1, INT1, INT1_OUT)
def frame_starts(
    first: Int64Array,
    times: Int64Array,
    size: int,
    lows: Int64Array,
    highs: Int64Array,
    steps: Int64Array,
    searched: Int64Array,
) -> tuple[Int64Array, Int64Array]:
    """For each instant t the first step after t - size, where there is one.

    Args:
        first: int64[k + 1], where the instants of each code start.
        times: int64[m], the instants, ascending within a code.
        size: how many instants a frame holds.
        lows, highs: int64[k], where the steps of each code start and end.
        steps: when they are, ascending within a code.
        searched: int64[k], from which instant of each code on to look; moved behind those that are found.

    Returns:
        Instants and their steps, by position.
    """
    instants = np.empty(len(times), dtype=np.int64)
    rows = np.empty(len(times), dtype=np.int64)
    found = 0
    for code in range(len(lows)):
        low, high, at = lows[code], highs[code], searched[code]
        if low >= high or at >= first[code + 1]:
            continue
        last = steps[high - 1]
        # The first instant's step by binary search; those of the others follow closely.
        end, before = high, times[at] - size
        while low < end:
            middle = (low + end) // 2
            if steps[middle] <= before:
                low = middle + 1
            else:
                end = middle
        while at < first[code + 1] and times[at] - size < last:
            while steps[low] <= times[at] - size:
                low += 1
            instants[found], rows[found] = at, low
            found += 1
            at += 1
        searched[code] = at
    return instants[:found].copy(), rows[:found].copy()
