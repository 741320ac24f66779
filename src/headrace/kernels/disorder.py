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
