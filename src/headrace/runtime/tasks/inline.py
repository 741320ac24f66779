"""The inline runner: an epoch in this process, without Spark, for tests and small inputs."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from headrace.runtime.store.segments import MemoryStore, Store
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.fence import CancelFlag
from headrace.runtime.tasks.messages import REPORT_CHANNEL, Chunk, EpochWork, TaskReport
from headrace.runtime.tasks.stages import one_by_one, run_epoch

T = TypeVar("T")


class InlineRunner:
    """Runs the stages one after the other, and the tasks of a stage beside each other if there are threads.

    Kernels, NumPy and Arrow let go of the interpreter's lock while they work, so that threads do most of it
    at once. They hand over what they yield as it is.

    Args:
        parallelism: how many tasks a level is cut into that run one after the other; more than one only to
            test that it does not matter, nor that they read all state anew and encode what they send.
        undivided: seconds of work that are left to one task.
        threads: how many tasks run at once, into as many of which a level is cut; without them if None.
        spare: whether state is in one bucket where epochs are small, since each costs something.
    """

    def __init__(
        self,
        parallelism: int = 1,
        undivided: float = 0.0,
        threads: int | None = None,
        spare: bool = False,
    ) -> None:
        self.parallelism = parallelism if threads is None else threads
        self.undivided = undivided
        self._attempts = itertools.count()
        self._spare = spare
        self._together = threads is not None or parallelism == 1
        self._at_hand = RunsAtHand() if self._together else None
        self._flag = CancelFlag()
        self._pool = TaskThreads(threads) if threads is not None and threads > 1 else None

    def buckets(self, *, bulk: bool) -> int:
        """As many as tasks can run at once, or one; see `Runner.buckets`."""
        return self.parallelism if bulk or not self._spare else 1

    def new_store(self) -> Store:
        """A store for the segments of a run."""
        return MemoryStore()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch; the reports of its tasks. Frames are Spark's, so there can be none here."""
        assert not frames
        each = one_by_one if self._pool is None else self._pool.each
        attempt = next(self._attempts)
        return reports_of(run_epoch(work, attempt, self._at_hand, self._flag, self._together, each))

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
        """End the threads."""
        if self._pool is not None:
            self._pool.close()


def reports_of(chunks: Iterable[Chunk]) -> list[TaskReport]:
    """The reports among the chunks that reached the end, in order of the tasks."""
    reports = [chunk for chunk in chunks if chunk.channel == REPORT_CHANNEL]
    return [pickle.loads(chunk.encoded) for chunk in sorted(reports, key=lambda chunk: chunk.sender)]


class TaskThreads:
    """Threads that run tasks beside each other; the thread that asks runs the first one itself.

    Args:
        threads: how many run at once, the one that asks included.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._others: ThreadPoolExecutor | None = None

    def each(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run tasks; what each gives. All of them have ended then.

        Raises:
            BaseException: what the first of them has raised that failed.
        """
        if len(tasks) < 2:
            return one_by_one(tasks)
        if self._others is None:
            self._others = ThreadPoolExecutor(self._threads - 1, "headrace tasks")
        others = [self._others.submit(task) for task in tasks[1:]]
        try:
            first = tasks[0]()
        finally:
            # Whatever this one raises, nothing of the epoch goes on.
            wait(others)
        return [first, *(other.result() for other in others)]

    def close(self) -> None:
        """End the threads."""
        if self._others is not None:
            self._others.shutdown()
            self._others = None
