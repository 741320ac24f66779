"""The hand-over of Spark's batches, with a stand-in for the streaming query that calls as Spark would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from headrace.errors import ExecutionError, RunnerLostError, StoreError
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.spark.feed import RESTARTS, SparkFeed

PATIENCE = 10


class Frame:
    """A streaming frame whose query does what the test says; it is its own writer and query."""

    def __init__(self) -> None:
        self.starts = 0
        self.isActive = False
        self.checkpoint = ""
        self.columns: tuple[str, ...] = ()
        self.settings: dict[str, str] = {}
        self.started_with: dict[str, str] = {}

    @property
    def sparkSession(self) -> Frame:
        return self

    @property
    def conf(self) -> Frame:
        return self

    def get(self, name: str, default: None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def unset(self, name: str) -> None:
        del self.settings[name]

    def select(self, *columns: str) -> Frame:
        self.columns = columns
        return self

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
        self.started_with = dict(self.settings)
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
        self._call: Callable[[], None] = lambda: frame.hand_over(f"rows {number}", number)
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
    return started(frame, came, tmp_path / "checkpoint", ahead=False)


@pytest.fixture
def ahead(frame: Frame, came: threading.Semaphore, tmp_path: Path) -> SparkFeed:
    return started(frame, came, tmp_path / "checkpoint", ahead=True)


def started(frame: Frame, came: threading.Semaphore, checkpoint: Path, *, ahead: bool) -> SparkFeed:
    """A feed of which three batches are committed."""
    log(checkpoint, offsets=4, commits=3)
    made = SparkFeed("s", frame, checkpoint, came.release, ahead=ahead)
    made.start(point(3), ("ts", "a `b`"))
    return made


def log(checkpoint: Path, offsets: int, commits: int) -> None:
    """Spark's log after so many batches were planned, and so many done."""
    for folder, count in (("offsets", offsets), ("commits", commits)):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (checkpoint / folder / str(number)).write_text("v1")
            (checkpoint / folder / f".{number}.crc").write_text("crc")


def logged(checkpoint: Path) -> tuple[list[str], list[str]]:
    """The offsets and the commits in Spark's log."""
    found = [sorted(path.name for path in (checkpoint / name).glob("*")) for name in ("offsets", "commits")]
    return found[0], found[1]


def point(position: int) -> StreamPoint:
    return StreamPoint(position)


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
    assert feed.check() is None
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


def test_a_jvm_that_is_gone_is_named_and_stopping_is_quiet(feed: SparkFeed, frame: Frame) -> None:
    class Dead:
        @property
        def isActive(self) -> bool:
            raise ConnectionRefusedError

        def stop(self) -> None:
            raise Py4JNetworkError("Answer from Java side is empty")

    feed._query = Dead()
    with pytest.raises(RunnerLostError, match="Spark's JVM ended while s was read"):
        feed.check()
    feed.stop()


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
    for ahead in (False, True):
        feed = SparkFeed("s", frame, tmp_path / "checkpoint", lambda: None, ahead=ahead)
        with pytest.raises(StoreError, match="3 batches of s are committed, and Spark's log of them"):
            feed.start(point(3), ("ts",))
    assert frame.starts == 0
    feed.start(point(0), ("ts",))
    assert frame.starts == 1


def test_a_log_that_is_refused_is_left_as_it_is(frame: Frame, tmp_path: Path) -> None:
    """As when an old copy of the records stands beside a log of which Spark has removed the beginning."""
    checkpoint = tmp_path / "checkpoint"
    log(checkpoint, offsets=9, commits=8)
    for number in range(6):
        (checkpoint / "offsets" / str(number)).unlink()
    before = logged(checkpoint)
    feed = SparkFeed("s", frame, checkpoint, lambda: None, ahead=True)
    with pytest.raises(StoreError, match="3 batches of s are committed, and Spark's log of them"):
        feed.start(point(3), ("ts",))
    assert logged(checkpoint) == before


def test_the_first_batch_is_not_left_out_either(frame: Frame, tmp_path: Path) -> None:
    """As when Spark was ahead before the first commit, and may not read ahead any more."""
    feed = SparkFeed("s", frame, tmp_path / "checkpoint", lambda: None, ahead=False)
    feed.start(point(0), ("ts",))
    assert "goes on with batch 1 of s, and 0 are committed" in str(Batch(frame, 1).ended())
    assert not feed.ready()


def test_a_batch_that_is_committed_makes_up_for_failures(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore, tmp_path: Path
) -> None:
    log(tmp_path / "checkpoint", offsets=20, commits=0)
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


