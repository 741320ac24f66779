"""Subscriptions that tasks of asyncio and threads wait for, and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.views.subscription import Subscription

LIMIT = 60
"""Seconds after which something hangs."""


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as made:
        made.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        made.query("SELECT v FROM s [RANGE 5]", name="q")
        made.start()
        yield made


def waiting() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "headrace subscription"]


def test_changes_are_waited_for_by_a_task(db: hr.Database) -> None:
    async def read() -> list[tuple[int, int]]:
        seen = []
        async with asyncio.timeout(LIMIT):
            async for change in db["q"].subscribe():
                seen.append((change.epoch, change.heartbeat))
                if len(seen) < 3:
                    await asyncio.to_thread(db.push, "s", {"v": 1, "ts": 10 * len(seen)})
                else:
                    break
        return seen

    db.push("s", {"v": 1, "ts": 1})
    assert asyncio.run(read()) == [(1, 1), (2, 10), (3, 20)]


def test_a_task_reads_to_the_end_of_the_run(db: hr.Database) -> None:
    async def read() -> pa.Table:
        async with asyncio.timeout(LIMIT):
            return pa.concat_tables([rows async for rows in db["q"].follow()])

    db.push("s", [{"v": 1, "ts": 1}, {"v": 2, "ts": 9}])
    db.stop()
    assert asyncio.run(read()).to_pylist() == [{"v": 1, "valid_from": 1, "valid_to": 6}]


@pytest.mark.parametrize("view", ["subscribe", "follow"])
def test_a_cancelled_task_leaves_nothing_behind(db: hr.Database, view: str) -> None:
    """The thread that waits for it ends, and so does the subscription."""
    subscription = getattr(db["q"], view)()

    async def cancel() -> None:
        task = asyncio.create_task(anext(subscription))
        while not waiting():
            await asyncio.sleep(0)
        (thread,) = waiting()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(thread.join, LIMIT)
        assert not thread.is_alive()
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)

    asyncio.run(cancel())
    assert db.running
    db.push("s", {"v": 1, "ts": 1})
    assert next(db["q"].subscribe()).epoch == 1


def test_a_thread_that_waits_is_let_go(db: hr.Database) -> None:
    seen: list[pa.Table] = []
    with db["q"].follow() as rows:
        thread = threading.Thread(target=lambda: seen.extend(rows))
        thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert seen == []
    assert list(rows) == []


def test_an_error_reaches_the_task() -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise hr.UserError("broken")

    async def read(subscription: Subscription[int]) -> None:
        assert await anext(subscription) == 1
        with pytest.raises(hr.UserError, match="broken"):
            await anext(subscription)
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)

    asyncio.run(read(Subscription(fail(), lambda: None)))
