"""The definition of lateness: which rows of a stream come too late for its DISORDER."""

from __future__ import annotations

from collections.abc import Sequence


def late_rows(timestamps: Sequence[int | None], disorder: int) -> list[int]:
    """The places of the rows that are late: those older than the newest row before them, less the disorder.

    Args:
        timestamps: of a stream's rows, in the order of their positions (instants); None for a row that is
            rejected, which makes no other row late.
        disorder: how much older than the newest row before it a row may be; -1 where it has to be younger
            (STRICT).
    """
    return [place for place, behind in _behind(timestamps) if behind > disorder]


def needed_disorder(timestamps: Sequence[int | None]) -> int:
    """The smallest DISORDER with which no row is late."""
    return max((behind for _, behind in _behind(timestamps) if behind > 0), default=0)


def _behind(timestamps: Sequence[int | None]) -> list[tuple[int, int]]:
    """How far each row with a timestamp is behind the newest one before it, by its place."""
    found = []
    for place, instant in enumerate(timestamps):
        before = [earlier for earlier in timestamps[:place] if earlier is not None]
        if instant is not None and before:
            found.append((place, max(before) - instant))
    return found
