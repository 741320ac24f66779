"""The inline runner: an epoch in this process, without Spark, for tests and small inputs."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Collection, Iterable, Mapping

from headrace.runtime.store.segments import MemoryStore, Store
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.fence import CancelFlag
from headrace.runtime.tasks.messages import REPORT_CHANNEL, Chunk, EpochWork, TaskReport
from headrace.runtime.tasks.stages import run_epoch


class InlineRunner:
    """Runs the stages one after the other.

    Args:
        parallelism: how many tasks a level is cut into; more than one only to test that it does not matter,
            nor that they read all state anew and encode what they send.
        undivided: seconds of work that are left to one task, for the same purpose.
    """

    def __init__(self, parallelism: int = 1, undivided: float = 0.0) -> None:
        self.parallelism = parallelism
        self.undivided = undivided
        self._attempts = itertools.count()
        self._at_hand = RunsAtHand() if parallelism == 1 else None
        self._flag = CancelFlag()

    def new_store(self) -> Store:
        """A store for the segments of a run."""
        return MemoryStore()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch; the reports of its tasks. Frames are Spark's, so there can be none here."""
        assert not frames
        return reports_of(run_epoch(work, next(self._attempts), self._at_hand, self._flag))

    def drop(self, queries: Collection[str]) -> None:
        """Do nothing more for some queries; see `Runner.drop`."""
        self._flag.drop(queries)

    def want(self, queries: Collection[str]) -> None:
        """Take back a `drop`."""
        self._flag.want(queries)

    def cancel(self) -> None:
        """End the epoch that is running at the next place where it looks whether it is wanted."""
        flag, self._flag = self._flag, CancelFlag()
        flag.all = True

    def close(self) -> None:
        """Nothing to close."""


def reports_of(chunks: Iterable[Chunk]) -> list[TaskReport]:
    """The reports among the chunks that reached the end, in order of the tasks."""
    reports = [chunk for chunk in chunks if chunk.channel == REPORT_CHANNEL]
    return [pickle.loads(chunk.encoded) for chunk in sorted(reports, key=lambda chunk: chunk.sender)]
