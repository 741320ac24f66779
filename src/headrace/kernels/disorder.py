"""How far rows are out of order."""

from __future__ import annotations

import numba
import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, INT1_OUT, kernel


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


@kernel(INT1, INT1, numba.int64, numba.int64, numba.int64, INT1_OUT, INT1_OUT)
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


@kernel(INT1, INT1, INT1, numba.int64)
def suffix_minima(
    newest: Int64Array, heard: Int64Array, order: Int64Array, until: int
) -> tuple[Int64Array, Int64Array]:
    """The value with the smallest timestamp, then that of the values that came after it, and so on.

    Args:
        newest: int64[values], the largest timestamp of each value.
        heard: int64[values], when each came last, not negative.
        order: int64[values], the values in order of that.
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
