"""How far rows are out of order."""

from __future__ import annotations

from typing import Final

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT1_OUT, kernel

_NONE: Final = np.iinfo(np.int64).max

_PARTS: Final = 1024
"""Into so many parts time is cut to look for the smallest values."""


@kernel(INT1)
def furthest_behind(times: Int64Array) -> tuple[int, int]:
    """How far a row is behind the newest one before it, at most; and the largest timestamp.

    Args:
        times: int64[n] (instants), not empty.
    """
    newest, drop = times[0], 0
    for instant in times:
        if instant > newest:
            newest = instant
        elif newest - instant > drop:
            drop = newest - instant
    return drop, newest


@kernel(INT1, INT1, INT, INT, INT, INT1_OUT, INT1_OUT)
def late_by_value(
    codes: Int64Array,
    times: Int64Array,
    heartbeat: int,
    disorder: int,
    clock: int,
    newest: Int64Array,
    heard: Int64Array,
) -> tuple[Int64Array, Int64Array]:
    """The rows that are late by the rows of their own value before them.

    Args:
        codes: int64[n], which value each row has.
        times: int64[n], the timestamps (instants).
        heartbeat: a limit for all rows (instant).
        disorder: how much older than the newest row of its value before it a row may be.
        clock: when they came.
        newest: int64[values], the largest timestamp of each value so far, and on return also of these rows;
            heartbeat or less where it makes no difference.
        heard: int64[values], when each value came last, and on return the clock for those of these rows.

    Returns:
        The places of the late rows, and the instant that each of them is below.
    """
    late, limits = np.empty(len(times), dtype=np.int64), np.empty(len(times), dtype=np.int64)
    count = 0
    for place in range(len(times)):
        latest = newest[codes[place]]
        # The smallest instants less a disorder would not fit.
        limit = max(heartbeat, latest - disorder) if latest > heartbeat else heartbeat
        late[count], limits[count] = place, limit
        count += times[place] < limit
        newest[codes[place]] = max(latest, times[place])
        heard[codes[place]] = clock
    return late[:count].copy(), limits[:count].copy()


@kernel(INT1, INT1, INT, INT)
def suffix_candidates(newest: Int64Array, heard: Int64Array, until: int, last: int) -> Int64Array:
    """Those of the values that `suffix_minima` has to look at, so that few have to be sorted.

    Time is cut into parts. A value makes no difference if one of a later part has no larger timestamp, or if
    it came no later than the smallest value of its part.

    Args:
        newest: int64[values], the largest timestamp of each value.
        heard: int64[values], when each came last, not negative.
        until: those that came then or before are left out.
        last: none came after that.

    Returns:
        The values, increasing.
    """
    shift = np.uint64(0)
    while (last - until) >> np.int64(shift) >= _PARTS:
        shift += np.uint64(1)
    smallest, came = np.full(_PARTS, _NONE), np.full(_PARTS, -1)
    for value in range(len(heard)):
        if heard[value] > until:
            part = np.uint64(last - heard[value]) >> shift
            if newest[value] <= smallest[part]:
                if newest[value] < smallest[part] or heard[value] > came[part]:
                    came[part] = heard[value]
                smallest[part] = newest[value]
    limits = np.full(_PARTS, _NONE)
    for later in range(_PARTS - 1):
        limits[later + 1] = min(limits[later], smallest[later])
    found, count = np.empty(len(heard), dtype=np.int64), np.uint64(0)
    for value in range(len(heard)):
        if heard[value] > until:
            part = np.uint64(last - heard[value]) >> shift
            is_smallest = (heard[value] == came[part]) & (newest[value] == smallest[part])
            found[count] = value
            # Without a branch, since nobody can foresee it.
            count += np.uint64((newest[value] < limits[part]) & ((heard[value] > came[part]) | is_smallest))
    return found[:count].copy()


@kernel(INT1, INT1, INT1, INT)
def suffix_minima(
    newest: Int64Array, heard: Int64Array, order: Int64Array, until: int
) -> tuple[Int64Array, Int64Array]:
    """The value with the smallest timestamp, then that of the values that came after it, and so on.

    Args:
        newest: int64[values], the largest timestamp of each value.
        heard: int64[values], when each came last, not negative.
        order: int64[n], the values to look at in order of that.
        until: those that came then or before are left out.

    Returns:
        These values, and for each of them when the last of those came that have a smaller timestamp and came
        before it; -1 for the first.
    """
    values, before = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    count = 0
    for place in range(len(order) - 1, -1, -1):
        value = order[place]
        if heard[value] <= until:
            break
        if count and newest[value] >= newest[values[count - 1]]:
            continue
        # Of those that came together only the smallest counts.
        if not count or heard[value] < heard[values[count - 1]]:
            if count:
                before[count - 1] = heard[value]
            count += 1
        values[count - 1], before[count - 1] = value, -1
    return values[:count][::-1].copy(), before[:count][::-1].copy()


@kernel(INT1, INT, INT1_OUT, INT1_OUT)
def renew(codes: Int64Array, place: int, places: Int64Array, sizes: Int64Array) -> None:
    """Move values to another place, such as the run that an epoch writes.

    Args:
        codes: int64[n], the values, each any number of times.
        place: where they go.
        places: int64[values], where each is, and on return where it is by then.
        sizes: int64[places], how many values are at each, likewise.
    """
    for value in codes:
        if places[value] != place:
            sizes[places[value]] -= 1
            sizes[place] += 1
            places[value] = place


@kernel(INT1_OUT, INT)
def join_places(places: Int64Array, first: int) -> Int64Array:
    """Move all values that are at a place or a later one to that one; which they are, increasing.

    Args:
        places: int64[values], where each is, and on return where it is by then.
        first: the place.
    """
    found, count = np.empty(len(places), dtype=np.int64), np.uint64(0)
    for value in range(len(places)):
        found[count] = value
        count += np.uint64(places[value] >= first)
        places[value] = min(places[value], first)
    return found[:count].copy()
