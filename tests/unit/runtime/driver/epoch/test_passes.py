"""An epoch runs once, or once more where a split had to know the rows before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import SourceError
from headrace.heartbeats.bounded import advance, judge_in_order
from headrace.heartbeats.timing import Timing
from headrace.lowering.graph import Graph
from headrace.operators.state.runs import RunPart
from headrace.runtime.driver.clock.timekeeper import Timekeeper
from headrace.runtime.driver.epoch.passes import run_passes
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import EpochWork, ResultRef, SplitRange, StreamInput, TaskReport
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, ManualClock
from support import TableSource

DISORDER = 2


@dataclass
class Judging(InlineRunner):
    """Judges lists of timestamps, one per split, and writes a file per task and pass.

    Attributes:
        parts: the timestamps of each task's split, pass by pass; the last ones go on.
        passes: the work of each pass.
    """

    parts: list[list[list[int]]]
    passes: list[EpochWork] = field(default_factory=list)

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        parts = self.parts[min(len(self.passes), len(self.parts) - 1)]
        self.passes.append(work)
        reports = []
        for task, ((split,), times) in enumerate(zip(work.assignments, parts, strict=True)):
            heartbeat = advance(BEGINNING, split.before, DISORDER)
            found = judge_in_order(np.array(times, dtype=np.int64), heartbeat, DISORDER)
            part = RunPart(f"results/{len(self.passes)}-{task}", 0, 1, 0)
            work.store.write(part.segment, [pa.py_buffer(b"x")])
            letters = ResultRef(-1, part, 1, 0)
            reports.append(TaskReport({"s": found.arrivals}, dead_letters=letters))
        return reports


def work_of(tasks: int) -> EpochWork:
    schema = Schema((Field("ts", BIGINT),))
    source = TableSource(pa.table({"ts": pa.array([], BIGINT)}))
    stream = StreamInput(source, schema, "ts", Timing(DISORDER), BEGINNING, in_order=True)
    splits = tuple((SplitRange("s", task, task + 1),) for task in range(tasks))
    time = Timekeeper({"s": stream.timing}, QuerySet({}), {}, ManualClock()).epoch({}, 0)
    return EpochWork(1, "t", Graph((), ()), 1, 1, {"s": stream}, splits, {}, MemoryStore(), True, time)


def test_one_pass_where_each_split_judges_as_if_it_knew_all() -> None:
    """The 1 is late by the 9 of its own split as much as by the 8 before it."""
    runner, work = Judging([[[5, 8], [9, 6], [9, 1]]]), work_of(3)
    reports = run_passes(runner, work, {})
    assert [sum(seen.late for seen in report.arrivals.values()) for report in reports] == [0, 1, 1]
    assert runner.passes == [work]
    assert isinstance(work.store, MemoryStore)
    assert sorted(work.store.segments) == ["results/1-0", "results/1-1", "results/1-2"]


def test_a_second_pass_knows_the_rows_before_each_split_and_nothing_of_the_first_stays() -> None:
    runner, work = Judging([[[5, 8], [], [3, 9], [4]]]), work_of(4)
    reports = run_passes(runner, work, {})
    assert [report.arrivals["s"].late for report in reports] == [0, 0, 1, 1]
    assert [split.before for (split,) in runner.passes[1].assignments] == [BEGINNING, 8, 8, 9]
    assert len(runner.passes) == 2
    assert isinstance(work.store, MemoryStore)
    assert sorted(work.store.segments) == [f"results/2-{task}" for task in range(4)]


def test_the_heartbeat_that_a_late_row_is_below_needs_a_second_pass_too() -> None:
    """The 1 is late by the 5 of its own split, but the reason has to name the heartbeat that the 8 makes."""
    runner = Judging([[[8], [5, 1]]])
    run_passes(runner, work_of(2), {})
    assert len(runner.passes) == 2


def test_an_input_that_changes_between_the_passes_is_refused() -> None:
    with pytest.raises(SourceError, match="the input of s has changed while it was read"):
        run_passes(Judging([[[8], [1]], [[20], [7]]]), work_of(2), {})
