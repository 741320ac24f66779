"""The present of an answer, as the end of a span."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Now:
    """The first instant after that of the answer now, or one before it.

    Attributes:
        back: how long before (instants).
    """

    back: int = 0
