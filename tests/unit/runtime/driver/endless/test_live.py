"""Endless runs on the inline runner: push, subscribe, stop, start again."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import ExecutionError, StoreError, UserError
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.journal import inspect
from headrace.runtime.journal import record_files as commits
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.journal.records import CHECKPOINT_EVERY
from headrace.time import BEGINNING, INFINITY
from inside import epochs_of

PATIENCE = 20
TEXT = """
CREATE STREAM s (k STRING, ts BIGINT) FROM push OPTIONS (max_rows_per_epoch=100) TIMESTAMP BY ts DISORDER 5;
CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k;
CREATE QUERY plain AS SELECT k, ts FROM s;
"""


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", dialect="pipes", storage=storage, **options)
    db.execute(TEXT)
    return db


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        yield made


def row(ts: int, k: str = "a") -> dict[str, Any]:
    return {"k": k, "ts": ts}


def named(db: hr.Database, name: str) -> hr.Query:
    return next(query for query in db.queries if query.name == name)


def test_pushed_rows_are_answered_when_the_push_returns(db: hr.Database) -> None:
    db.start()
    assert db.running
    assert db.endless == ("s",)
    assert db.push("s", [row(1), row(3), row(20)]) is True
    # The heartbeat is 20 - 5 + 1 or less: what began before is final.
    assert named(db, "plain").history().to_pydict()["ts"] == [1, 3]
    assert db.push("s", row(40)) is True
    assert named(db, "counts").history().slice(0, 3).to_pydict() == {
        "k": ["a", "a", "a"],
        "n": [1, 2, 1],
        "valid_from": [1, 3, 11],
        "valid_to": [3, 11, 13],
    }
    summary = db.stop()
    assert (summary.rows, summary.late) == (4, 0)
    assert not db.running


def test_the_first_rows_can_be_followed_before_they_end(db: hr.Database) -> None:
    steady = db.query("SELECT DISTINCT k FROM s [RANGE 1000]")
    db.start()
    assert db.push("s", row(1)) is True
    assert db.push("s", row(40)) is True
    steps = steady.follow(begun=True)
    rows = next(step for step in steps if step.num_rows).to_pylist()
    assert [(line["valid_from"], line["valid_to"]) for line in rows] == [(1, None)]
    db.stop()
    rest = pa.concat_tables(steps).to_pylist()
    assert [line["valid_from"] for line in rest] == [1]
    assert rest[0]["valid_to"] is not None


def test_progress_is_told_after_every_epoch(db: hr.Database) -> None:
    told: list[hr.Progress] = []
    db.start(told.append)
    for ts in (1, 3, 20):
        db.push("s", row(ts))
    db.stop()
    assert [(progress.epoch, progress.rows, progress.heartbeat) for progress in told] == [
        (1, 1, -4),
        (2, 2, -2),
        (3, 3, 15),
    ]


def test_progress_that_fails_ends_the_run(db: hr.Database) -> None:
    def refuse(progress: hr.Progress) -> None:
        raise OSError("the terminal is gone")

    db.start(refuse)
    assert db.push("s", row(1)) is True, "what is committed is acknowledged"
    with pytest.raises(OSError, match="the terminal is gone"):
        db.stop()


def test_a_repeat_by_sequence_is_taken_once(db: hr.Database) -> None:
    db.start()
    assert db.push("s", row(1), producer="me", sequence=1) is True
    assert db.push("s", row(1), producer="me", sequence=1) is False
    assert db.push("s", row(1), producer="you", sequence=1) is True
    assert db.push("s", row(1), producer="me", sequence=2) is True
    assert db.stop().rows == 3


def test_a_repeat_is_known_after_a_restart(tmp_path: Path) -> None:
    for expected in (True, False):
        with database(tmp_path / "store") as db:
            db.start()
            assert db.push("s", row(1), producer="me", sequence=1) is expected
            assert db.stop().rows == 1


def test_a_late_row_goes_to_the_dead_letters(db: hr.Database) -> None:
    db.start()
    db.push("s", row(100))
    db.push("s", row(10))
    summary = db.stop()
    assert (summary.rows, summary.late) == (2, 1)
    assert db.dead_letters()["reason"].to_pylist()[0].startswith("late: older than the heartbeat 9")


def test_a_subscriber_sees_every_epoch_with_its_heartbeat(db: hr.Database) -> None:
    db.start()
    for ts in (10, 20, 30):
        db.push("s", row(ts))
    changes = list(islice(named(db, "plain").subscribe(), 3))
    assert [change.epoch for change in changes] == [1, 2, 3]
    heartbeats = [change.heartbeat for change in changes]
    assert heartbeats == sorted(heartbeats)
    assert BEGINNING < heartbeats[0] <= 10 < heartbeats[1] <= 20 < heartbeats[2] <= 30
    assert [change.rows["ts"].to_pylist() for change in changes] == [[], [10], [20]]
    assert changes[1].rows["epoch"].to_pylist() == [2]


def test_what_is_followed_adds_up_to_the_history_when_the_run_ends(db: hr.Database) -> None:
    steady = db.query("SELECT DISTINCT k FROM s [RANGE 1000]", name="steady")
    db.start()
    seen: list[pa.Table] = []
    follower = threading.Thread(target=lambda: seen.extend(steady.follow()))
    follower.start()
    for ts in (10, 20, 30):
        db.push("s", [row(ts)])
    db.stop()
    follower.join(PATIENCE)
    assert [table.num_rows for table in seen] == [0, 0, 0, 1], "it has not ended, and is told at the end"
    assert seen[-1].to_pylist() == steady.history().to_pylist()
    assert seen[-1].to_pylist() == [{"k": "a", "valid_from": 10, "valid_to": 25}]
    rows = pa.concat_tables(named(db, "counts").follow()).sort_by("valid_from")
    assert rows.to_pylist() == named(db, "counts").history().to_pylist()
    assert pa.concat_tables(steady.follow("changes")).to_pylist() == steady.changes().to_pylist()


def test_a_subscriber_waits_and_ends_when_the_run_does(db: hr.Database) -> None:
    db.start()
    seen: list[int] = []
    first = threading.Event()

    def listen() -> None:
        for change in named(db, "plain").subscribe():
            seen.append(change.epoch)
            first.set()

    listener = threading.Thread(target=listen)
    listener.start()
    db.push("s", row(1))
    assert first.wait(PATIENCE)
    db.push("s", row(2))
    db.stop()
    listener.join(PATIENCE)
    assert not listener.is_alive()
    assert seen == [1, 2]


def test_a_subscriber_goes_on_exactly_where_it_was(tmp_path: Path) -> None:
    """Also over a restart, and with elements that an epoch wrote before and a later one releases."""
    seen: list[dict[str, Any]] = []
    epoch = 0
    for start in (0, 3, 6):
        with database(tmp_path / "store") as db:
            db.start()
            for number in range(start, start + 3):
                db.push("s", [row(number * 4), row(number * 4 + 3)], producer="me", sequence=number)
            db.stop()
            for change in named(db, "plain").subscribe(from_epoch=epoch + 1):
                assert change.epoch == epoch + 1
                epoch = change.epoch
                seen += change.rows.drop_columns(["epoch"]).to_pylist()
            everything = named(db, "plain").changes().drop_columns(["epoch"]).to_pylist()
    assert epoch == 9
    assert seen == everything
    assert [part["ts"] for part in seen] == sorted(part["ts"] for part in seen)


def test_a_subscriber_is_told_of_epochs_that_are_gone(tmp_path: Path) -> None:
    with database(tmp_path / "store", retain_epochs=2) as db:
        db.start()
        subscription = named(db, "plain").subscribe()
        db.push("s", row(10))
        assert next(subscription).epoch == 1
        for ts in range(20, 70, 10):
            db.push("s", row(ts))
        # Epoch 4 is kept, since epoch 5 releases its row, but its own changes lack that of epoch 3.
        assert len({path.name.partition("-")[0] for path in (tmp_path / "store/results").iterdir()}) == 3
        with pytest.raises(
            UserError, match="plain in epoch 2 are no longer kept; the oldest are those of epoch 5"
        ):
            next(subscription)
        with pytest.raises(UserError, match="epoch 3 are no longer kept"):
            next(named(db, "plain").subscribe(from_epoch=3))
        assert next(named(db, "plain").subscribe()).epoch == 5
        assert [change.rows["ts"].to_pylist() for change in islice(named(db, "plain").subscribe(5), 2)] == [
            [40],
            [50],
        ]
        assert named(db, "plain").changes()["ts"].to_pylist() == [40, 50]
        db.stop()


def test_many_pushes_become_few_epochs_and_none_is_lost(db: hr.Database) -> None:
    db.start()
    done = [db.push("s", [row(number)] * 10, "me", number, wait=False) for number in range(200)]
    for future in done:
        assert isinstance(future, Future)
        assert future.result(PATIENCE) is True
    summary = db.stop()
    assert summary.rows == 2000
    assert 20 <= summary.epochs <= 200, "an epoch takes 100 rows at most"


def test_pushed_and_bounded_streams_run_together(tmp_path: Path) -> None:
    with hr.connect(runner="inline", dialect="pipes", storage=tmp_path / "store", epoch_rows=10) as db:
        db.execute(TEXT)
        db.stream("b", pa.table({"k": ["a"] * 50, "ts": range(50)}), timestamp="ts")
        both = db.query("SELECT b.ts, s.ts AS at FROM b, s WHERE b.k = s.k")
        alone = db.query("SELECT COUNT(*) AS n FROM b [RANGE UNBOUNDED]")
        db.start()
        assert db.push("s", [row(7), row(9), row(100)])
        for change in alone.subscribe():
            if change.heartbeat == INFINITY:
                break
        assert db.push("s", row(200))
        assert both.history()["ts"].to_pylist() == [7, 9]
        assert alone.history()["n"].to_pylist() == list(range(1, 51))
        db.stop()


@pytest.mark.parametrize("name", ["nothing", "b"])
def test_a_push_into_another_stream_is_refused(db: hr.Database, name: str) -> None:
    db.stream("b", pa.table({"ts": [1]}), timestamp="ts")
    db.start()
    with pytest.raises(UserError, match=f"no query reads a stream {name} of pushed rows"):
        db.push(name, row(1))


def test_rows_that_do_not_fit_are_refused_and_the_run_goes_on(db: hr.Database) -> None:
    db.start()
    with pytest.raises(UserError, match="do not fit s"):
        db.push("s", {"k": "a", "ts": "never"}, producer="me", sequence=1)
    assert db.push("s", row(1), producer="me", sequence=1) is True
    assert db.stop().rows == 1


def test_what_is_not_started_cannot_be_used(db: hr.Database) -> None:
    for use in (lambda: db.push("s", row(1)), db.stop):
        with pytest.raises(UserError, match="the database is not started"):
            use()
    with pytest.raises(UserError, match="the stream s never ends"):
        db.run()
    db.start()
    for begin in (db.start, db.run):
        with pytest.raises(UserError, match="the database is running already"):
            begin()
    assert db.push("s", row(1)) is True, "the run goes on"
    db.stop()
    with pytest.raises(UserError, match="s takes no rows: the database is not started"):
        db.push("s", row(1))


def test_a_stopped_database_starts_again(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        for number in range(1, 4):
            db.start()
            db.push("s", row(number))
            assert db.stop().rows == number
        with database(tmp_path / "store") as other:
            other.start()
            other.push("s", row(9))
            assert other.stop().rows == 4


@pytest.mark.slow("needs more epochs than two checkpoints")
def test_a_store_can_be_looked_into_while_its_driver_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was removed between finding its name and reading it is no damage; real damage still is."""
    with database(tmp_path / "store", retain_epochs=2) as db:
        db.start()
        db.push("s", row(0))
        pushes = CHECKPOINT_EVERY + 30

        def swept_before(look: Callable[..., Any], start: int) -> Callable[..., Any]:
            """The look, and before its first one so many epochs that what it is about to read goes."""
            times = iter(range(start, start + pushes))

            def sweep_and_look(*arguments: Any) -> Any:
                for time in times:
                    db.push("s", row(time))
                return look(*arguments)

            return sweep_and_look

        monkeypatch.setattr(commits, "load_commit", swept_before(commits.load_commit, 100))
        assert contents(tmp_path / "store").epochs == 1 + pushes
        monkeypatch.setattr(inspect, "_damaged", swept_before(inspect._damaged, 200))
        assert verify(tmp_path / "store").problems == ()
        assert contents(tmp_path / "store").epochs == 1 + 2 * pushes
        gone = next((tmp_path / "store/results").iterdir())
        gone.unlink()
        assert [problem.file for problem in verify(tmp_path / "store").problems] == [f"results/{gone.name}"]


