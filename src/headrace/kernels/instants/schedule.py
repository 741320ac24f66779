"""Changes by time and by key: netting into runs of a schedule, and the next change of a key."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT2, OFFSETS, inner, kernel


@kernel(INT1, INT1, INT1, INT2, INT)
def net_schedule(
    by_time: Int64Array, codes: Int64Array, times: Int64Array, ints: Int64Array, count: int
) -> tuple[int, Int64Array, Int64Array, Int64Array]:
    """Add up the changes of one key at one time, and put them in order of time.

    One pass in order of time, which touches nothing but the last change of each key at random.

    Args:
        by_time: rows sorted by time.
        codes, times: int64[n] per row; codes are 0..count-1.
        ints: int64[n, c].

    Returns:
        The number m of netted changes; for each of them, in order of time, the first row that belongs to it,
        and its code (int64[n] each, of which m count); and the sums, int64[c, n], of which m count.
    """
    rows = len(by_time)
    last = np.full(count, -1, dtype=np.int64)
    first = np.empty(rows, dtype=np.int64)
    point_codes = np.empty(rows, dtype=np.int64)
    total_ints = np.zeros((ints.shape[1], rows), dtype=np.int64)
    found, time, since = 0, 0, 0
    for place in range(rows):
        row = by_time[place]
        if place == 0 or times[row] != time:
            time, since = times[row], found
        code = codes[row]
        at = last[code]
        if at < since:
            at = found
            last[code] = at
            first[at] = row
            point_codes[at] = code
            found += 1
        for column in range(ints.shape[1]):
            total_ints[column, at] += ints[row, column]
    return found, first, point_codes, total_ints


@kernel(INT1, INT1, INT, INT2, INT)
def index_schedule(
    codes: Int64Array, rank: Int64Array, distinct: int, sums: Int64Array, stride: int
) -> tuple[npt.NDArray[np.int32], Int64Array]:
    """The index of changes by key and time, and what they add up to before every so many of them.

    Two passes in order of time, which touch nothing but a few numbers of each key at random.

    Args:
        codes: int64[n], the key of each change, in order of time.
        rank: int64[k], the place of each key, 0..distinct-1, in the order of keys.
        sums: int64[c, n].
        stride: how far marks are apart.

    Returns:
        int32[n], the changes sorted by (rank, time), stably; and int64[m, c], for mark i the sums of the
        first `i * stride` of them.
    """
    count, columns = len(codes), sums.shape[0]
    starts = np.zeros(distinct + 1, dtype=np.int64)
    running = np.zeros((distinct + 1, columns), dtype=np.int64)
    for change in range(count):
        place = rank[codes[change]] + 1
        starts[place] += 1
        for column in range(columns):
            running[place, column] += sums[column, change]
    for place in range(distinct):
        starts[place + 1] += starts[place]
        running[place + 1] += running[place]
    order = np.empty(count, dtype=np.int32)
    marks = np.zeros((count // stride + 1, columns), dtype=np.int64)
    if count % stride == 0:
        marks[count // stride] = running[distinct]
    for change in range(count):
        key = rank[codes[change]]
        place = starts[key]
        starts[key] += 1
        order[place] = change
        if place % stride == 0:
            marks[place // stride] = running[key]
        for column in range(columns):
            running[key, column] += sums[column, change]
    return order, marks


BLOCK: Final = 64
"""Of so many rows by (hash, time) the first one's hash is looked at first: so few stay in a cache."""


@inner
def _block(tops: Int64Array, count: int, wanted: int) -> tuple[int, int]:
    """Between which places of an order the rows with a hash begin and end."""
    low, high = 0, len(tops)
    while low < high:
        middle = (low + high) // 2
        if tops[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    begin = max(low - 1, 0) * BLOCK
    high = len(tops)
    while low < high:
        middle = (low + high) // 2
        if tops[middle] <= wanted:
            low = middle + 1
        else:
            high = middle
    return begin, min(low * BLOCK, count)


@inner
def _place(
    run_hashes: Int64Array,
    run_times: Int64Array,
    order: npt.NDArray[np.int32],
    block: tuple[int, int],
    wanted: int,
    time: int,
) -> int:
    """The place in an order before which the rows of a block come before a hash and a time."""
    low, high = block
    while low < high:
        middle = (low + high) // 2
        row = order[middle]
        if run_hashes[row] < wanted or (run_hashes[row] == wanted and run_times[row] < time):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(INT1, INT1, OFFSETS, INT1, INT1, INT)
def next_rows(
    run_hashes: Int64Array,
    run_times: Int64Array,
    order: npt.NDArray[np.int32],
    tops: Int64Array,
    hashes: Int64Array,
    bound: int,
) -> Int64Array:
    """For each hash the first row of a run with that hash and a time not below the bound, or -1.

    Args:
        run_hashes, run_times: int64[n]; order: int32[n], the rows sorted by (hash, time).
        tops: the hashes of every `BLOCK`th row in that order.
        hashes: int64[k], in any order.
    """
    result = np.full(len(hashes), -1, dtype=np.int64)
    for probe in range(len(hashes)):
        block = _block(tops, len(order), hashes[probe])
        place = _place(run_hashes, run_times, order, block, hashes[probe], bound)
        if place < len(order) and run_hashes[order[place]] == hashes[probe]:
            result[probe] = order[place]
    return result


@kernel(INT1, INT1, OFFSETS, INT1, INT1, INT1, INT1)
def key_ranges(
    run_hashes: Int64Array,
    run_times: Int64Array,
    order: npt.NDArray[np.int32],
    tops: Int64Array,
    hashes: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
) -> tuple[Int64Array, Int64Array]:
    """For each hash which rows of a run have that hash and a time from an instant to before another one.

    Args:
        run_hashes, run_times: int64[n]; order: int32[n], the rows sorted by (hash, time).
        tops: the hashes of every `BLOCK`th row in that order.
        hashes, starts, ends: int64[k], in any order; no start is behind its end.

    Returns:
        int64[k] each, the first place in `order`, and the first one behind them.
    """
    lows = np.empty(len(hashes), dtype=np.int64)
    highs = np.empty(len(hashes), dtype=np.int64)
    for probe in range(len(hashes)):
        begin, end = _block(tops, len(order), hashes[probe])
        lows[probe] = _place(run_hashes, run_times, order, (begin, end), hashes[probe], starts[probe])
        highs[probe] = _place(run_hashes, run_times, order, (lows[probe], end), hashes[probe], ends[probe])
    return lows, highs


@kernel(OFFSETS, INT2, INT)
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
