"""What some elements cover of time."""

from __future__ import annotations

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel
from headrace.time import BEGINNING, INFINITY


@kernel(INT1, INT1)
def extent(ts: Int64Array, te: Int64Array) -> tuple[int, int, int, int, int]:
    """The first and the last beginning of some intervals, how many have no end, and the length of the others.

    One that begins before all time counts among those without an end.

    Args:
        ts, te: int64[n] (instants), not empty.

    Returns:
        The smallest and the largest `ts`, the number of endless intervals, and the sum of `te - ts` over the
        others in two parts: a multiple of 2 ** 32, and what is added to it. So it cannot overflow.
    """
    first, last = ts[0], ts[0]
    endless, high, low = 0, 0, 0
    for row in range(len(ts)):
        start, end = ts[row], te[row]
        first, last = min(first, start), max(last, start)
        if end == INFINITY or start == BEGINNING:
            endless += 1
        else:
            high += (end - start) >> 32
            low += (end - start) & 0xFFFFFFFF
    return first, last, endless, high, low
