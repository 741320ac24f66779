"""How far rows are out of order."""

from __future__ import annotations

from headrace.elements import Int64Array
from headrace.kernels.jit import INT1, kernel


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
