"""Samples of the first k by rank of sliding windows: what enters and leaves them, and what may yet enter.

The k-skyband of `headrace.kernels.values.skyband`, of elements that all last equally long, and so end in the
order in which they begin.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, Number, inner, int_arrays, kernel
from headrace.kernels.values.fenwick import add_count, find_place, first_step
from headrace.kernels.values.inputs import CountChanges, KeyPoints


class Drawn(NamedTuple):
    """Elements of some keys, key after key, in the order in which they begin.

    Attributes:
        begins: int64[k + 1], the first element of each key, then the number n of elements.
        starts, ends: int64[n], from where to where they are there (instants).
        ranks: int64[n], 0 up to the number of the key's elements, the smaller the earlier in the sample;
            elements of one rank are one.
    """

    begins: Int64Array
    starts: Int64Array
    ends: Int64Array
    ranks: Int64Array


_DRAWN = int_arrays(Drawn)


@kernel(_DRAWN, INT, INT, INT)
def sample_changes(
    drawn: Drawn, limit: int, before: int, horizon: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The changes of the samples of some keys.

    Args:
        drawn: the elements, none of which ends below `before`.
        limit: how many ranks a sample has at most, at least 1.
        before, horizon: changes in between are wanted (instants).

    Returns:
        By key and time the key, the instant, the element, and 1 where it enters the sample or -1 where it
        leaves it, int64[m] each. What is in a sample just before `before` enters it one instant earlier.
    """
    begins, starts, ends, ranks = drawn
    most = 4 * len(starts)
    codes, times = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    elements, signs = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    found = 0
    tree = np.zeros(len(starts), dtype=np.int64)
    counts, holders = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.int64)
    for key in range(len(begins) - 1):
        low, high = begins[key], begins[key + 1]
        size = high - low
        step, present, bar = first_step(size), np.int64(0), size
        entering, leaving = low, low
        while True:
            comes = max(starts[entering], before - 1) if entering < high else horizon
            at = min(comes, ends[leaving]) if leaving < entering else comes
            if at >= horizon:
                break
            if leaving < entering and ends[leaving] == at:
                rank, change = ranks[leaving], np.int64(-1)
                leaving += 1
            else:
                rank, change = ranks[entering], np.int64(1)
                entering += 1
            counts[low + rank] += change
            if counts[low + rank] != (change + 1) // 2:
                # Another one of the same rank is there.
                continue
            if change > 0:
                holders[low + rank] = entering - 1
            add_count(tree, low, size, rank, change)
            present += change
            went, came, bar = _moved(tree, low, size, step, rank, bool(change > 0), present, bar, limit)
            for moved, sign in ((went, -1), (came, 1)):
                if moved >= 0:
                    codes[found], times[found] = key, at
                    elements[found], signs[found] = holders[low + moved], sign
                    found += 1
    return codes[:found].copy(), times[:found].copy(), elements[:found].copy(), signs[:found].copy()


@inner
def _moved(
    tree: Int64Array,
    low: Number,
    size: Number,
    step: Number,
    rank: Number,
    comes: bool,
    present: Number,
    bar: Number,
    limit: Number,
) -> tuple[Number, Number, Number]:
    """The ranks that leave and enter a sample as one comes or goes, -1 for none, and the last rank in it.

    Args:
        tree: the ranks that are there now.
        low, size, step: which part of it, as `find_place` takes them.
        rank: the one that comes or goes.
        comes: whether it comes.
        present: how many are there now.
        bar: the last rank in the sample before, `size` where all were.
        limit: how many there are at most.
    """
    if not comes:
        went: Number = -1
        came: Number = -1
        if rank <= bar:
            went = rank
            if present >= limit:
                came = bar = find_place(tree, low, size, step, limit - 1)
        return went, came, bar if present > limit else size
    if present <= limit:
        return -1, rank, size
    # Where all were in it, the last of all, which may be the new one, is what is too much.
    last = find_place(tree, low, size, step, limit) if bar == size else bar
    if rank > last or (rank == last and bar < size):
        return -1, -1, bar
    first = find_place(tree, low, size, step, limit - 1)
    if rank == last:
        return -1, -1, first
    return last, rank, first


@kernel(_DRAWN, INT)
def may_enter(drawn: Drawn, limit: int) -> npt.NDArray[np.bool_]:
    """Which elements are or may come to be in the sample of their key, whatever else comes; bool[n].

    Of the elements of one rank the last one to end is enough.

    Args:
        drawn: elements that are all there now, in the order in which they end.
        limit: how many ranks a sample has at most, at least 1.
    """
    begins, _, _, ranks = drawn
    marks = np.zeros(len(ranks), dtype=np.bool_)
    seen = np.zeros(len(ranks), dtype=np.bool_)
    best = [np.int64(0)]
    for key in range(len(begins) - 1):
        best.clear()
        for element in range(begins[key + 1] - 1, begins[key] - 1, -1):
            rank = ranks[element]
            # The smallest of the complements, on top of the heap, is that of the largest rank.
            if seen[begins[key] + rank] or (len(best) == limit and rank > ~best[0]):
                continue
            seen[begins[key] + rank] = True
            marks[element] = True
            if len(best) < limit:
                heapq.heappush(best, ~rank)
            else:
                heapq.heapreplace(best, ~rank)
    return marks


@kernel(INT1, INT1, INT)
def are_passed(begins: Int64Array, draws: Int64Array, limit: int) -> npt.NDArray[np.bool_]:
    """Which elements have enough others behind them that no sample of later ones has them; bool[n].

    Those are others of the same hash, or so many of smaller ones. It is what `may_enter` says, but of hashes
    in place of ranks, so that nothing has to be sorted.

    Args:
        begins: int64[k + 1], the first element of each key, then the number n of elements.
        draws: int64[n], their hashes, from 0 on, in the order in which they end.
        limit: how many elements a sample has at most, at least 1.
    """
    passed = np.zeros(len(draws), dtype=np.bool_)
    best = [np.int64(0)]
    for key in range(len(begins) - 1):
        best.clear()
        places = 4
        while places < 2 * (begins[key + 1] - begins[key]):
            places *= 2
        # A table of the hashes that have been among the best: one of these has passed all of its kind.
        known = np.full(places, -1, dtype=np.int64)
        for element in range(begins[key + 1] - 1, begins[key] - 1, -1):
            draw = draws[element]
            if len(best) == limit and draw > ~best[0]:
                passed[element] = True
                continue
            place = draw % places
            while known[place] >= 0 and known[place] != draw:
                place = (place + 1) % places
            if known[place] == draw:
                passed[element] = True
                continue
            known[place] = draw
            if len(best) < limit:
                heapq.heappush(best, ~draw)
            else:
                heapq.heapreplace(best, ~draw)
    return passed


@kernel(int_arrays(CountChanges), int_arrays(KeyPoints))
def sizes_at(changes: CountChanges, points: KeyPoints) -> Int64Array:
    """int64[m]: the number of values of some multisets at every point."""
    codes, times, _, counts = changes
    point_codes, point_times = points
    sizes = np.zeros(len(point_codes), dtype=np.int64)
    at, total = 0, np.int64(0)
    for point in range(len(point_codes)):
        code = point_codes[point]
        if point == 0 or code != point_codes[point - 1]:
            total = np.int64(0)
            while at < len(codes) and codes[at] < code:
                at += 1
        while at < len(codes) and codes[at] == code and times[at] <= point_times[point]:
            total += counts[at]
            at += 1
        sizes[point] = total
    return sizes
