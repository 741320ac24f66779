"""Intervals per key, joined where they meet."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel


@kernel(INT1, INT1, INT1, INT1)
def joined_intervals(
    order: Int64Array, codes: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The instants that some interval of a key has, as intervals that do not meet.

    Args:
        order: the intervals sorted by (code, start).
        codes, starts, ends: int64[n], the key of each interval and its ends.

    Returns:
        Their keys, starts and ends, int64[m] each, sorted by both.
    """
    count = len(order)
    found = 0
    keys = np.empty(count, dtype=np.int64)
    lows = np.empty(count, dtype=np.int64)
    highs = np.empty(count, dtype=np.int64)
    for place in range(count):
        row = order[place]
        if found and keys[found - 1] == codes[row] and starts[row] <= highs[found - 1]:
            highs[found - 1] = max(highs[found - 1], ends[row])
        else:
            keys[found] = codes[row]
            lows[found] = starts[row]
            highs[found] = ends[row]
            found += 1
    return keys[:found].copy(), lows[:found].copy(), highs[:found].copy()
