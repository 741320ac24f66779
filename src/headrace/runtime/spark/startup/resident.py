"""A Spark task that stays: epochs run in it one after the other, without a job for each.

Spark takes some 40 ms to make a job, to start its task and to bring back its result, ten times as long as a
small epoch works; and where an epoch is cut into tasks, what goes from stage to stage is encoded, copied
through the JVM and decoded, which is half of the work. The one task of this job connects to a socket of the
driver's, and works on what it is sent there until the driver has no more for it, or for a moment has nothing
to do. The tasks of an epoch are threads in it, and hand over what they yield as it is. Meanwhile it takes one
of Spark's slots.

Both ends are here: the driver sends an epoch's work, the task answers with the chunks that reach the end.
It fails with whatever the work raises, so that the error is the one that a job of the epoch alone would have.
"""

from __future__ import annotations

import pickle
import re
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Final, Never
from weakref import WeakKeyDictionary

from pyspark import RDD, InheritableThread, SparkContext

from headrace.runtime.spark.stages import PackedWork, attempt_of, keep_collections_short
from headrace.runtime.store.temporary import new_door
from headrace.runtime.tasks.at_hand import RunsAtHand
from headrace.runtime.tasks.fence import CancelFlag
from headrace.runtime.tasks.inline import TaskThreads
from headrace.runtime.tasks.messages import Chunk
from headrace.runtime.tasks.stages import run_epoch

IDLE: Final = 1.0
"""Seconds without work after which a task ends, and leaves its slot to others."""

LIFE: Final = 300.0
"""Seconds after which a task ends between two epochs, and another one begins, which takes a tenth of one.

A job of the user's may wait until all slots are free at once."""

_KILLED: Final = "spark.python.worker.killOnIdleTimeout"
_SILENT: Final = "spark.python.worker.idleTimeoutSeconds"
"""Whether Spark kills a worker from which it hears nothing, and after how many seconds."""

_PATIENCE: Final = 5.0
"""Seconds without an answer after which it is asked whether there is still a task."""

_ENDING: Final = 2.0
"""Seconds in which a task that has no more to do should have ended."""

_ON_THIS_MACHINE: Final = re.compile(r"local(\[(\d+|\*)\])?")
"""The masters under which tasks reach a socket of the driver's, and fail for good when they fail once."""


@dataclass(frozen=True)
class ResidentStage:
    """All levels of many epochs.

    Attributes:
        door: the driver's socket.
        idle: seconds without work after which it ends.
        life: seconds after which it ends in any case.
        threads: how many tasks of a level run at once.
    """

    door: str
    idle: float
    life: float
    threads: int

    def chunks(self, tasks: Iterable[int]) -> Iterator[Never]:
        """For an RDD of one task number: nothing, once there is no more to do."""
        graph, at_hand, threads = b"", RunsAtHand(), TaskThreads(self.threads)
        try:
            with Client(self.door, "AF_UNIX") as driver:
                for count, message in enumerate(_messages(driver, self.idle, self.life)):
                    changed, rest = pickle.loads(message)
                    graph = changed or graph
                    # Those of the tasks of other jobs are small numbers.
                    attempt = (attempt_of() + 1 << 32) + count
                    found = _run(PackedWork(graph, rest), attempt, at_hand, threads)
                    with suppress(OSError):
                        driver.send_bytes(found)
                    # They would stay while it waits.
                    del message, rest, found
                    # Garbage that is there then stays, so that this is not done after every epoch.
                    if count & (count + 1) == 0:
                        keep_collections_short()
        finally:
            threads.set_aside()
        yield from ()


def _run(packed: PackedWork, attempt: int, at_hand: RunsAtHand, threads: TaskThreads) -> bytes:
    """Run an epoch; the chunks that reach the end, pickled."""
    flag = CancelFlag()
    each = partial(threads.each, abort=partial(setattr, flag, "all", True))
    found = run_epoch(packed.unpacked(), attempt, at_hand, flag, together=True, each=each)
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


def _messages(driver: Connection, idle: float, life: float) -> Iterator[bytes]:
    """What the driver sends, until it ends, nothing comes, or the time is over."""
    end = time.monotonic() + life
    while True:
        try:
            if not driver.poll(idle):
                return
            message = driver.recv_bytes()
        except (EOFError, OSError, KeyboardInterrupt):
            # Ctrl-C reaches all processes of a terminal; the driver says what becomes of the epochs.
            return
        yield message
        if time.monotonic() > end:
            return


