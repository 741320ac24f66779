"""Streams of iterators and of functions that are called again and again."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
import warm_processes
from headrace.runtime.intake.pull_feed import PullFeed
from headrace.runtime.intake.pulling import IteratorPull
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.schema import BIGINT, Field, Schema
from waiting import wait_until

COLUMNS = "v BIGINT, ts BIGINT"


def row(v: int) -> dict[str, int]:
    return {"v": v, "ts": v}


def values(query: hr.Query) -> list[int]:
    return sorted(one["v"] for one in query.changes().to_pylist())


@pytest.mark.parametrize(
    "rows",
    [
        [row(1), row(2), row(9)],
        [[row(1), row(2)], [], [row(9)]],
        [pa.table({"v": [1, 2], "ts": [1, 2]}), pa.record_batch({"v": [9], "ts": [9]})],
        [(row(1), 5), (row(2), 6), ([row(9)], 7)],
    ],
)
def test_an_iterator_is_read_to_its_end_which_makes_everything_final(rows: list[Any]) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", iter(rows), timestamp="ts")
        counts = db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]", name="counts")
        db.start()
        wait_until(lambda: db.status.streams[0].rows, 3)
        wait_until(lambda: counts.history().num_rows, 4)
        assert [(one["n"], one["valid_from"], one["valid_to"]) for one in counts.history().to_pylist()] == [
            (1, 1, 2), (2, 2, 6), (1, 6, 7), (1, 9, 14)
        ]  # fmt: skip


def test_columns_of_an_iterator_are_those_of_its_first_rows_unless_they_are_given() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("one", iter([{"a": "x", "ts": 1}]), timestamp="ts")
        db.stream("other", iter([]), timestamp="ts", columns=pa.schema({"ts": pa.int64()}))
        for name, columns in (("one", ["a", "STRING", "ts"]), ("other", ["ts", "BIGINT"])):
            (found,) = db.execute(f"DESCRIBE STREAM {name}")
            assert all(column in str(found) for column in columns), found
        with pytest.raises(hr.UserError, match="columns are 'ts BOGUS'"):
            db.stream("odd", iter([]), timestamp="ts", columns="ts BOGUS")
        with pytest.raises(hr.UserError, match="the iterator of none has no rows"):
            db.stream("none", iter([]), timestamp="ts")
        with pytest.raises(hr.UserError, match="are not known before its function returns rows"):
            db.stream("function", lambda: None, timestamp="ts")
        with pytest.raises(hr.UserError, match="a table has its columns"):
            db.stream("table", pa.table({"ts": [1]}), timestamp="ts", columns=COLUMNS)


def test_a_function_is_called_again_and_again() -> None:
    pushed = [[row(1)], None, [row(2), row(3)], [], [row(4)]]
    left = iter(pushed)
    with hr.connect(runner="inline") as db:
        db.stream("s", lambda: next(left, None), timestamp="ts", columns=COLUMNS, every="1 millisecond")
        query = db.query("SELECT v FROM s", name="q")
        db.start()
        wait_until(lambda: values(query), [1, 2, 3])
        assert db.status.streams[0].rows == 4


KILLED = """
import itertools, sys, time, headrace as hr
folder, log = sys.argv[1:]
def rows(after):
    begin = 0 if after is None else after + 1
    time.sleep(0.01)
    return [{"v": v, "ts": v} for v in range(begin, begin + 3)], begin + 2
def committed(progress):
    print("committed", file=open(log, "a"), flush=True)
with hr.connect(runner="inline", storage=folder) as db:
    db.stream("s", rows, timestamp="ts", columns="v BIGINT, ts BIGINT")
    db.query("SELECT v FROM s", name="q")
    db.start(committed)
    print(flush=True)
    time.sleep(60)