def test_a_run_on_a_full_disk_ends_with_a_clear_error_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with database(tmp_path / "store") as db:
        db.start()
        assert db.push("s", row(1), producer="me", sequence=1)
        monkeypatch.setattr(os, "link", full)
        with pytest.raises(StoreError, match="No space left on device"):
            db.push("s", row(2), producer="me", sequence=2)
        with pytest.raises(StoreError, match="No space left on device"):
            list(named(db, "plain").subscribe())
        with pytest.raises(UserError, match=r"s takes no rows: the run ended with: .*No space left"):
            db.push("s", row(2), producer="me", sequence=2)
        with pytest.raises(StoreError, match="No space left on device"):
            db.stop()
        monkeypatch.undo()
        db.start()
        assert db.push("s", row(2), producer="me", sequence=2) is True
        assert db.stop().rows == 2


@pytest.mark.parametrize("part", ["store", "store/streams"])
def test_a_push_hears_of_a_store_that_becomes_a_file(tmp_path: Path, part: str) -> None:
    with database(tmp_path / "store") as db:
        db.start()
        assert db.push("s", row(1))
        shutil.rmtree(tmp_path / part)
        (tmp_path / part).write_text("no folder any more")
        with pytest.raises(StoreError, match="Not a directory"):
            db.push("s", row(2, "a" * 2**20))
        with pytest.raises(StoreError, match="Not a directory"):
            db.stop()


