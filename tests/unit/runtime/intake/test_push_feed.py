"""Pushed rows: what an epoch takes, when a producer hears of it, what is refused."""

from __future__ import annotations

import json
import pickle
import shutil
import stat
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import BusyError, StoreError, UserError
from headrace.language.statements.overflow import Overflow
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema

START = StreamPoint(0)


@pytest.fixture
def feed(tmp_path: Path) -> PushFeed:
    schema = Schema((Field("k", STRING), Field("ts", BIGINT)))
    return PushFeed("s", LiveStream(schema, "ts"), tmp_path / "s", 10, 2**20, Overflow.BLOCK, lambda: None)


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"k": "a", "ts": first + number} for number in range(count)]


def taken(feed: PushFeed, point: StreamPoint = START) -> list[int]:
    """The times of the rows that an epoch takes."""
    intake = feed.take(point)
    if intake is None:
        return []
    assert intake.source is not None
    reads = intake.source.read(intake.start, intake.end, ("ts",))
    return [time for read in reads for time in read.rows.column(0).to_pylist()]


def test_pushed_times_have_microseconds(tmp_path: Path) -> None:
    stream = LiveStream(Schema((Field("ts", TIMESTAMP),)), "ts")
    feed = PushFeed("s", stream, tmp_path, 10, 2**20, Overflow.BLOCK, lambda: None)
    for unit, wrong in (("ns", True), ("us", False), ("s", False)):
        table = pa.table({"ts": pa.array([1_001], pa.timestamp(unit))})
        if wrong:
            with pytest.raises(UserError, match="not fit s: ts has nanoseconds"):
                feed.put(table, None, None)
        else:
            feed.put(table, None, None)
    with pytest.raises(UserError, match="not fit s: ts is beyond the range of TIMESTAMP"):
        feed.put(pa.table({"ts": pa.array([2**62], pa.timestamp("s"))}), None, None)


def test_a_push_is_acknowledged_when_its_epoch_is_committed(feed: PushFeed) -> None:
    done = feed.put(rows(3), None, None)
    assert feed.ready()
    assert taken(feed) == [0, 1, 2]
    assert not done.done()
    feed.settle(None)
    assert done.result(0) is True
    assert not feed.ready()
    assert taken(feed) == []


def test_a_push_hears_of_an_epoch_that_failed(feed: PushFeed) -> None:
    done = feed.put(rows(3), None, None)
    taken(feed)
    feed.settle(StoreError("the disk is full"))
    with pytest.raises(StoreError, match="the disk is full"):
        done.result(0)


def test_an_epoch_takes_whole_pushes_up_to_its_limit_and_at_least_one(feed: PushFeed) -> None:
    for first in (0, 100, 200):
        feed.put(rows(6, first), None, None)
    feed.put(rows(25, 300), None, None)
    sizes = []
    while feed.ready():
        sizes.append(len(taken(feed)))
        feed.settle(None)
    assert sizes == [6, 6, 6, 25]


def test_an_epoch_takes_pushes_up_to_its_bytes(feed: PushFeed) -> None:
    sizes = (300_000, 600_000, 300_000, 5_000_000, 1)
    for time, size in enumerate(sizes[:3]):
        feed.put({"k": "x" * size, "ts": time}, None, None)
    feed.put({"k": "x" * sizes[3], "ts": 3}, None, None)
    waiting = threading.Thread(target=feed.put, args=({"k": "x", "ts": 4}, None, None))
    waiting.start()
    found: list[list[int]] = []
    while sum(map(len, found)) < len(sizes):
        found += [(epoch := taken(feed))]
        feed.settle(None)
        if epoch == [3]:
            waiting.join()
    assert found[:3] == [[0, 1], [2], [3]]