class ResidentTask:
    """The driver's end of a task that stays.

    Args:
        context: where it runs; it must have a slot to spare, see `begun`.
        numbers: an RDD of one task number.
        door: the name of its socket.
        threads: how many tasks of a level it runs at once.

    Only one thread may use it at a time.
    """

    _task: Connection

    def __init__(self, context: SparkContext, numbers: RDD[int], door: Path, threads: int) -> None:
        self._context = context
        self._door = str(door)
        self._error: Exception | None = None
        self._sent: bytes | None = None
        self._job = numbers.mapPartitions(ResidentStage(self._door, IDLE, _life(context), threads).chunks)
        # Made here, where PySpark looks up nothing in the JVM that is known.
        assert self._job._jrdd is not None
        self._thread = InheritableThread(self._run, name="headrace epochs", daemon=True)

    @classmethod
    def begun(cls, context: SparkContext, numbers: RDD[int]) -> ResidentTask | None:
        """A task that stays, once Spark has started it. It runs as many tasks at once as Spark does.

        None where it would take the last slot, or could not reach the driver.

        Args:
            context: where it is to run.
            numbers: an RDD of one task number.
        """
        if not _ON_THIS_MACHINE.fullmatch(context.master):
            return None
        door = new_door("resident")
        if door is None:
            return None
        try:
            with Listener(str(door), "AF_UNIX") as listener:
                task = cls._started(context, numbers, door)
                if task is not None:
                    task._task = listener.accept()
                return task
        except OSError:
            # A file system without sockets, or no descriptor left for one.
            return None
        finally:
            shutil.rmtree(door.parent, ignore_errors=True)

    @classmethod
    def _started(cls, context: SparkContext, numbers: RDD[int], door: Path) -> ResidentTask | None:
        """A task whose job is under way and gives its slot back at its end; None without a slot."""
        slots = _take_slot(context)
        if slots is None:
            return None
        try:
            task = cls(context, numbers, door, slots)
            task._thread.start()
        except BaseException:
            _give_slot_back(context)
            raise
        return task

    def _run(self) -> None:
        try:
            self._job.collect()
        except Exception as error:
            self._error = error
        finally:
            _give_slot_back(self._context)
            # Whoever waits for a task that could not start must not wait for ever.
            with suppress(OSError):
                Client(self._door, "AF_UNIX").close()

    def chunks(self, work: PackedWork) -> list[Chunk] | None:
        """Run all levels of an epoch; the chunks that reach the end.

        Args:
            work: the epoch.

        Returns:
            None if the task had ended before, whatever its end was, or ended without an answer, in most cases
            for want of work.

        Raises:
            Exception: the job has failed, as the epoch's own would have.
        """
        if not self._thread.is_alive():
            # Someone may have cancelled all jobs of Spark while it had nothing to do.
            self._task.close()
            return None
        graph = None if work.graph is self._sent else work.graph
        try:
            self._task.send_bytes(pickle.dumps((graph, work.rest), pickle.HIGHEST_PROTOCOL))
            while not self._task.poll(_PATIENCE):
                # Another process may hold the task's end of the socket, and outlive it.
                if not self._thread.is_alive() and not self._task.poll(0):
                    raise EOFError
            answer = self._task.recv_bytes()
        except (EOFError, OSError):
            self._task.close()
            self._thread.join()
            if self._error is not None:
                raise self._error from None
            return None
        except BaseException:
            # An answer that comes later would be taken for that to the next question.
            self._task.close()
            raise
        self._sent = work.graph
        found: list[Chunk] = pickle.loads(answer)
        return found

    def end(self) -> None:
        """Let the task end; returns when it has, or will not soon."""
        self._task.close()
        self._thread.join(_ENDING)


def _life(context: SparkContext) -> float:
    """The seconds after which a task ends: before Spark would kill its worker, which says nothing."""
    conf = context._jsc.sc().conf()
    silent = conf.getTimeAsSeconds(_SILENT, "0") if conf.getBoolean(_KILLED, False) else 0
    return min(LIFE, silent / 2) if silent else LIFE


_lock = threading.Lock()
_taken: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""How many tasks that stay each Spark has. One slot is left for all other jobs."""


def _take_slot(context: SparkContext) -> int | None:
    """Take a slot for a task that stays; how many there are in all, or None where there is none to spare."""
    with _lock:
        spark = context._jsc.sc()
        slots = int(spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile()))
        taken = _taken.get(context, 0)
        if taken + 1 >= slots:
            return None
        _taken[context] = taken + 1
        return slots


def _give_slot_back(context: SparkContext) -> None:
    with _lock:
        _taken[context] -= 1
