"""The first rows of groups whose rows come and go."""

from __future__ import annotations

import numba
import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.fenwick import add_count, count_below, find_place, first_step
from headrace.kernels.jit import INT1, kernel

_BEGINNING = np.iinfo(np.int64).min


@numba.njit(cache=True)
def _write(out, used, numbered, item, since, until):  # type: ignore[no-untyped-def]
    """Emit an item from `since` to `until`, or take back what was emitted from `until` to `since`."""
    if since == until:
        return used
    sign = 1 if since < until else -1
    out[used, 0] = item[1] if numbered else item[0]
    out[used, 1] = item[0] if numbered else 0
    out[used, 2] = min(since, until)
    out[used, 3] = max(since, until)
    out[used, 4] = sign if numbered else sign * item[1]
    return used + 1


@numba.njit(cache=True)
def _fill(items, tree, live, tree_at, span, numbered):  # type: ignore[no-untyped-def]
    """The items at the ranks `span`: (value, copies), or (place, value) where places are asked for."""
    start, size, step = tree_at
    rank, end = span
    found = 0
    while rank < end:
        place = find_place(tree, start, size, step, rank)
        copies = min(live[start + place] - (rank - count_below(tree, start, place)), end - rank)
        for copy in range(copies if numbered else 1):
            items[found, 0] = rank + copy + 1 if numbered else start + place
            items[found, 1] = start + place if numbered else copies
            found += 1
        rank += copies
    return found


@numba.njit(cache=True)
def _change(out, used, shown, fresh, now, numbered, coalesce):  # type: ignore[no-untyped-def]
    """Close the items that are shown no more, and note since when the others are; both sorted by item."""
    old, new = 0, 0
    while old < len(shown) or new < len(fresh):
        if new == len(fresh) or (old < len(shown) and shown[old, 0] < fresh[new, 0]):
            used = _write(out, used, numbered, shown[old], shown[old, 2], now)
            old += 1
        elif old == len(shown) or fresh[new, 0] < shown[old, 0]:
            fresh[new, 2] = now
            new += 1
        elif coalesce and shown[old, 1] == fresh[new, 1]:
            fresh[new, 2] = shown[old, 2]
            old, new = old + 1, new + 1
        else:
            used = _write(out, used, numbered, shown[old], shown[old, 2], now)
            fresh[new, 2] = now
            old, new = old + 1, new + 1
    return used


@kernel(
    INT1, INT1, INT1, INT1, INT1, INT1, INT1, INT1, INT1,
    numba.int64, numba.int64, numba.boolean, numba.boolean,
)  # fmt: skip
def first_rows(
    codes: Int64Array,
    times: Int64Array,
    numbers: Int64Array,
    counts: Int64Array,
    starts: Int64Array,
    points: Int64Array,
    instants: Int64Array,
    covered: Int64Array,
    until: Int64Array,
    offset: int,
    limit: int,
    numbered: bool,
    coalesce: bool,
) -> Int64Array:
    """The elements that turn the first rows of groups, as they were emitted, into those that hold now.

    Args:
        codes, times, numbers, counts: int64[n], sorted by (code, time): at `times` the count of the row
            `numbers` of the group `codes` changes.
        starts: int64[k + 1]: the rows of group c have the numbers from `starts[c]` up to `starts[c + 1]`, in
            the order in which they stand.
        points: int64[k + 1], where the points of each group start; instants: int64[m], when they are.
        covered: int64[k], up to where what was shown before the first point was emitted.
        until: int64[k], up to where what is shown after the last point holds.
        offset, limit: how many rows of a group stand before those that are shown, and how many are shown.
        numbered: whether a row is shown with its place, from 1.
        coalesce: whether a row that stays is not emitted again; not for streams that promise chronons.

    Returns:
        Per element the number of its row, its place (0 unless `numbered`), ts, te and w; int64[e, 5].
    """
    out = np.empty((max(16, 2 * len(instants)), 5), dtype=np.int64)
    shown, fresh = np.empty((16, 3), dtype=np.int64), np.empty((16, 3), dtype=np.int64)
    tree, live = np.zeros(starts[-1], dtype=np.int64), np.zeros(starts[-1], dtype=np.int64)
    used, at = 0, 0
    for code in range(len(until)):
        start, size = starts[code], starts[code + 1] - starts[code]
        step = first_step(size)
        while at < len(codes) and codes[at] < code:
            at += 1
        held, total = 0, np.int64(0)
        # The first round finds what was shown before the first point.
        for point in range(points[code] - 1, points[code + 1]):
            before = point < points[code]
            bound = instants[point + 1] if before else instants[point] + 1
            lowest = starts[code + 1]
            while at < len(codes) and codes[at] == code and times[at] < bound:
                add_count(tree, start, size, numbers[at] - start, counts[at])
                live[numbers[at]] += counts[at]
                total += counts[at]
                lowest = numbers[at] if numbers[at] < lowest else lowest
                at += 1
            full = coalesce and not numbered and not before and held > 0 and shown[:held, 1].sum() == limit
            if full and lowest > shown[held - 1, 0]:
                continue
            end = total if total < offset + limit else np.int64(offset + limit)
            if end - offset > len(fresh):
                fresh = np.empty((2 * (end - offset), 3), dtype=np.int64)
            if used + held + len(fresh) > len(out):
                grown = np.empty((2 * (len(out) + held + len(fresh)), 5), dtype=np.int64)
                grown[:used] = out[:used]
                out = grown
            found = _fill(fresh, tree, live, (start, size, step), (np.int64(offset), end), numbered)
            if before:
                fresh[:found, 2] = covered[code]
                found = found if covered[code] != _BEGINNING else 0
            else:
                used = _change(out, used, shown[:held], fresh[:found], instants[point], numbered, coalesce)
            shown, fresh, held = fresh, shown, found
        for item in range(held):
            used = _write(out, used, numbered, shown[item], shown[item, 2], until[code])
    return out[:used].copy()
