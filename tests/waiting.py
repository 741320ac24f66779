"""Waiting for what another thread or process does: for a condition, until a deadline, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 120.0
"""Seconds after which a condition that does not hold yet fails the test."""
_BETWEEN: Final = 0.002


def wait_for(
    condition: Callable[[], object], told: Callable[[], object] = lambda: "it took too long"
) -> None:
    """Wait until a condition holds.

    Args:
        condition: what is asked again and again.
        told: what is shown if it never holds.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(_BETWEEN)


def wait_until(found: Callable[[], object], wanted: object) -> None:
    """Wait until something is found as it is wanted."""
    wait_for(lambda: found() == wanted, found)
