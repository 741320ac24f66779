"""The inline runner: an epoch in this process, without Spark, for tests and small inputs."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from headrace.limits import CancelledWorkError, check, in_turn
from headrace.runtime.store.segments import MemoryStore, Store
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.fence import CancelFlag
from headrace.runtime.tasks.messages import REPORT_CHANNEL, Chunk, EpochWork, TaskReport
from headrace.runtime.tasks.stages import Each, one_by_one, run_epoch

T = TypeVar("T")

UNDIVIDED: Final = 0.06
"""Seconds of work that one thread does sooner than several.

Each of them has to load and store more, and makes as many calls of Python's, which only one thread at a time
can make: on two cores an epoch of 30 ms, as of some thousand rows that are pushed, took up to 1.8 times as
long with two threads."""

_LOOK: Final = 0.1
"""Seconds between two looks at whether the one who waits for tasks may still wait."""
_ENDING: Final = 10
"""So many looks tasks have to end that nobody wants any more, before their threads are left to them."""


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
        self.few = 5_000 if threads is not None else 0
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
        flag = self._flag
        each: Each = one_by_one
        if self._pool is not None:
            # Where one task fails nobody waits for the others.
            each = partial(self._pool.each, abort=partial(self._abort, flag))
        attempt = next(self._attempts)
        return reports_of(run_epoch(work, attempt, self._at_hand, flag, self._together, each))

    def drop(self, queries: Collection[str]) -> None:
        """Do nothing more for some queries; see `Runner.drop`."""
        self._flag.drop(queries)

    def want(self, queries: Collection[str]) -> None:
        """Take back a `drop`."""
        self._flag.want(queries)

    def cancel(self) -> None:
        """End the epoch that is running at the next place where it looks whether it is wanted.

        Code of users may never come there: what runs next does not wait for its threads.
        """
        self._abort(self._flag)
        if self._pool is not None:
            self._pool.set_aside()

    def _abort(self, flag: CancelFlag) -> None:
        """End the epoch that has a flag; the next one has another."""
        if self._flag is flag:
            self._flag = CancelFlag()
        flag.all = True

    def close(self) -> None:
        """End the threads, once each has done what it does."""
        if self._pool is not None:
            self._pool.set_aside()


def reports_of(chunks: Iterable[Chunk]) -> list[TaskReport]:
    """The reports among the chunks that reached the end, in order of the tasks."""
    reports = [chunk for chunk in chunks if chunk.channel == REPORT_CHANNEL]
    return [pickle.loads(chunk.encoded) for chunk in sorted(reports, key=lambda chunk: chunk.sender)]


@dataclass(eq=False)
class _Stage:
    """Tasks that run at once.

    Attributes:
        abort: lets those end that run.
        ended: what has become of them: their places, what they gave, and what they raised.
        failed: what the first of them that failed has raised.
        wanted: whether those that have not begun should.
    """

    abort: Callable[[], None]
    ended: SimpleQueue[tuple[int, Any, BaseException | None]] = field(default_factory=SimpleQueue)
    failed: BaseException | None = None
    wanted: bool = True

    def fail(self, error: BaseException) -> BaseException:
        """Let one of them have failed, so that the others need not go on; what failed first."""
        self.failed = self.failed or error
        self.wanted = False
        self.abort()
        return self.failed


@dataclass(frozen=True, eq=False)
class _Job:
    """A task on its way to a thread.

    Attributes:
        stage: those that run with it.
        place: its own among them.
        context: the variables of the thread that asks for it.
        task: it.
    """

    stage: _Stage
    place: int
    context: Context
    task: Callable[[], Any]

    def run(self) -> None:
        """Carry it out, and tell what became of it."""
        if not self.stage.wanted:
            self.stage.ended.put((self.place, None, None))
            return
        try:
            found = self.context.run(self.task)
        except BaseException as error:  # whatever it is, who waits has to hear of it
            self.stage.fail(error)
            self.stage.ended.put((self.place, None, error))
        else:
            self.stage.ended.put((self.place, found, None))


_Queue = SimpleQueue[_Job | None]


class TaskThreads:
    """Threads that run tasks beside each other; the thread that asks runs the first one itself.

    They are daemons, since code of users may never end. It takes turns by a lock, so that it runs in one
    thread at a time.

    Args:
        threads: how many run at once, the one that asks included.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._queue: _Queue = SimpleQueue()
        self._started = 0
        self._lock = threading.RLock()

    def each(self, tasks: Sequence[Callable[[], T]], abort: Callable[[], None]) -> list[T]:
        """Run tasks; what each gives.

        Args:
            tasks: the tasks.
            abort: lets those end that run, as soon as one of them has failed; from any thread.

        Raises:
            BaseException: what the first of them that failed has raised; the others have ended then, or their
                threads are left to them.
        """
        if min(len(tasks), self._threads) < 2:
            with in_turn(self._lock):
                return one_by_one(tasks)
        stage, queue = _Stage(abort), self._queue
        self._start(min(len(tasks), self._threads) - 1)
        for place, task in enumerate(tasks[1:], 1):
            queue.put(_Job(stage, place, copy_context(), task))
        found: dict[int, T] = {}
        try:
            with in_turn(self._lock):
                found[0] = tasks[0]()
            while len(found) < len(tasks):
                try:
                    place, given, error = stage.ended.get(timeout=_LOOK)
                except Empty:
                    check()
                    continue
                if error is not None:
                    found[place] = given
                    raise error
                found[place] = given
        except BaseException as error:
            first = stage.fail(error)
            if not self._ended(stage, len(tasks) - len(found) - (0 not in found)) and self._queue is queue:
                self.set_aside()
            if isinstance(error, CancelledWorkError):
                # It was ended since another one has failed, or is what failed itself.
                raise first from None
            raise
        return [found[place] for place in range(len(tasks))]

    def set_aside(self) -> None:
        """Leave the threads to what they do, with its lock; they end after it, and others do what comes."""
        queue, self._queue = self._queue, SimpleQueue()
        started, self._started = self._started, 0
        self._lock = threading.RLock()
        for _ in range(started):
            queue.put(None)

    @staticmethod
    def _ended(stage: _Stage, left: int) -> bool:
        """Wait for a while until tasks have ended that nobody wants any more; whether they have."""
        for _ in range(_ENDING):
            try:
                while left:
                    stage.ended.get(timeout=_LOOK)
                    left -= 1
                return True
            except Empty:
                continue
            except KeyboardInterrupt:
                break
        return False

    def _start(self, wanted: int) -> None:
        """Start threads until there are so many."""
        while self._started < wanted:
            thread = threading.Thread(target=_work, args=(self._queue, self._lock), daemon=True)
            thread.name = f"headrace tasks {self._started + 1}"
            thread.start()
            self._started += 1


def _work(queue: _Queue, lock: threading.RLock) -> None:
    """Run what comes in a queue, until its end comes."""
    with in_turn(lock):
        while (job := queue.get()) is not None:
            job.run()
            # What it gave is not held until the next one comes.
            del job
