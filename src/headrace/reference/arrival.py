"""The definition of TIMESTAMP BY ARRIVAL: which instants rows get."""

from __future__ import annotations

from collections.abc import Sequence


def arrival_instants(epochs: Sequence[tuple[int, int]]) -> list[int]:
    """The instants of a stream's rows, in their order.

    All rows of an epoch have its instant: the clock's reading, but later than that of the epoch before.

    Args:
        epochs: for each the reading of the clock (microseconds), and how many rows it took.
    """
    found: list[int] = []
    before: int | None = None
    for reading, rows in epochs:
        instant = reading if before is None else max(reading, before + 1)
        found += [instant] * rows
        before = instant
    return found
