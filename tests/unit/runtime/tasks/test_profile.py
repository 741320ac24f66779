"""Where the time went: what is measured, and how it is added up."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import headrace
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.profile import Profile, Stopwatch, TaskTime


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows its only item."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_what_is_measured_inside_counts_there_only(clock: list[float]) -> None:
    watch = Stopwatch(1)
    clock[0] += 1
    with watch("outer"):
        clock[0] += 2
        for _ in range(2):
            with watch("inner"):
                clock[0] += 4
    assert watch.time(7) == TaskTime(1, 11.0, {"outer": 2.0, "inner": 8.0}, 7)


def test_items_are_timed_and_what_is_done_with_them_is_not(clock: list[float]) -> None:
    def items() -> Iterator[int]:
        for number in range(3):
            clock[0] += 1
            yield number

    watch = Stopwatch(0)
    for _ in watch.each("read", items()):
        clock[0] += 10
    assert watch.time(0).parts == {"read": 3.0}


def test_an_epoch_takes_no_less_than_its_longest_tasks() -> None:
    profile = Profile()
    tasks = [
        TaskTime(0, 2.0, {"read": 1.5}),
        TaskTime(0, 3.0, {"read": 3.0}),
        TaskTime(1, 1.0, {"#1 Join": 0.25}, sent=9),
    ]
    profile.add(tasks, job=6.0, commit=0.5)
    assert (profile.epochs, profile.busiest, profile.engine, profile.commits) == (1, 4.0, 2.0, 0.5)
    assert profile.moved == 9
    assert profile.tasks == {(0, "read"): 4.5, (0, "other"): 0.5, (1, "#1 Join"): 0.25, (1, "other"): 0.75}


@pytest.mark.parametrize(("tasks", "moves"), [(1, False), (2, True)])
def test_a_run_tells_where_its_time_went(tasks: int, moves: bool) -> None:
    with headrace.Database(
        lambda: InlineRunner(tasks), Settings(None, RunSettings(), None), Policy.open()
    ) as db:
        db.execute("CREATE STREAM bid FROM nexmark OPTIONS (events=500) TIMESTAMP BY ts")
        db.query("SELECT auction, COUNT(*) AS n FROM bid [RANGE 10 SECONDS] GROUP BY auction")
        found = db.run().profile
    assert found.epochs == 1
    assert {what for _, what in found.tasks} >= {"read", "take in", "route", "store state", "#2 Aggregate"}
    assert {level for level, _ in found.tasks} == {0, 1}
    assert sum(found.tasks.values()) <= found.jobs
    assert bool(found.moved) == moves