def test_where_spark_may_read_ahead_a_batch_returns_when_it_is_taken(
    ahead: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    first = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    assert ahead.take(point(3)) is not None
    assert first.ended() is None
    second = Batch(frame, 4)
    assert came.acquire(timeout=PATIENCE)
    assert not ahead.ready(), "one epoch at a time"
    assert ahead.take(point(3)) is None
    ahead.settle(None)
    assert ahead.ready()
    assert second.is_alive(), "Spark is one batch ahead, no more"
    intake = ahead.take(point(4))
    assert intake is not None
    assert (intake.position, intake.frame) == (5, "rows 4")
    assert second.ended() is None
    ahead.settle(None)
    third = Batch(frame, 5)
    assert came.acquire(timeout=PATIENCE)
    ahead.take(point(5))
    assert third.ended() is None


@pytest.mark.parametrize("waiting", [True, False])
def test_an_epoch_that_fails_takes_the_batch_ahead_of_it_back(
    ahead: SparkFeed, frame: Frame, came: threading.Semaphore, tmp_path: Path, waiting: bool
) -> None:
    """Whether the next batch waits already, or comes after the failure, or never."""
    checkpoint = tmp_path / "checkpoint"
    Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    ahead.take(point(3))
    log(checkpoint, offsets=5, commits=4)
    if waiting:
        following = Batch(frame, 4)
        assert came.acquire(timeout=PATIENCE)
    ahead.settle(ExecutionError("no room"))
    if not waiting:
        following = Batch(frame, 4)
    assert "batch 4 of s was not committed: no room" in str(following.ended())
    assert not ahead.ready()
    assert ahead.check() is None
    assert frame.starts == 2, "also where Spark knows nothing of the failure"
    assert logged(checkpoint) == (names(4), names(3)), "Spark begins with batch 3 again"
    Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    assert ahead.take(point(3)) is not None


def test_what_was_not_committed_is_taken_out_of_sparks_log(frame: Frame, tmp_path: Path) -> None:
    """As after a crash: Spark counts batch 4 as done, has planned batch 5, and batch 3 is in no commit."""
    checkpoint = tmp_path / "checkpoint"
    log(checkpoint, offsets=6, commits=5)
    feed = SparkFeed("s", frame, checkpoint, lambda: None, ahead=True)
    feed.start(point(3), ("ts",))
    assert logged(checkpoint) == (names(4), names(3))
    feed.start(point(0), ("ts",))
    assert logged(checkpoint) == (names(1), [])


def test_a_log_is_left_alone_where_spark_may_not_read_ahead(frame: Frame, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    log(checkpoint, offsets=6, commits=5)
    SparkFeed("s", frame, checkpoint, lambda: None, ahead=False).start(point(3), ("ts",))
    assert logged(checkpoint) == (names(6), names(5))


def names(count: int) -> list[str]:
    return sorted(name for number in range(count) for name in (f"{number}", f".{number}.crc"))


def test_only_the_columns_that_are_read_are_asked_for(
    feed: SparkFeed, frame: Frame, came: threading.Semaphore
) -> None:
    assert frame.columns == ("`ts`", "`a ``b```")
    feed.read(("ts",))
    assert frame.starts == 1, "it hands over more than is needed"
    batch = Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    feed.read(("c", "ts"))
    assert "not committed: other columns are read" in str(batch.ended())
    assert not feed.ready()
    assert feed.check() is None
    assert (frame.starts, frame.columns) == (2, ("`c`", "`ts`"))
    Batch(frame, 3)
    assert came.acquire(timeout=PATIENCE)
    assert feed.take(point(3)) is not None


def test_a_query_is_started_with_a_fast_log_unless_the_user_has_chosen_one(
    feed: SparkFeed, frame: Frame
) -> None:
    (name,) = frame.started_with
    assert frame.started_with[name].endswith(".FileSystemBasedCheckpointFileManager")
    assert frame.settings == {}, "the session is as it was"
    frame.settings[name] = "mine"
    frame.isActive = False
    assert feed.check() is None
    assert frame.started_with == frame.settings == {name: "mine"}


@pytest.mark.parametrize("link", ["checkpoint", "checkpoint/offsets"])
def test_a_log_that_leads_out_of_the_store_is_refused(frame: Frame, tmp_path: Path, link: str) -> None:
    """Spark would write there, and taking back what was not committed would remove what is there."""
    outside = tmp_path / "outside"
    (outside / "offsets").mkdir(parents=True)
    for number in range(5):
        (outside / str(number)).write_text("precious")
        (outside / "offsets" / str(number)).write_text("precious")
    (tmp_path / "store/checkpoint").mkdir(parents=True)
    if link == "checkpoint":
        (tmp_path / "store/checkpoint").rmdir()
    (tmp_path / "store" / link).symlink_to(outside)
    feed = SparkFeed("s", frame, tmp_path / "store/checkpoint", lambda: None, ahead=True)
    with pytest.raises(StoreError, match="is a symbolic link"):
        feed.start(StreamPoint(1), ("k",))
    assert frame.starts == 0
    assert len(list(outside.rglob("*"))) == 11
