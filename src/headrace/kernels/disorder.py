"""How far rows are out of order."""

from __future__ import annotations

import numba

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


@kernel(INT1, INT1, numba.int64, numba.int64, INT1_OUT, INT1_OUT)
def limits_by_value(
    codes: Int64Array,
    times: Int64Array,
    heartbeat: int,
    disorder: int,
    newest: Int64Array,
    limits: Int64Array,
) -> None:
    """The instant below which each row is late, by the rows of its own value before it.

    Args:
        codes: int64[n], which value each row has.
        times: int64[n], the timestamps (instants).
        heartbeat: a limit for all rows (instant).
        disorder: how much older than the newest row of its value before it a row may be.
        newest: int64[values], the largest timestamp of each value so far, and on return also of these rows;
            heartbeat or less where it makes no difference.
        limits: int64[n], where they are written.
    """
    for place in range(len(times)):
        latest = newest[codes[place]]
        # The smallest instants less a disorder would not fit.
        limits[place] = max(heartbeat, latest - disorder) if latest > heartbeat else heartbeat
        newest[codes[place]] = max(latest, times[place])