"""


def committed(folder: Path) -> int:
    """How many epochs have been committed so far."""
    log = folder / "log"
    return log.read_text().count("committed") if log.exists() else 0


@pytest.mark.slow("kills processes")
def test_after_kills_numbered_rows_have_counted_once(tmp_path: Path) -> None:
    for _ in range(3):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "s"), str(tmp_path / "log")]
        with warm_processes.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            before = committed(tmp_path)
            wait_until(lambda before=before: committed(tmp_path) > before + 8, True)  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
    found = sorted(one["v"] for one in hr.open(tmp_path / "s")["q"].changes().to_pylist())
    assert found == list(range(len(found)))
    assert len(found) > 20


def test_a_function_that_fails_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    fails, calls = threading.Event(), itertools.count(1)
    fails.set()

    def rows() -> dict[str, int]:
        v = next(calls)
        if fails.is_set():
            raise OSError("no route")
        return row(v)

    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts", columns=COLUMNS, every="1 millisecond")
        query = db.query("SELECT v FROM s", name="q")
        db.start()
        wait_until(lambda: "no route" in caplog.text, True)
        wait_until(lambda: any("cannot be read for now" in one.message for one in db.why("q").findings), True)
        fails.clear()
        wait_until(lambda: len(values(query)) > 3, True)
        assert db.problems == {}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"v": "x", "ts": 2}], "row 1: v is"),
        ([[1, 2]], "is not a dictionary"),
        ([(row(2), "x")], "return \\(rows, number\\)"),
        (None, "no more disk"),
    ],
)
def test_an_iterator_that_fails_ends_the_stream_after_what_came_before(
    rows: list[Any] | None, reason: str
) -> None:
    def given() -> Iterator[Any]:
        yield row(1)
        yield row(2)
        if rows is None:
            raise OSError("no more disk")
        yield from rows

    with hr.connect(runner="inline") as db:
        db.stream("s", given(), timestamp="ts")
        query = db.query("SELECT v FROM s", name="q")
        db.start()
        wait_until(lambda: "s" in db.problems, True)
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(db.problems["s"])
        assert values(query) == [1]


def test_an_iterator_is_not_read_far_ahead() -> None:
    pulled = 0

    def rows() -> Iterator[dict[str, int]]:
        nonlocal pulled
        while True:
            pulled += 1
            yield {"v": pulled}

    feed = PullFeed(
        "s",
        IteratorPull("s", ComputedColumns(Schema((Field("v", BIGINT),))), rows()),
        Path("unused"),
        10,
        1_000,
        lambda: None,
    )
    feed.start(StreamPoint(0), ["v"])
    wait_until(lambda: pulled, 20)
    time.sleep(0.05)
    feed.stop()
    assert pulled == 20


def test_a_stream_whose_iterator_waits_may_be_idle() -> None:
    more = threading.Event()

    def rows() -> Iterator[dict[str, int]]:
        yield row(1)
        more.wait(30)

    with hr.connect(runner="inline") as db:
        db.stream("waiting", rows(), timestamp="ts")
        db.execute("ALTER STREAM waiting SET (IDLE AFTER 10 MILLISECONDS)")
        db.stream("calling", lambda: None, timestamp="ts", columns=COLUMNS, every="1 millisecond")
        db.execute("ALTER STREAM calling SET (IDLE AFTER 10 MILLISECONDS)")
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        both = "SELECT v FROM s UNION ALL SELECT v FROM waiting UNION ALL SELECT v FROM calling"
        query = db.query(both, name="q")
        db.start()
        db.push("s", [row(v) for v in (2, 3, 4)])
        wait_until(lambda: values(query), [1, 2, 3])
        more.set()


def test_rows_that_an_epoch_could_not_read_are_taken_again(tmp_path: Path) -> None:
    feed = PullFeed(
        "s", IteratorPull("s", ComputedColumns(Schema((Field("v", BIGINT),))), iter([{"v": 1}, {"v": 2}])),
        tmp_path / "rows", 10, 1_000, lambda: None,
    )  # fmt: skip
    feed.start(StreamPoint(0), ["v"])
    wait_until(feed.come, 2)
    for attempt in range(3):
        taken = feed.take(StreamPoint(attempt))
        assert taken is not None
        assert taken.source is not None
        (read,) = taken.source.read(0, taken.end, ("v",))
        assert read.rows.to_pylist() == [{"v": 1}, {"v": 2}]
        assert feed.check() is None
        feed.settle(OSError("no room"))
    assert feed.take(StreamPoint(3)) is None
    assert feed.check() == "no room"
    feed.stop()
