"""The definition of lateness: which rows of a stream come too late for its DISORDER."""

from __future__ import annotations

from collections.abc import Sequence


def late_rows(timestamps: Sequence[int | None], disorder: int) -> list[int]:
    """The places of the rows that are late: those older than the newest row before them, less the disorder.

    Args:
        timestamps: of a stream's rows, in the order of their positions (instants); None for a row that is
            rejected, which makes no other row late.
        disorder: how much older than the newest row before it a row may be.
    """
    return [place for place, behind in _behind(timestamps) if behind > disorder]


def needed_disorder(timestamps: Sequence[int | None]) -> int:
    """The smallest DISORDER with which no row is late."""
    return max((behind for _, behind in _behind(timestamps)), default=0)


def _behind(timestamps: Sequence[int | None]) -> list[tuple[int, int]]:
    """How far each row with a timestamp is behind the newest one up to it, by its place."""
    found = []
    for place, instant in enumerate(timestamps):
        if instant is not None:
            newest = max(before for before in timestamps[: place + 1] if before is not None)
            found.append((place, newest - instant))
    return found
