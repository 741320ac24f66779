"""Where the time of a run went: what each task measured, added up by level and by what it did."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Measures what a task does; what is measured inside of something else does not count there, too.

    Args:
        level: the task's.
    """

    def __init__(self, level: int) -> None:
        self._level = level
        self._started = time.perf_counter()
        self._parts: dict[str, float] = {}
        self._inner = [0.0]

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Measure a block."""
        started = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            self._parts[what] = self._parts.get(what, 0.0) + elapsed - self._inner.pop()
            self._inner[-1] += elapsed

    def each(self, what: str, items: Iterator[T]) -> Iterator[T]:
        """The items, with the time it takes to get them."""
        while True:
            with self(what):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    def time(self, sent: int) -> TaskTime:
        """What the task took so far, and how many bytes it sent."""
        return TaskTime(self._level, time.perf_counter() - self._started, dict(self._parts), sent)


@dataclass(frozen=True)
class TaskTime:
    """What a task took.

    Attributes:
        level: its level; seconds: of wall time; parts: what they were spent on.
        sent: bytes that it sent to the next levels.
    """

    level: int
    seconds: float
    parts: Mapping[str, float]
    sent: int = 0


@dataclass
class Profile:
    """Where the time of the epochs of a run went, in seconds of wall time.

    Attributes:
        epochs: how many there were.
        tasks: by level and what was done, in all tasks together.
        busiest: the sum, over epochs and levels, of the longest task: no epoch can take less.
        jobs, commits: what running and committing the epochs took.
        moved: bytes that were sent between tasks.
    """

    epochs: int = 0
    tasks: dict[tuple[int, str], float] = field(default_factory=dict)
    busiest: float = 0.0
    jobs: float = 0.0
    commits: float = 0.0
    moved: int = 0

    def add(self, tasks: Sequence[TaskTime], job: float, commit: float) -> None:
        """Take in an epoch."""
        longest: dict[int, float] = {}
        for task in tasks:
            longest[task.level] = max(longest.get(task.level, 0.0), task.seconds)
            for what, seconds in (*task.parts.items(), ("other", task.seconds - sum(task.parts.values()))):
                self.tasks[task.level, what] = self.tasks.get((task.level, what), 0.0) + seconds
        self.epochs += 1
        self.busiest += sum(longest.values())
        self.jobs += job
        self.commits += commit
        self.moved += sum(task.sent for task in tasks)

    @property
    def engine(self) -> float:
        """What the runner took beside the tasks: planning, starting them, moving chunks."""
        return max(0.0, self.jobs - self.busiest)
