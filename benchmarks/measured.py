"""What runs of one query took. Needs the standard library alone, since all systems use it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from processes import Used, Watch


@dataclass(frozen=True)
class Measured:
    """What the counted runs of one query took.

    Attributes:
        rows: input rows of a run.
        seconds: of each run, by the system's own clock.
        callers: seconds of each run as its caller saw them.
        used: what the process, and all below it, used in all of these runs.
    """

    rows: int
    seconds: tuple[float, ...]
    callers: tuple[float, ...]
    used: Used

    def __str__(self) -> str:
        return (
            f"{self.rate / 1e6:7.3f} M/s  {self.callers_rate / 1e6:7.3f} M/s for the caller  "
            f"cpu {self.processor:6.2f} s/M  memory {self.used.peak_bytes / 1e6:6,.0f} MB  "
            f"other load {self.used.foreign:4.0%}"
        )

    @classmethod
    def read(cls, found: Any) -> Measured:
        """What `asdict` made of it, and JSON of that."""
        return cls(found["rows"], tuple(found["seconds"]), tuple(found["callers"]), Used(**found["used"]))

    @property
    def rate(self) -> float:
        """Input rows per second by the system's own clock, in the median of the runs."""
        return self.rows / statistics.median(self.seconds)

    @property
    def callers_rate(self) -> float:
        """Input rows per second by the caller's clock, in the median of the runs."""
        return self.rows / statistics.median(self.callers)

    @property
    def processor(self) -> float:
        """Seconds of processor time per million input rows."""
        return self.used.processor / (self.rows * len(self.seconds)) * 1e6


def measure(run: Callable[[], float], rows: int, runs: int) -> Measured:
    """Run something, and watch it.

    Args:
        run: one run; returns its seconds by the system's own clock.
        rows: its input rows.
        runs: how many are counted; what warms up came before.
    """
    seconds, callers = [], []
    with Watch() as watch:
        for _ in range(runs):
            begun = time.perf_counter()
            seconds.append(run())
            callers.append(time.perf_counter() - begun)
    return Measured(rows, tuple(seconds), tuple(callers), watch.used)
