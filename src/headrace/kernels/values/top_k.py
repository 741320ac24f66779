"""The first rows of groups whose rows come and go."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, TRUTH, inlined, inner, int_arrays, kernel
from headrace.kernels.values.fenwick import add_count, count_below, find_place, first_step
from headrace.kernels.values.inputs import CountChanges, GroupPoints

_BEGINNING = np.iinfo(np.int64).min


ROW_NUMBER, RANK, DENSE_RANK = 0, 1, 2
"""What a row's place counts: the rows before it, those that are sorted before it, or their distinct keys."""

_KEY, _ROW, _COPIES, _PLACE, _SINCE = range(5)
"""The columns of what is shown: what identifies it, the row, how often, its place, and since when."""


@inner
def _write(out, used, item, since, until):  # type: ignore[no-untyped-def]
    """Emit an item from `since` to `until`, or take back what was emitted from `until` to `since`."""
    if since == until:
        return used
    out[used, 0] = item[_ROW]
    out[used, 1] = item[_PLACE]
    out[used, 2] = min(since, until)
    out[used, 3] = max(since, until)
    out[used, 4] = item[_COPIES] if since < until else -item[_COPIES]
    return used + 1


@inner
def _fill_by_number(items, counts, tree_at, span, numbered):  # type: ignore[no-untyped-def]
    """The rows from one position up to another, with their places if they are asked for."""
    tree, live = counts[:2]
    start, size, step = tree_at
    position, end = span
    place = find_place(tree, start, size, step, position)
    skipped = position - count_below(tree, start, place)
    found = 0
    while True:
        row = start + place
        copies = min(live[row] - skipped, end - position)
        for copy in range(copies if numbered else 1):
            items[found, _KEY] = position + copy if numbered else row
            items[found, _ROW] = row
            items[found, _COPIES] = 1 if numbered else copies
            items[found, _PLACE] = position + copy + 1 if numbered else 0
            found += 1
        position += copies
        if position >= end:
            return found
        place, skipped = _next_place(tree, live, tree_at, place, position), 0


@inner
def _next_place(tree, live, tree_at, place, position):  # type: ignore[no-untyped-def]
    """The place, after another, of the row at a position; mostly it is near."""
    start, size, step = tree_at
    for near in range(place + 1, min(place + 8, size)):
        if live[start + near] > 0:
            return near
    return find_place(tree, start, size, step, position)


@inner
def _fill_by_rank(items, counts, peers, tree_at, span, total, numbered, dense):  # type: ignore[no-untyped-def]
    """The rows with the ranks from one up to another, and the rank, from 0, of whatever comes next."""
    tree, live, distinct, crowd = counts
    start, size, step = tree_at
    rank, end = span
    peer = start + find_place(distinct, start, size, step, rank) if dense else np.int64(0)
    if not dense:
        peer = peers[start + find_place(tree, start, size, step, rank)]
    position = count_below(tree, start, peer - start)
    if not dense:
        # If some of several equal rows are before the first rank, all have a smaller one.
        position += crowd[peer] if position < rank else 0
        rank = position
    found, peer = 0, np.int64(-1)
    while position < total:
        row = start + find_place(tree, start, size, step, position)
        if peers[row] != peer:
            rank = rank if peer < 0 else rank + 1 if dense else position
            if rank >= end:
                return found, rank
            peer = peers[row]
        items[found, _KEY] = row
        items[found, _ROW] = row
        items[found, _COPIES] = live[row]
        items[found, _PLACE] = rank + 1 if numbered else 0
        found += 1
        position += live[row]
    return found, rank + 1 if dense else position


@inner
def _fill(items, counts, peers, tree_at, totals, wanted, numbered, kind):  # type: ignore[no-untyped-def]
    """Who is shown; a copy of `items` if there was no room; and whether all wanted places are taken."""
    offset, last = wanted
    end = min(totals[1] if kind == DENSE_RANK else totals[0], last)
    if end <= offset:
        return items, 0, False
    most = totals[0] if kind else end - offset
    if most > len(items):
        items = np.empty((2 * most, 5), dtype=np.int64)
    if kind:
        span = offset, end
        found, following = _fill_by_rank(
            items, counts, peers, tree_at, span, totals[0], numbered, kind == DENSE_RANK
        )
        return items, found, found > 0 and following >= last
    found = _fill_by_number(items, counts, tree_at, (offset, end), numbered)
    return items, found, end == last


@inner
def _with_room(out, rows):  # type: ignore[no-untyped-def]
    """The array itself, or a larger copy of it, with room for so many rows."""
    if rows <= len(out):
        return out
    grown = np.empty((2 * rows, out.shape[1]), dtype=np.int64)
    grown[: len(out)] = out
    return grown


@inlined
def _is_same(item, other):  # type: ignore[no-untyped-def]
    """Whether items of one key are equal but for since when they are shown."""
    return item[_ROW] == other[_ROW] and item[_COPIES] == other[_COPIES] and item[_PLACE] == other[_PLACE]


