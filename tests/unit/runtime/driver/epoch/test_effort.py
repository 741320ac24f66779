"""How many tasks an epoch has: as many as its work is worth, whatever it was before."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pytest

from headrace import Database, Policy
from headrace.engine.run.execution import Settings
from headrace.runtime.driver.epoch.effort import Effort
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import EpochWork, TaskReport
from headrace.runtime.tasks.profile import TaskTime

RUNNER = InlineRunner(parallelism=3, undivided=0.2)


@pytest.mark.parametrize(
    ("seconds", "rows", "tasks"),
    [(0.09, 100, 1), (0.11, 100, 3), (0.05, 199, 1), (0.05, 201, 3), (0.001, 1, 1)],
)
def test_little_work_goes_to_one_task(seconds: float, rows: int, tasks: int) -> None:
    reports = [TaskReport(time=TaskTime(0, seconds, {})) for _ in range(2)]
    before = Effort.of({"s": Intake(100, end=100)}, reports)
    assert before.tasks({"s": Intake(100 + rows, start=100, end=100 + rows)}, RUNNER) == tasks


def test_of_the_first_epoch_and_of_frames_nothing_is_known() -> None:
    intakes = {"s": Intake(1, end=1)}
    assert Effort().tasks(intakes, RUNNER) == 3
    assert Effort(0.0, {"s": 1}).tasks({"s": Intake(1, frame=object())}, RUNNER) == 3
    assert Effort(0.0, {"s": 1}).tasks({}, RUNNER) == 1


class Noting(InlineRunner):
    """Notes how many tasks each epoch has; leaves every other one undivided."""

    def __init__(self) -> None:
        super().__init__(parallelism=3)
        self.tasks: list[tuple[int, int]] = []

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        self.tasks.append((len(work.assignments), work.tasks))
        self.undivided = 0.0 if self.undivided else math.inf
        return super().run_epoch(work, frames)


def test_an_answer_does_not_depend_on_the_number_of_tasks() -> None:
    rows = pa.table({"ts": range(60), "k": [n % 7 for n in range(60)], "v": [n * n % 11 for n in range(60)]})
    runner = Noting()
    with (
        Database(InlineRunner, Settings(None, RunSettings(60, buckets=1), None), Policy.open()) as whole,
        Database(lambda: runner, Settings(None, RunSettings(10, buckets=4), None), Policy.open()) as divided,
    ):
        histories = []
        for db in (whole, divided):
            db.stream("s", rows, timestamp="ts")
            query = db.query("SELECT k, SUM(v) AS total, MAX(v) AS top FROM s [RANGE 20] GROUP BY k")
            db.run()
            histories.append(query.history())
    assert runner.tasks == [(3, 3), (1, 1), (3, 3), (1, 1), (3, 3), (1, 1)]
    assert histories[0] == histories[1]