def test_a_repeat_of_a_committed_push_is_acknowledged_at_once(feed: PushFeed) -> None:
    point = StreamPoint(5, producers={"me": 7})
    repeat, other, new = (
        feed.put(rows(1, at), *who) for at, who in enumerate([("me", 7), ("you", 7), ("me", 8)])
    )
    intake = feed.take(point)
    assert intake is not None
    assert (intake.position, intake.producers) == (6, {"me": 8, "you": 7})
    assert repeat.result(0) is False
    feed.settle(None)
    assert other.result(0) is new.result(0) is True


def test_a_repeat_is_not_acknowledged_before_the_push_it_repeats(feed: PushFeed) -> None:
    """Else its producer would forget rows that no commit has."""
    first, repeat = (feed.put(rows(2), "me", 1) for _ in range(2))
    assert taken(feed) == [0, 1]
    assert not repeat.done()
    feed.settle(None)
    assert (first.result(0), repeat.result(0)) == (True, False)


def test_a_repeat_hears_of_the_failure_of_the_push_it_repeats(feed: PushFeed) -> None:
    _, repeat = (feed.put(rows(2), "me", 1) for _ in range(2))
    taken(feed)
    feed.settle(StoreError("the disk is full"))
    with pytest.raises(StoreError):
        repeat.result(0)


def test_an_epoch_of_repeats_alone_takes_nothing(feed: PushFeed) -> None:
    done = feed.put(rows(2), "me", 1)
    assert taken(feed, StreamPoint(1, producers={"me": 1})) == []
    assert done.result(0) is False


def test_a_push_cannot_be_cancelled(feed: PushFeed) -> None:
    done = feed.put(rows(1), None, None)
    assert not done.cancel()
    taken(feed)
    feed.settle(None)
    assert done.result(0) is True


def test_producers_wait_while_four_epochs_of_rows_wait(feed: PushFeed) -> None:
    for first in range(0, 40, 10):
        feed.put(rows(10, first), None, None)
    through = threading.Event()

    def push_more() -> None:
        feed.put(rows(1, 40), None, None)
        through.set()

    producer = threading.Thread(target=push_more)
    producer.start()
    assert not through.wait(0.05), "the fifth push waits"
    assert len(taken(feed)) == 10
    assert through.wait(10), "there is room again"
    producer.join(10)
    feed.settle(None)


def test_a_producer_that_waits_hears_of_the_end(feed: PushFeed) -> None:
    waiting = [feed.put(rows(10, first), None, None) for first in range(0, 40, 10)]
    refused: list[BaseException] = []

    def push_more() -> None:
        with pytest.raises(UserError) as caught:
            feed.put(rows(1, 40), None, None)
        refused.append(caught.value)

    producer = threading.Thread(target=push_more)
    producer.start()
    feed.stop()
    producer.join(10)
    assert "s takes no rows: the database is not started" in str(refused[0])
    for done in waiting:
        with pytest.raises(UserError, match="stopped before the rows were committed"):
            done.result(0)