@inner
def _change(out, used, shown, fresh, now, coalesce):  # type: ignore[no-untyped-def]
    """Close the items that are shown no more, and note since when the others are; both sorted by key."""
    old, new = 0, 0
    while old < len(shown) or new < len(fresh):
        if new == len(fresh) or (old < len(shown) and shown[old, _KEY] < fresh[new, _KEY]):
            used = _write(out, used, shown[old], shown[old, _SINCE], now)
            old += 1
            continue
        fresh[new, _SINCE] = now
        if old < len(shown) and fresh[new, _KEY] == shown[old, _KEY]:
            if coalesce and _is_same(fresh[new], shown[old]):
                fresh[new, _SINCE] = shown[old, _SINCE]
            else:
                used = _write(out, used, shown[old], shown[old, _SINCE], now)
            old += 1
        new += 1
    return used


@inner
def _count(counts, peers, tree_at, number, change, totals, kind):  # type: ignore[no-untyped-def]
    """Let the count of a row change."""
    tree, live, distinct, crowd = counts
    start, size, _ = tree_at
    add_count(tree, start, size, number - start, change)
    live[number] += change
    totals[0] += change
    if kind == ROW_NUMBER:
        return
    peer = peers[number]
    before = crowd[peer] > 0
    crowd[peer] += change
    fresh = np.int64(crowd[peer] > 0) - np.int64(before)
    if kind == DENSE_RANK and fresh != 0:
        add_count(distinct, start, size, peer - start, fresh)
        totals[1] += fresh


@kernel(
    int_arrays(CountChanges), INT1, INT1, int_arrays(GroupPoints),
    INT, INT, INT, TRUTH, TRUTH,
)  # fmt: skip
def first_rows(
    changes: CountChanges,
    starts: Int64Array,
    peers: Int64Array,
    groups: GroupPoints,
    kind: int,
    offset: int,
    limit: int,
    numbered: bool,
    coalesce: bool,
) -> Int64Array:
    """The elements that turn the first rows of groups, as they were emitted, into those that hold now.

    Args:
        changes: of the rows' counts, where a code is a group.
        starts: int64[k + 1]: the rows of group c have the numbers from `starts[c]` up to `starts[c + 1]`, in
            their order.
        peers: int64[starts[k]]: of each row the first that is equal to it in what rows are sorted by.
        groups: at which instants their first rows are found.
        kind: what places count, ROW_NUMBER, RANK or DENSE_RANK.
        offset, limit: how many places come before those that are shown, and how many are shown.
        numbered: whether a row is shown with its place, from 1.
        coalesce: whether a row that stays is not emitted again; not for streams that promise chronons.

    Returns:
        Per element the number of its row, its place (0 unless `numbered`), ts, te and w; int64[e, 5].
    """
    codes, times, numbers, counts = changes
    points, instants, covered, until = groups
    out = np.empty((max(16, 2 * len(instants)), 5), dtype=np.int64)
    shown, fresh = np.empty((16, 5), dtype=np.int64), np.empty((16, 5), dtype=np.int64)
    by_row, by_peer = np.zeros((2, starts[-1]), np.int64), np.zeros((2, starts[-1] if kind else 0), np.int64)
    counted = by_row[0], by_row[1], by_peer[0], by_peer[1]
    wanted = np.int64(offset), np.int64(offset + limit)
    used, at = 0, 0
    for code in range(len(until)):
        size = starts[code + 1] - starts[code]
        tree_at = starts[code], size, first_step(size)
        while at < len(codes) and codes[at] < code:
            at += 1
        held, full, totals = 0, False, np.zeros(2, dtype=np.int64)
        # The first round finds what was shown before the first point.
        for point in range(points[code] - 1, points[code + 1]):
            before = point < points[code]
            bound = instants[point + 1] if before else instants[point] + 1
            lowest = starts[code + 1]
            while at < len(codes) and codes[at] == code and times[at] < bound:
                _count(counted, peers, tree_at, numbers[at], counts[at], totals, kind)
                lowest = min(lowest, peers[numbers[at]] if kind else numbers[at])
                at += 1
            # When all places are taken, a change after the first rows changes nothing.
            if full and coalesce and lowest > shown[held - 1, _ROW]:
                continue
            fresh, found, full = _fill(fresh, counted, peers, tree_at, totals, wanted, numbered, kind)
            if before:
                found = found if covered[code] != _BEGINNING else 0
                full = full and found > 0
                fresh[:found, _SINCE] = covered[code]
            else:
                out = _with_room(out, used + held + found)
                used = _change(out, used, shown[:held], fresh[:found], instants[point], coalesce)
            shown, fresh, held = fresh, shown, found
        out = _with_room(out, used + held)
        for item in range(held):
            used = _write(out, used, shown[item], shown[item, _SINCE], until[code])
    return out[:used].copy()
