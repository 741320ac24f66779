"""How long the world has, and what is remembered of something in it that is away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from headrace.errors import AwayError, told

SINCE: Final = "%Y-%m-%d %H:%M:%S"
"""How it is said since when something is away, in local time."""
_MOST_DOUBLINGS: Final = 30


@dataclass(frozen=True)
class WorldPatience:
    """How long the world has; all in seconds.

    Attributes:
        silent: how long a peer may be silent before it counts as away.
        pause: before what was away is asked again; each further pause is twice as long.
        longest: that a pause has at most.
        opening: how long what others wait for may take: a start waits so long for its sinks, which get ready
            beside it from then on, a store that is opened for each of its files, and an epoch for a registry.
        lag: how long a registry may not know a schema whose number a message has.
    """

    silent: float = 30.0
    pause: float = 0.5
    longest: float = 30.0
    opening: float = 5.0
    lag: float = 10.0

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        return float(min(self.longest, self.pause * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)))


_held = [WorldPatience()]


def patience() -> WorldPatience:
    """The patience that holds in this process."""
    return _held[-1]


@contextmanager
def patient(**seconds: Any) -> Iterator[None]:
    """Let other times hold in this process for a while; see `WorldPatience`."""
    _held.append(replace(_held[-1], **seconds))
    try:
        yield
    finally:
        _held.pop()


@dataclass(frozen=True)
class Away:
    """What could not be reached, and when it is asked again.

    Attributes:
        reason: what was wrong the last time.
        since: when it was away first (seconds since 1970).
        failures: how often in a row it was.
        until: when it is asked again (`time.monotonic()`).
    """

    reason: str
    since: float
    failures: int
    until: float

    @classmethod
    def after(cls, before: Away | None, error: BaseException, least: float = 0.0) -> Away:
        """What is known after one more failure.

        Args:
            before: what was known; None where it was there until now.
            error: what was wrong; where that says when to ask again, it holds.
            least: seconds that are waited at least.
        """
        failures = 1 if before is None else before.failures + 1
        pause = max(patience().after(failures), least)
        if isinstance(error, AwayError) and error.pause is not None:
            pause = max(error.pause, least)
        since = time.time() if before is None else before.since
        return cls(told(error), since, failures, time.monotonic() + pause)

    @property
    def is_due(self) -> bool:
        """Whether it is asked again by now."""
        return time.monotonic() >= self.until

    @property
    def wait(self) -> float:
        """Seconds until it is asked again."""
        return max(0.0, self.until - time.monotonic())

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since).strftime(SINCE)
        return f"{self.reason}; since {since}, {self.failures} attempts so far, it is tried again"
