"""How many tasks an epoch is worth: one where it has little to do.

Every further task and every further level of tasks costs a runner some ten milliseconds, which a small epoch
of an endless run does not win back by doing two things at once. State belongs to buckets, not to tasks, so
that the number of tasks may change from epoch to epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.messages import TaskReport
from headrace.runtime.tasks.runner import Runner


@dataclass(frozen=True)
class Effort:
    """What the last epoch took.

    Attributes:
        seconds: of all its tasks together; None before the first epoch.
        lengths: how many positions of each stream it read.
    """

    seconds: float | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, intakes: Mapping[str, Intake], reports: Iterable[TaskReport]) -> Effort:
        """What an epoch took, as its tasks report it."""
        seconds = sum(report.time.seconds for report in reports if report.time is not None)
        return cls(seconds, _lengths(intakes))

    def tasks(self, intakes: Mapping[str, Intake], runner: Runner) -> int:
        """How many tasks the next epoch is worth; all that can run at once where too little is known of it.

        Args:
            intakes: what it takes.
            runner: where it runs.
        """
        if any(intake.frame is not None for intake in intakes.values()):
            return runner.parallelism
        if self.seconds is None:
            rows = [_rows(intake) for intake in intakes.values()]
            return 1 if rows and max(rows) < runner.few else runner.parallelism
        longer = (length / max(self.lengths.get(name, 0), 1) for name, length in _lengths(intakes).items())
        return 1 if self.seconds * max(longer, default=1.0) <= runner.undivided else runner.parallelism


def _rows(intake: Intake) -> float:
    """About how many rows are taken; infinite where that is not known."""
    source = intake.source
    if source is None:
        return 0.0 if intake.end == intake.start else math.inf
    return source.rows * (intake.end - intake.start) / max(source.size, 1)


def _lengths(intakes: Mapping[str, Intake]) -> dict[str, int]:
    return {name: intake.end - intake.start for name, intake in intakes.items()}
