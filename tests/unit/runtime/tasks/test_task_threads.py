"""Tasks in threads: what each gives in their order, and what becomes of the others where one fails."""

from __future__ import annotations

import threading
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
    given_up, reasons = threading.Event(), list[str]()

    def works_on() -> None:
        limit = Limit(10, lambda: "given up" if given_up.is_set() else None)
        try:
            while True:
                limit.check()
                given_up.wait(0.001)
        except CancelledWorkError as error:
            reasons.append(error.reason)
            raise

    def fails() -> None:
        raise OSError("no room")

    pool = TaskThreads(3)
    with pytest.raises(OSError, match="no room"):
        pool.each([works_on, fails, lambda: None], given_up.set)
    assert reasons == ["given up"]
    pool.set_aside()


def test_the_first_task_that_is_ended_by_its_limit_says_so() -> None:
    def ends() -> None:
        raise CancelledWorkError(Limit(), "too long")

    pool, aborted = TaskThreads(2), threading.Event()
    with pytest.raises(CancelledWorkError, match="too long"):
        pool.each([ends, lambda: None], aborted.set)
    assert aborted.is_set()
    pool.set_aside()
