"""Names close to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> str | None:
    """`did you mean x?` for the known names closest to an unknown one, or None where none is close.

    Args:
        name: the unknown name.
        known: the names that there could be, whatever their case.
        most: how many of them are named at most.
        cutoff: how close a name has to be, from 0 to 1, as `difflib` measures it.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), list(by_lower), n=most, cutoff=cutoff)
    return f"did you mean {' or '.join(by_lower[found] for found in close)}?" if close else None
