"""A clock that moves only when a test moves it, and waits until a run has looked at it."""

from __future__ import annotations

import threading

from headrace.time import ManualClock

SECOND = 1_000_000
"""In microseconds."""


class Clock(ManualClock):
    """A clock that lets a test wait until the run has looked at it."""

    def __init__(self) -> None:
        super().__init__(1_800_000_000 * SECOND)
        self._looks = threading.Semaphore(0)

    def now(self) -> int:
        self._looks.release()
        return self.instant

    def let_pass(self, seconds: float) -> None:
        """Let time pass as it does, a second at a time, with a look at each."""
        for _ in range(round(seconds)):
            self.advance(SECOND)
            self.wait_for_looks()

    def jump(self, seconds: int) -> None:
        """Let it go on at once, as when it is set or the machine was asleep."""
        self.advance(seconds * SECOND)
        self.wait_for_looks()

    def wait_for_looks(self) -> None:
        """Wait until the run has looked at the clock, and has made the epoch that may follow."""
        while self._looks.acquire(blocking=False):
            pass
        for _ in range(6):
            assert self._looks.acquire(timeout=20)
