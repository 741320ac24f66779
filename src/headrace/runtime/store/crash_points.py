"""Fault points: named places at which a test can kill the process, between any two steps of a protocol.

`HEADRACE_FAULT=point:n` in the environment kills the process, as a power cut would, when it reaches the point
for the n-th time. Without the variable a fault point costs a look into the environment at start-up.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

POINTS: Final = (
    "segment.drafted",
    "segment.written",
    "epoch.reported",
    "commit.drafted",
    "commit.linked",
    "commit.done",
    "sweep.begun",
    "sweep.done",
    "sink.begun",
    "file.drafted",
    "file.moved",
    "sink.taken",
    "sink.recorded",
    "change.begun",
    "change.done",
)
"""All fault points: those of an epoch and its delivery in the order in which it reaches them, then those of a
plan change."""

_WANTED, _, _COUNT = os.environ.get("HEADRACE_FAULT", "").partition(":")
_seen: Counter[str] = Counter()


def reach(point: str) -> None:
    """Die here, if this is where the environment wants it."""
    if point == _WANTED:
        _seen[point] += 1
        if _seen[point] == int(_COUNT or 1):
            os.kill(os.getpid(), signal.SIGKILL)
