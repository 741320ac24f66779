"""The inline runner: an epoch in this process, without Spark, for tests and small inputs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping

from headrace.runtime.store.segments import MemoryStore, Store
from headrace.runtime.tasks.messages import REPORT_CHANNEL, Chunk, EpochWork, TaskReport
from headrace.runtime.tasks.stages import run_level, run_sources


class InlineRunner:
    """Runs the stages one after the other.

    Args:
        parallelism: how many tasks a level is cut into; more than one only to test that it does not matter.
    """

    def __init__(self, parallelism: int = 1) -> None:
        self.parallelism = parallelism

    def new_store(self) -> Store:
        """A store for the segments of a run."""
        return MemoryStore()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch; the reports of its tasks. Frames are Spark's, so there can be none here."""
        assert not frames
        chunks: list[Chunk] = []
        for task in range(len(work.assignments)):
            chunks += run_sources(work, task, 0)
        for level in range(1, work.graph.levels + 1):
            boxes = [[chunk for chunk in chunks if chunk.task == task] for task in range(work.tasks)]
            chunks = [sent for task, box in enumerate(boxes) for sent in run_level(work, task, 0, level, box)]
        return reports_of(chunks)

    def cancel(self) -> None:
        """A thread cannot be ended from outside; it is abandoned."""

    def close(self) -> None:
        """Nothing to close."""


def reports_of(chunks: Iterable[Chunk]) -> list[TaskReport]:
    """The reports among the chunks that reached the end, in order of the tasks."""
    reports = [chunk for chunk in chunks if chunk.channel == REPORT_CHANNEL]
    return [pickle.loads(chunk.payload) for chunk in sorted(reports, key=lambda chunk: chunk.sender)]
