"""The definition of TIMESTAMP BY ARRIVAL: which instants rows get."""

from __future__ import annotations

from collections.abc import Sequence


def arrival_instants(epochs: Sequence[tuple[int, int]]) -> list[int]:
    """The instants of a stream's rows, in their order.

    All rows of an epoch have one: the clock's reading, unless the clock was further before, or rows of an
    earlier epoch have that instant already.

    Args:
        epochs: for each the reading of the clock (microseconds), and how many rows it took.
    """
    found: list[int] = []
    for number, (_, rows) in enumerate(epochs):
        furthest = max(reading for reading, _ in epochs[: number + 1])
        instant = max(furthest, found[-1] + 1) if found else furthest
        found += [instant] * rows
    return found
