"""Joins of sorted runs: by hash, and by hash and overlap of intervals."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, inlined, inner, kernel

_FOR_EVER = 2**62
"""From this length on, an interval counts as reaching back to the beginning; instants lie within it."""
_FANOUT = 32
"""So many rows make a block, and so many blocks a larger one."""


@inlined
def _grow(array, used):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(array), dtype=np.int64)
    larger[:used] = array[:used]
    return larger


@kernel(INT1, INT1, INT1, INT1, INT1)
def sorted_ranges(
    run_hashes: Int64Array, run_times: Int64Array, hashes: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """For each hash which rows of a run have that hash and a time from an instant to before another one.

    Args:
        run_hashes, run_times: int64[n], sorted by both.
        hashes, starts, ends: int64[k], in any order; no start is behind its end.

    Returns:
        int64[k] each, the first row, and the first one behind them.
    """
    lows = np.empty(len(hashes), dtype=np.int64)
    highs = np.empty(len(hashes), dtype=np.int64)
    for probe in range(len(hashes)):
        low, wanted = 0, hashes[probe]
        for side in range(2):
            time = ends[probe] if side else starts[probe]
            high = len(run_hashes)
            while low < high:
                middle = (low + high) // 2
                if run_hashes[middle] < wanted or (run_hashes[middle] == wanted and run_times[middle] < time):
                    low = middle + 1
                else:
                    high = middle
            if side:
                highs[probe] = low
            else:
                lows[probe] = low
    return lows, highs


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


@inner
def _search(hashes: Int64Array, times: Int64Array, key: int, time: int, low: int) -> int:
    """The first row from `low` on that is not below (key, time); it is looked for in steps that double."""
    step, high = 1, low
    while high < len(hashes) and (hashes[high] < key or (hashes[high] == key and times[high] < time)):
        low, high, step = high + 1, high + step, 2 * step
    high = min(high, len(hashes))
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < key or (hashes[middle] == key and times[middle] < time):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _levels(rows: int) -> tuple[Int64Array, Int64Array]:
    """Where the blocks of each level begin among all blocks of so many rows, and when each has ended.

    A block of which that is not known has not ended.
    """
    starts = np.zeros(16, dtype=np.int64)
    blocks, level = rows // _FANOUT, 0
    while blocks >= _FANOUT:
        starts[level + 1] = starts[level] + blocks
        blocks, level = blocks // _FANOUT, level + 1
    return starts[: level + 1], np.full(starts[level] + blocks, np.iinfo(np.int64).max)


@inner
def _cover(latest: Int64Array, levels: Int64Array, te: Int64Array, first: int, start: int, end: int) -> int:
    """Note when the last row ends in each block within [start, end), and in each block of such blocks.

    `first` is where the first block begins that was noted for this key. Where the noted blocks end, is
    returned.
    """
    block = (start + _FANOUT - 1) // _FANOUT
    lowest = (first + _FANOUT - 1) // _FANOUT
    while (block + 1) * _FANOUT <= end:
        most = te[block * _FANOUT]
        for row in range(block * _FANOUT + 1, (block + 1) * _FANOUT):
            most = max(most, te[row])
        latest[block] = most
        child, least, level = block, lowest, 1
        while level < len(levels) and (child + 1) % _FANOUT == 0 and child + 1 - _FANOUT >= least:
            for other in range(levels[level - 1] + child + 1 - _FANOUT, levels[level - 1] + child):
                most = max(most, latest[other])
            child //= _FANOUT
            least = (least + _FANOUT - 1) // _FANOUT
            latest[levels[level] + child] = most
            level += 1
        block += 1
    return max(start, block * _FANOUT)


@inner
def _beyond(latest: Int64Array, levels: Int64Array, place: int, end: int, instant: int) -> int:
    """The place after the largest block that begins here, ends by `end`, and has no row after the instant."""
    size, level = _FANOUT, 0
    while level + 1 < len(levels) and place % (size * _FANOUT) == 0 and place + size * _FANOUT <= end:
        size, level = size * _FANOUT, level + 1
    while level >= 0:
        if place + size <= end and latest[levels[level] + place // size] <= instant:
            return place + size
        size, level = size // _FANOUT, level - 1
    return place


@inner
def _probe(
    hashes: Int64Array,
    ts: Int64Array,
    te: Int64Array,
    run_hashes: Int64Array,
    run_ts: Int64Array,
    run_te: Int64Array,
    reach: int,
) -> tuple[Int64Array, Int64Array]:
    """The pairs of probes and rows of a run, in order of the probes, then of the rows.

    Before a row that a probe meets there may be many that have ended, because some rows are valid for long.
    Blocks of rows that have all ended are passed over at once, and so are blocks of such blocks.
    """
    left = np.empty(len(hashes) + 16, dtype=np.int64)
    right = np.empty(len(hashes) + 16, dtype=np.int64)
    levels, latest = _levels(len(run_hashes))
    found = start = first = covered = 0
    for row in range(len(hashes)):
        earliest = ts[row] - reach if reach < _FOR_EVER else np.iinfo(np.int64).min
        start = _search(run_hashes, run_ts, hashes[row], earliest, start)
        end = _search(run_hashes, run_ts, hashes[row], te[row], start)
        if row == 0 or hashes[row - 1] != hashes[row]:
            first = start
        covered = max(covered, start)
        if end - start > _FANOUT and end > covered:
            covered = _cover(latest, levels, run_te, first, covered, end)
        place = start
        while place < end:
            if run_te[place] > ts[row]:
                if found == len(left):
                    left, right = _grow(left, found), _grow(right, found)
                left[found], right[found] = row, place
                found += 1
            elif place % _FANOUT == 0 and place < covered:
                place = max(place, _beyond(latest, levels, place, end, ts[row]) - 1)
            place += 1
    return left[:found].copy(), right[:found].copy()


@kernel(INT1, INT1, INT1, INT1, INT1, INT1, INT, INT)
def join_intervals(
    left_hashes: Int64Array,
    left_ts: Int64Array,
    left_te: Int64Array,
    right_hashes: Int64Array,
    right_ts: Int64Array,
    right_te: Int64Array,
    left_reach: int,
    right_reach: int,
) -> tuple[Int64Array, Int64Array]:
    """All pairs of rows with the same hash whose intervals overlap.

    Both inputs are sorted by (hash, ts). A reach is the length of the longest interval of its side: a row
    that starts so long before another one cannot meet it. The shorter side probes the longer one, in time
    that grows with the shorter one, the pairs, and the logarithm of the longer one.

    Returns:
        Positions on the left and on the right, in order of the shorter side, then of the other one.
    """
    if len(left_hashes) <= len(right_hashes):
        return _probe(left_hashes, left_ts, left_te, right_hashes, right_ts, right_te, right_reach)
    right, left = _probe(right_hashes, right_ts, right_te, left_hashes, left_ts, left_te, left_reach)
    return left, right
