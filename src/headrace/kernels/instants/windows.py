"""Cutting intervals where one window takes over from another."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel


@kernel(INT1, INT1, INT, INT)
def cut_by_window(
    ts: Int64Array, te: Int64Array, slide: int, offset: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """The pieces of intervals in each of which one window is shown.

    A window that ends at an instant e is shown from e - 1 on for one slide.

    Args:
        ts, te: int64[n], the intervals; none is open for ever.
        slide: how far apart windows end.
        offset: an instant at which one ends.

    Returns:
        For each piece, interval by interval in order of time: its interval, its start, its end, and the end
        of its window; int64[m] each.
    """
    count = 0
    for row in range(len(ts)):
        count += (te[row] - offset) // slide - (ts[row] + 1 - offset) // slide + 1
    rows = np.empty(count, dtype=np.int64)
    starts = np.empty(count, dtype=np.int64)
    stops = np.empty(count, dtype=np.int64)
    ends = np.empty(count, dtype=np.int64)
    found = 0
    for row in range(len(ts)):
        start = ts[row]
        end = (start + 1 - offset) // slide * slide + offset
        while start < te[row]:
            rows[found] = row
            starts[found] = start
            ends[found] = end
            end += slide
            start = min(end - 1, te[row])
            stops[found] = start
            found += 1
    return rows[:found], starts[:found], stops[:found], ends[:found]