def test_every_feed_hears_of_the_end_whatever_the_others_do() -> None:
    events: list[str] = []

    class Feed:
        def __init__(self, name: str) -> None:
            self.name = name

        def start(self, *_: Any) -> None: ...

        def ready(self) -> bool:
            raise SystemExit(3)

        def settle(self, error: BaseException | None) -> None:
            events.append(f"settle {self.name} {error!r}")
            raise OSError("no such file")

        def stop(self) -> None:
            events.append(f"stop {self.name}")
            raise OSError("no such file")

    class Run:
        columns: ClassVar = {"a": (), "b": ()}
        streams: ClassVar = {"a": None, "b": None}
        reads_relations = False
        reading = SimpleNamespace(queries=SimpleNamespace(lanes={}))

        def point(self, _: str) -> None:
            return None

        def wait(self) -> None:
            return None

        def due_refreshes(self) -> list[str]:
            return []

        def next_share(self) -> dict[str, Any]:
            return {}

        def backlogs(self) -> list[Any]:
            return []

    feeds: Any = {"a": Feed("a"), "b": Feed("b")}
    run: Any = Run()
    live = LiveRun(run, threading.Condition())
    live.start(feeds)
    live.stop()
    told = [f"settle {name} SystemExit(3)" for name in "ab"]
    assert sorted(events) == [*told, "stop a", "stop b"]
    assert isinstance(live.error, SystemExit)
    change: Any = SimpleNamespace(starts={}, another=None, ahead=None)
    with pytest.raises(UserError, match="the run ended with: SystemExit: 3"):
        live.change(change)


