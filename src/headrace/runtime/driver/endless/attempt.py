"""The epoch that is running."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attempt:
    """An epoch that is running.

    Attributes:
        epoch: its number.
        since: when it was begun (seconds of a clock that only goes forward).
        failed: why it is tried again, or None.
    """

    epoch: int
    since: float
    failed: str | None = None
