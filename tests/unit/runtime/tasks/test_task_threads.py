"""Tasks in threads: what each gives in their order, and what becomes of the others where one fails."""

from __future__ import annotations

import threading
import time
from typing import Never

import pytest

from headrace.limits import CancelledWorkError, Limit
from headrace.runtime.tasks.inline import TaskThreads


def not_called() -> Never:
    raise AssertionError("no task has failed")


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_all_tasks_run_however_few_threads_there_are(threads: int) -> None:
    pool = TaskThreads(threads)
    tasks = [lambda number=number: 10 * number for number in range(5)]
    assert pool.each(tasks, not_called) == [0, 10, 20, 30, 40]
    pool.set_aside()


def test_where_a_task_fails_the_first_one_does_not_work_to_its_end() -> None:
    """The thread that asks runs the first one itself, and hears of the others only then."""
    given_up = threading.Event()

    def works_on() -> None:
        limit = Limit(60, lambda: "given up" if given_up.is_set() else None)
        while True:
            limit.check()
            time.sleep(0.001)

    def fails() -> None:
        raise OSError("no room")

    pool, begun = TaskThreads(3), time.monotonic()
    with pytest.raises(OSError, match="no room"):
        pool.each([works_on, fails, lambda: None], given_up.set)
    assert time.monotonic() - begun < 50
    pool.set_aside()


def test_the_first_task_that_is_ended_by_its_limit_says_so() -> None:
    def ends() -> None:
        raise CancelledWorkError(Limit(), "too long")

    pool, aborted = TaskThreads(2), threading.Event()
    with pytest.raises(CancelledWorkError, match="too long"):
        pool.each([ends, lambda: None], aborted.set)
    assert aborted.is_set()
    pool.set_aside()