def test_a_push_after_the_run_ended_tells_why(feed: PushFeed) -> None:
    feed.settle(StoreError("the disk is full"))
    feed.stop()
    with pytest.raises(UserError, match="s takes no rows: the run ended with: the disk is full"):
        feed.put(rows(1), None, None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([{"k": "a", "ts": 1}, {"k": "a", "ts": "soon"}], "not fit s: row 2: ts is not a BIGINT: 'soon'"),
        ([{"k": {"a"}, "ts": 1}], "not fit s: row 1: k is not a STRING: {'a'}"),
        ([1, 2], "not fit s: row 1 is not a dictionary: 1"),
        ([{"k": "a", "ts": 1, 7: 7}], "not fit s: the name of a column is not text: 7"),
        ({"k": "a", "ts": 1.5}, "row 1: ts is not a BIGINT: 1.5"),
        ({"k": "a", "ts": 2**63}, "row 1: ts is not a BIGINT: 9223372036854775808"),
        ({"k": "\ud800", "ts": 1}, r"row 1: k is not a STRING: '\\ud800'"),
        (17, "a int cannot be used as a table"),
        ({"k": "a", "t": 1}, r"s has no column t \(hint: did you mean ts\?"),
        ({"k": "a", "when": 1}, "s: there is no column ts"),
        (pa.table({"k": ["a"], "tss": [1]}), r"s has no column tss \(hint: did you mean ts\?"),
        ([{"ts": 1, "k": "a"}, {"ts": 2, "kk": "b"}], r"s has no column kk .hint: did you mean k\?"),
        (pa.table({"k": ["a"]}), "ts"),
        (pa.table({"k": ["a"], "ts": ["x"]}), "ts"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(feed: PushFeed, wrong: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        feed.put(wrong, "me", 1)
    assert not feed.ready()


@pytest.mark.parametrize(
    "data",
    [
        {"k": "a", "ts": 5},
        [{"ts": 5, "k": "a"}],
        {"K": "a", "Ts": 5, "other": 1.5},
        pa.table({"K": ["a"], "TS": [5]}),
        pa.table({"other": [1.5], "ts": pa.array([5], pa.int32()), "k": ["a"]}),
        pa.RecordBatch.from_pydict({"k": ["a"], "ts": [5]}),
    ],
)
def test_rows_come_as_dictionaries_or_tables(feed: PushFeed, data: Any) -> None:
    feed.put(data, None, None)
    assert taken(feed) == [5]


def test_a_column_that_only_some_rows_name_is_null_in_the_others(feed: PushFeed) -> None:
    feed.put([{"ts": 1}, {"ts": 2, "k": "a"}], None, None)
    intake = feed.take(START)
    assert intake is not None
    assert intake.source is not None
    reads = intake.source.read(intake.start, intake.end, ("k", "ts"))
    assert [row for read in reads for row in read.rows.to_pylist()] == [
        {"k": None, "ts": 1},
        {"k": "a", "ts": 2},
    ]


@pytest.mark.parametrize(
    ("producer", "sequence"), [("me", None), (None, 1), ("me", 1.5), ("me", "1"), (7, 1)]
)
def test_a_push_that_could_not_be_told_from_its_repeat_is_refused(
    feed: PushFeed, producer: Any, sequence: Any
) -> None:
    with pytest.raises(UserError, match="is numbered by a producer"):
        feed.put(rows(1), producer, sequence)
    assert not feed.ready()


def test_a_sequence_may_be_any_whole_number(feed: PushFeed) -> None:
    sequence: Any = np.int64(3)
    feed.put(rows(1), "me", sequence)
    intake = feed.take(START)
    assert intake is not None
    assert json.dumps(dict(intake.producers)) == '{"me": 3}'


def test_no_rows_are_a_push_too(feed: PushFeed) -> None:
    done = feed.put([], "me", 3)
    intake = feed.take(START)
    assert intake is not None
    assert intake.producers == {"me": 3}
    feed.settle(None)
    assert done.result(0) is True


def large(ts: int) -> list[dict[str, Any]]:
    """A row that is too large to go with the work of its epoch."""
    return [{"k": "a" * 2**20, "ts": ts}]


def test_few_rows_need_no_file(feed: PushFeed, tmp_path: Path) -> None:
    for first in (0, 2):
        feed.put(rows(2, first), None, None)
    intake = feed.take(START)
    assert intake is not None
    assert intake.source is not None
    source = pickle.loads(pickle.dumps(intake.source))
    reads = [source.read(start, end, ("ts", "k")) for start, end in ((0, 1), (1, 4))]
    found = [[part.rows.to_pydict() for part in read] for read in reads]
    assert found == [[{"ts": [0], "k": ["a"]}], [{"ts": [1, 2, 3], "k": ["a", "a", "a"]}]]
    assert not (tmp_path / "s").exists()


def test_a_part_of_a_large_table_goes_alone_with_the_work(feed: PushFeed) -> None:
    table = pa.table({"k": ["a"] * 100_000, "ts": np.arange(100_000)})
    feed.put(table.slice(7, 2), None, None)
    intake = feed.take(START)
    assert intake is not None
    assert intake.source is not None
    packed = pickle.dumps(intake.source)
    assert len(packed) < 10_000
    (read,) = pickle.loads(packed).read(0, 2, ("k", "ts"))
    assert read.rows.to_pydict() == {"k": ["a", "a"], "ts": [7, 8]}


def test_rows_that_wait_for_the_tasks_are_removed(feed: PushFeed, tmp_path: Path) -> None:
    feed.put(large(7), None, None)
    assert taken(feed) == [7]
    (waiting,) = (tmp_path / "s").iterdir()
    assert stat.S_IMODE(waiting.stat().st_mode) == 0o600, "they are nobody else's to read"
    feed.settle(None)
    assert list((tmp_path / "s").iterdir()) == []


def test_a_full_disk_is_told_as_such(feed: PushFeed, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("in the way")
    feed.put(large(0), None, None)
    with pytest.raises(StoreError, match="cannot write"):
        feed.take(START)


def test_a_push_hears_of_its_epoch_when_its_file_cannot_be_removed(feed: PushFeed, tmp_path: Path) -> None:
    done = feed.put(large(0), None, None)
    taken(feed)
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "s").write_text("no folder any more")
    feed.settle(None)
    assert done.result(0) is True


def test_every_push_hears_of_its_epoch_whatever_is_done_with_another(feed: PushFeed) -> None:
    def leave(_: Future[bool]) -> None:
        raise SystemExit(3)

    pushes = [feed.put(rows(1), None, None) for _ in range(3)]
    pushes[1].add_done_callback(leave)
    taken(feed)
    with pytest.raises(SystemExit):
        feed.settle(None)
    assert [push.done() for push in pushes] == [True] * 3


@pytest.mark.parametrize(
    ("overflow", "kept"),
    [(Overflow.DROP_OLDEST, [20, 30, 40, 50]), (Overflow.DROP_NEWEST, [0, 10, 20, 30])],
)
def test_rows_for_which_there_is_no_room_are_dropped_and_counted(
    feed: PushFeed, overflow: Overflow, kept: list[int]
) -> None:
    feed.limit(10, 2**20, overflow)
    answers = {first: feed.put(rows(10, first), None, None) for first in range(0, 60, 10)}
    assert feed.waiting() == 40
    point, found, dropped = START, [], 0
    while (intake := feed.take(point)) is not None:
        assert intake.source is not None
        reads = intake.source.read(intake.start, intake.end, ("ts",))
        found += [read.rows.column(0)[0].as_py() for read in reads]
        dropped += intake.dropped
        feed.settle(None)
        point = StreamPoint(intake.position)
    assert (found, dropped, feed.waiting()) == (kept, 20, 0)
    assert {first for first, answer in answers.items() if answer.exception() is None} == set(kept)
    with pytest.raises(BusyError, match=f"s has dropped these rows: .* OVERFLOW {overflow.value}"):
        next(answer for first, answer in answers.items() if first not in kept).result(0)


def test_with_room_again_nothing_is_dropped(feed: PushFeed) -> None:
    feed.limit(10, 2**20, Overflow.DROP_NEWEST)
    for first in range(0, 50, 10):
        feed.put(rows(10, first), None, None)
    assert taken(feed) == list(range(10))
    feed.settle(None)
    done = feed.put(rows(10, 100), None, None)
    assert (feed.waiting(), done.done()) == (40, False)


def test_rows_that_wait_while_their_stream_gets_a_column_have_null_in_it(feed: PushFeed) -> None:
    feed.put(rows(1), None, None)
    assert feed.widen(
        LiveStream(Schema((*(Field("k", STRING), Field("ts", BIGINT)), Field("c", BIGINT))), "ts")
    )
    feed.put({"k": "a", "ts": 1, "c": 7}, None, None)
    intake = feed.take(START)
    assert intake is not None
    assert intake.source is not None
    reads = intake.source.read(intake.start, intake.end, ("c",))
    assert [value for read in reads for value in read.rows.column(0).to_pylist()] == [None, 7]
