"""The hand-over of Spark's batches, with a stand-in for the streaming query that calls as Spark would."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import ExecutionError, StoreError
from headrace.runtime.commits import StreamPoint
from headrace.runtime.feeds import RESTARTS, SparkFeed
from headrace.time import BEGINNING

PATIENCE = 10


class Frame:
    """A streaming frame whose query does what the test says; it is its own writer and query."""

    def __init__(self) -> None:
        self.starts = 0
        self.isActive = False
        self.checkpoint = ""

    @property
    def writeStream(self) -> Frame:
        return self

    def foreachBatch(self, hand_over: Any) -> Frame:
        self.hand_over = hand_over
        return self

    def option(self, name: str, value: str) -> Frame:
        assert name == "checkpointLocation"
        self.checkpoint = value
        return self

    def start(self) -> Frame:
        self.starts += 1
        self.isActive = True
        return self

    reason = "the broker is gone\nand so on"

    def exception(self) -> str:
        return self.reason

    def stop(self) -> None:
        self.isActive = False


class Batch(threading.Thread):
    """Spark's call with a batch, which blocks."""

    def __init__(self, frame: Frame, number: int) -> None:
        super().__init__(daemon=True)
        self._call = lambda: frame.hand_over(f"rows {number}", number)
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.error = error

    def ended(self) -> BaseException | None:
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.error


@pytest.fixture
def came() -> threading.Semaphore:
    return threading.Semaphore(0)


@pytest.fixture
def frame() -> Frame:
    return Frame()


@pytest.fixture
def feed(frame: Frame, came: threading.Semaphore, tmp_path: Path) -> SparkFeed:
    (tmp_path / "checkpoint/offsets").mkdir(parents=True)
    made = SparkFeed("s", frame, tmp_path / "checkpoint", came.release)
    made.start(point(3))
    return made


def point(position: int) -> StreamPoint:
    return StreamPoint(position, BEGINNING)


def test_a_batch_returns_when_its_epoch_is_committed(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    assert frame.checkpoint.endswith("checkpoint")
    assert not feed.ready()
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    assert feed.ready()
    intake = feed.take(point(3))
    assert intake is not None
    assert (intake.position, intake.frame) == (4, "rows 3")
    assert feed.take(point(3)) is None, "it is taken once"
    assert not feed.ready()
    assert batch.is_alive()
    feed.settle(None)
    assert batch.ended() is None


def test_a_batch_that_is_committed_already_returns_at_once(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    assert Batch(frame, 2).ended() is None
    assert not came.acquire(blocking=False)


def test_a_batch_whose_epoch_failed_fails_and_comes_again(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    feed.take(point(3))
    feed.settle(StoreError("the disk is full"))
    error = batch.ended()
    assert isinstance(error, ExecutionError)
    assert error.message == "batch 3 of s was not committed: the disk is full"
    again = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    assert feed.take(point(3)) is not None
    feed.settle(None)
    assert again.ended() is None


def test_a_batch_that_waits_when_the_run_stops_is_not_committed(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    feed.stop()
    assert "batch 3 of s was not committed: stopped" in str(batch.ended())
    assert not frame.isActive
    assert feed.check() is None, "what was stopped is not started again"


def test_a_commit_of_others_does_not_let_a_waiting_batch_go(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    feed.settle(None)
    assert feed.ready()
    assert batch.is_alive()
    feed.take(point(3))
    feed.settle(None)
    assert batch.ended() is None


def test_a_query_that_fails_is_started_again_and_given_up_in_the_end(feed: SparkFeed, frame: Frame) -> None:
    for number in range(RESTARTS):
        frame.isActive = False
        assert feed.check() is None
        assert frame.starts == number + 2
    frame.isActive = False
    assert feed.check() == "the broker is gone"
    assert frame.starts == RESTARTS + 1


def test_the_error_of_a_python_source_is_told(feed: SparkFeed, frame: Frame) -> None:
    frame.reason = (
        "reading failed: Traceback (most recent call last):\n"
        '  File "source.py", line 3, in read\n    raise ValueError("no device")\n'
        "ValueError: no device\n\n\tat org.apache.spark"
    )
    for _ in range(RESTARTS + 1):
        frame.isActive = False
        told = feed.check()
    assert told == "reading failed: ValueError: no device"


def test_a_stream_that_would_skip_batches_is_given_up(feed: SparkFeed, frame: Frame) -> None:
    """As when the newest records of the store were removed, and Spark's log was not."""
    batch = Batch(frame, 5)
    assert "goes on with batch 5 of s, and 3 are committed" in str(batch.ended())
    assert not feed.ready()
    frame.isActive = False
    reason = feed.check()
    assert reason is not None
    assert "the store has lost its last commits" in reason
    assert frame.starts == 1, "trying again would not help"


def test_a_stream_without_its_log_is_refused(frame: Frame, tmp_path: Path) -> None:
    feed = SparkFeed("s", frame, tmp_path / "checkpoint", lambda: None)
    with pytest.raises(StoreError, match="3 batches of s are committed, and Spark's log of them is not in"):
        feed.start(point(3))
    assert frame.starts == 0
    feed.start(point(0))
    assert frame.starts == 1


def test_a_batch_that_is_committed_makes_up_for_failures(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    for number in range(3, 3 + 2 * RESTARTS):
        frame.isActive = False
        assert feed.check() is None
        batch = Batch(frame, number)
        assert came.acquire(timeout=PATIENCE)
        feed.take(point(number))
        feed.settle(None)
        assert batch.ended() is None


def test_a_query_that_is_started_again_knows_what_is_committed(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    feed.take(point(3))
    feed.settle(None)
    assert batch.ended() is None
    frame.isActive = False
    feed.check()
    assert Batch(frame, 3).ended() is None, "it comes again, since Spark's log was behind"
    assert not came.acquire(blocking=False)
