"""A stream of Spark's that is silent: when it has been read to its end, and what goes on without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
import silent_streams
from headrace.runtime.driver.endless import live
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.spark.feed import SparkFeed
from silent_streams import IDLE, QUERY, STREAMS
from watched_clock import Clock

pytestmark = pytest.mark.spark

PATIENCE = 120


def write(folder: Path, number: int, at: int) -> None:
    """A file with one row, there at once."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"v": [1], "ts": [at]}), folder / f".{number}")
    (folder / f".{number}").rename(folder / f"{number}.parquet")


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Iterator[SparkFeed]:
    """Of two files, each a batch."""
    write(tmp_path / "files", 0, 0)
    write(tmp_path / "files", 1, 1)
    reader = spark.readStream.schema("v BIGINT, ts BIGINT").option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(tmp_path / "files"))
    found = SparkFeed("s", frame, tmp_path / "log", lambda: None, ahead=True)
    yield found
    found.stop()


def take(feed: SparkFeed, position: int) -> int:
    """Take what waits, and commit it; the position after it."""
    intake = feed.take(StreamPoint(position))
    assert not feed.caught_up(), "a batch is in an epoch, or none has been looked for"
    if intake is None:
        return position
    feed.settle(None)
    return position + 1


def test_a_file_stream_with_unread_files_is_not_caught_up(feed: SparkFeed, tmp_path: Path) -> None:
    assert not feed.caught_up(), "it has not been started"
    feed.start(StreamPoint(0), ("v", "ts"))
    read, until = 0, time.monotonic() + PATIENCE
    for there in (2, 3):
        while read < there:
            assert time.monotonic() < until
            read = take(feed, read)
        while not feed.caught_up():
            assert time.monotonic() < until
        assert sum(feed.caught_up() for _ in range(40)) > 36, "though Spark looks again and again"
        write(tmp_path / "files", there, there)
        while not feed.ready():
            assert time.monotonic() < until
    feed.stop()
    assert not feed.caught_up(), "it has ended"


@pytest.mark.parametrize(
    ("message", "available", "active", "expected"),
    [
        ("Initializing sources", False, False, False),
        ("Processing new data", True, True, False),
        ("Waiting for next trigger", True, False, False),
        ("Waiting for next trigger", False, True, False),
        ("Getting offsets from FileStreamSource", False, True, False),
        ("Waiting for data to arrive", False, False, True),
        ("Waiting for data to arrive", False, True, True),
        ("Stopped", False, False, False),
        ("Terminated with exception: the device is gone", False, False, False),
    ],
)
def test_what_the_status_of_a_query_says(
    tmp_path: Path, message: str, available: bool, active: bool, expected: bool
) -> None:
    """As Spark 4 has it; after a batch the next look begins with the fourth of these."""
    feed = SparkFeed("s", None, tmp_path, lambda: None, ahead=True)
    status = {"message": message, "isDataAvailable": available, "isTriggerActive": active}
    feed._query = SimpleNamespace(status=status)
    assert feed.caught_up() is expected


def test_output_appears_though_a_stream_of_spark_is_silent(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LOOK", 0.005)
    clock = Clock()
    write(tmp_path / "silent", 0, 0)
    with hr.connect(spark=spark, clock=clock) as db:
        db.execute(STREAMS)
        frame = spark.readStream.schema("v BIGINT, ts BIGINT").parquet(str(tmp_path / "silent"))
        db.stream("silent", frame, timestamp="ts")
        db.execute(
            f"ALTER STREAM silent IDLE AFTER {IDLE} SECONDS; {QUERY.format(clause='HEARTBEATS COMMON')}"
        )
        silent_streams.begin(db)
        silent_streams.push(db, 50)
        until = time.monotonic() + PATIENCE
        while db["joined"].heartbeat != 0:
            assert time.monotonic() < until, "the file is not read"
        seconds = 0
        while db["joined"].heartbeat == 0:
            assert time.monotonic() < until
            clock.let_pass(1)
            seconds += 1
        assert IDLE <= seconds <= IDLE + 5
        silent_streams.push(db, 100)
        assert db["joined"].changes()["valid_from"].to_pylist() == [0, 50]
        assert not db.problems
        assert db.stop().late == 0