def test_feeds_that_were_started_are_stopped_when_another_cannot_start() -> None:
    events: list[str] = []

    class Feed:
        def __init__(self, name: str) -> None:
            self.name = name

        def start(self, *_: Any) -> None:
            events.append(f"start {self.name}")
            if self.name == "bad":
                raise UserError("no such topic")

        def stop(self) -> None:
            events.append(f"stop {self.name}")

    class Run:
        columns: ClassVar = {"good": (), "bad": ()}

        def point(self, _: str) -> None:
            return None

    feeds: Any = {"good": Feed("good"), "bad": Feed("bad")}
    run: Any = Run()
    live = LiveRun(run, threading.Condition())
    with pytest.raises(UserError, match="no such topic"):
        live.start(feeds)
    assert events == ["start good", "start bad", "stop good", "stop bad"]
    assert not live.running
    live.stop()


def test_a_run_stops_in_time_while_a_function_hangs(tmp_path: Path) -> None:
    entered, release = threading.Event(), threading.Event()

    def hangs(values: pa.Array) -> pa.Array:
        entered.set()
        release.wait()
        return values

    def database() -> hr.Database:
        db = hr.connect(runner="inline", dialect="pipes", storage=tmp_path / "store")
        db.function("hangs", hangs, arguments=["BIGINT"], returns="BIGINT", version="1")
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT hangs(v) AS v FROM s", name="q")
        return db

    with database() as db:
        db.start()
        epochs = epochs_of(db)
        done = db.push("s", {"v": 1, "ts": 1}, producer="p", sequence=1, wait=False)
        assert isinstance(done, Future)
        assert entered.wait(PATIENCE)
        with pytest.raises(ExecutionError, match=r"has not ended within 0\.01 s and was given up"):
            db.stop(timeout=0.01)
        assert not db.running
        with pytest.raises(ExecutionError, match="was given up"):
            done.result(PATIENCE)
        with database() as other:
            other.start()
            release.set()
            epochs.join(PATIENCE)
            assert not epochs.is_alive()
            assert other.push("s", {"v": 1, "ts": 1}, producer="p", sequence=1), "it was not committed"
            assert other.stop().rows == 1
