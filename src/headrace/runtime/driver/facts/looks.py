"""Looks at a run after its commits: the rows that come of each stream, and how long its epochs take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.time import MICROSECONDS

_LOOKS: Final = 4
"""So many times the time that is asked for is looked back."""

RowsWaiting = Mapping[str, int | None]
"""The rows that wait for an epoch, by stream; None where that is not known."""


class _Look(NamedTuple):
    """A run after a commit.

    Attributes:
        at: when (seconds).
        busy: the seconds that all epochs took.
        taken: the rows of each stream that were taken.
        waiting: those that wait, where that is known.
    """

    at: float
    busy: float
    taken: Mapping[str, int]
    waiting: RowsWaiting


@dataclass
class RecentLooks:
    """Looks at a run after its commits.

    Attributes:
        looks: those of the last seconds, and one before them.
    """

    looks: list[_Look] = field(default_factory=list)

    def note(self, run: PublishedRun, waiting: RowsWaiting, bound: float) -> None:
        """Take in what a commit has brought.

        Args:
            run: what is to be seen of the run.
            waiting: the rows that wait for the next epoch.
            bound: for how long rows may wait (seconds).
        """
        at = run.statistics.at / MICROSECONDS["SECOND"]
        arrivals = run.totals.arrivals
        taken = {name: arrivals.get(name, Arrivals()).everything for name in run.streams}
        self.looks.append(_Look(at, run.totals.seconds, taken, dict(waiting)))
        while len(self.looks) > 2 and self.looks[1].at <= at - _LOOKS * bound:
            del self.looks[0]

    def forget(self) -> None:
        """Forget all, since the run does something else from now on."""
        self.looks.clear()

    @property
    def passed(self) -> float:
        """The time that was looked at (seconds)."""
        return self.looks[-1].at - self.looks[0].at if self.looks else 0.0

    def rates(self) -> dict[str, float]:
        """The rows of each stream that have come (per second): those taken, and those that wait now."""
        first, last = self.looks[0], self.looks[-1]
        grown = {
            name: rows - (first.waiting.get(name) or 0)
            for name, rows in last.waiting.items()
            if rows is not None
        }
        return {
            name: max(0.0, (rows - first.taken.get(name, rows) + grown.get(name, 0)) / self.passed)
            for name, rows in last.taken.items()
        }
