"""The status of a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.engine.shown.status import Status
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import EpochWork, TaskReport
from headrace.time import BEGINNING, INFINITY, ManualClock

SECOND = 1_000_000

ROWS = pa.table({"ts": range(1_000), "v": [number % 7 for number in range(1_000)]})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_704_067_200 * SECOND)


@pytest.fixture
def db(clock: ManualClock) -> Iterator[hr.Database]:
    with closing(database(clock)) as made:
        yield made


def database(
    clock: ManualClock,
    epoch_rows: int | None = None,
    runner: Callable[[], InlineRunner] = InlineRunner,
    buckets: int = 2,
) -> hr.Database:
    settings = Settings(None, RunSettings(epoch_rows, buckets=buckets, clock=clock), None)
    return hr.Database(runner, settings, Policy.open())


def pushed(db: hr.Database, *names: str) -> None:
    for name in names:
        db.execute(f"CREATE STREAM {name} (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 2")


def push(db: hr.Database, name: str, *times: int) -> None:
    assert db.push(name, [{"ts": time, "v": time} for time in times])


def operators(status: Status, kind: str) -> list[tuple[int, int]]:
    return [(part.rows_in, part.rows_out) for part in status.operators if part.text.startswith(kind)]


@pytest.mark.parametrize(("epoch_rows", "buckets"), [(None, 1), (300, 1), (300, 3)])
def test_rows_are_counted_whatever_the_cut(clock: ManualClock, epoch_rows: int | None, buckets: int) -> None:
    with closing(database(clock, epoch_rows, buckets=buckets)) as db:
        db.stream("bid", ROWS, timestamp="ts")
        db.query("SELECT v, COUNT(*) AS n FROM bid [RANGE 10] WHERE v < 5 GROUP BY v", name="totals")
        db.query("SELECT v FROM bid WHERE v > 100", name="none")
        db.run()
        status = db.status
    few = sum(number % 7 < 5 for number in range(1_000))
    assert operators(status, "Source") == [(1_000, 1_000)]
    assert operators(status, "Filter v < 5") == [(1_000, few)]
    assert operators(status, "Filter v > 100") == [(1_000, 0)]
    window = next(part for part in status.operators if part.text.startswith("TimeWindow"))
    assert (window.rows_out, window.lifetime, window.endless) == (few, 10.0, 0)
    assert (window.first, window.last) == (0, max(time for time in range(1_000) if time % 7 < 5))
    aggregate = next(part for part in status.operators if part.text.startswith("Aggregate"))
    assert aggregate.rows_in == few
    assert aggregate.rows_out == status.query("totals").changes
    assert sum(part.share for part in status.operators) == pytest.approx(1.0)
    empty = next(part for part in status.operators if part.text.startswith("Filter v > 100"))
    assert (empty.first, empty.lifetime, empty.selectivity) == (None, None, 0.0)


def test_a_run_that_is_over_is_final(db: hr.Database) -> None:
    db.stream("bid", ROWS, timestamp="ts")
    db.query("SELECT v FROM bid", name="q")
    db.run()
    status = db.status
    assert not status.running
    stream, query = status.stream("BID"), status.query("Q")
    assert (stream.rows, stream.share, stream.heartbeat, stream.latest) == (1_000, 1.0, INFINITY, 999)
    assert (query.heartbeat, query.held_by, query.changes) == (INFINITY, None, 1_000)


def test_a_run_without_a_status(db: hr.Database) -> None:
    with pytest.raises(hr.UserError, match="nothing has been run yet"):
        _ = db.status
    db.stream("bid", ROWS, timestamp="ts")
    db.query("SELECT v FROM bid", name="q")
    db.run()
    with pytest.raises(hr.UserError, match="not part of the run"):
        db.status.query("other")
    with pytest.raises(hr.UserError, match="no query that runs reads a stream other"):
        db.status.stream("other")


def test_the_slowest_stream_holds_a_query_back(db: hr.Database, clock: ManualClock) -> None:
    pushed(db, "a", "b")
    db.query("SELECT a.v FROM a [RANGE 10] JOIN b [RANGE 10] ON a.v = b.v", name="pairs")
    db.query("SELECT v FROM a", name="alone")
    db.start()
    query = db.status.query("pairs")
    assert (query.heartbeat, query.lag, query.held_by) == (BEGINNING, None, "a")
    push(db, "a", 10, 20)
    status = db.status
    assert status.query("pairs").held_by == "b"
    assert (status.query("alone").held_by, status.query("alone").heartbeat) == ("a", 18)
    clock.advance(3 * SECOND)
    push(db, "b", 12, 15)
    clock.advance(4 * SECOND)
    status = db.status
    query = status.query("pairs")
    assert (query.heartbeat, query.latest, query.lag, query.held_by) == (13, 20, 7, "b")
    names = [status.operators[link.node].text.split()[0] for link in query.chain]
    assert (names[0], names[-1]) == ("Project", "Source")
    assert (status.stream("a").age, status.stream("b").age) == (7.0, 4.0)
    db.stop()


def test_rows_that_were_set_apart_are_counted(db: hr.Database) -> None:
    pushed(db, "a")
    db.query("SELECT v FROM a", name="q")
    db.start()
    push(db, "a", 100)
    push(db, "a", 3, 99)
    db.stop()
    stream = db.status.stream("a")
    assert (stream.rows, stream.late, stream.rejected, stream.heartbeat, stream.latest) == (2, 1, 0, 98, 100)


def test_rates_are_per_second_of_the_clock(db: hr.Database, clock: ManualClock) -> None:
    pushed(db, "a")
    db.query("SELECT v FROM a WHERE v > 5", name="q")
    db.start()
    for begin in (0, 10, 20):
        clock.advance(2 * SECOND)
        push(db, "a", *range(begin, begin + 10))
    db.stop()
    status = db.status
    assert status.stream("a").rate == pytest.approx(5.0)
    recent = 4 * 2 ** (-4 / 30) + 10 * 2 ** (-2 / 30) + 10
    passed = 2 * 2 ** (-4 / 30) + 2 * 2 ** (-2 / 30) + 2
    assert status.query("q").rate == pytest.approx(recent / passed)


def test_counts_outlive_a_change_of_the_plan(db: hr.Database) -> None:
    pushed(db, "a")
    db.query("SELECT SUM(v) AS s FROM a [RANGE 10] WHERE v > 5", name="kept")
    db.query("SELECT v FROM a WHERE v > 7", name="gone")
    db.start()
    push(db, "a", *range(10))
    db.drop("gone")
    db.query("SELECT v FROM a WHERE v > 8", name="new")
    push(db, "a", *range(10, 15))
    db.stop()
    status = db.status
    assert operators(status, "Filter v > 5") == [(15, 9)]
    assert operators(status, "Filter v > 7") == []
    assert operators(status, "Filter v > 8") == [(5, 5)]
    assert [part.name for part in status.queries] == ["kept", "new"]


def test_results_that_wait_for_the_heartbeat(db: hr.Database) -> None:
    pushed(db, "a")
    query = db.query("SELECT v FROM a", name="q")
    db.start()
    push(db, "a", 1, 2, 3)
    push(db, "a", 10, 11)
    db.stop()
    assert db.status.query("q").unreleased == 2
    assert query.changes().num_rows == 3


def test_a_failed_query_says_why(db: hr.Database) -> None:
    pushed(db, "a")
    db.query("SELECT SUM(v + 9223372036854775000) AS s FROM a [RANGE UNBOUNDED]", name="q")
    db.start()
    push(db, "a", 1, 2, 3)
    push(db, "a", 10)
    db.stop()
    query = db.status.query("q")
    assert query.failed is not None
    assert (query.heartbeat, query.held_by) == (BEGINNING, None)


class Held(InlineRunner):
    """Runs no epoch before it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.allowed = threading.Event(), threading.Event()

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        self.begun.set()
        assert self.allowed.wait(30)
        return super().run_epoch(work, frames)


def test_a_status_does_not_wait_for_the_epoch(clock: ManualClock) -> None:
    runner = Held()
    with closing(database(clock, runner=lambda: runner)) as db:
        pushed(db, "a")
        db.query("SELECT v FROM a", name="q")
        db.start()
        done = db.push("a", {"ts": 1, "v": 1}, wait=False)
        assert runner.begun.wait(30)
        assert (db.status.epoch, db.status.running) == (0, True)
        runner.allowed.set()
        assert done.result()
        assert db.status.epoch == 1


def test_a_status_is_shown_as_text_html_and_json(db: hr.Database) -> None:
    db.execute("CREATE STREAM a (ts TIMESTAMP, v BIGINT) FROM push TIMESTAMP BY ts")
    db.query("SELECT v FROM a", name="q")
    db.start()
    db.push("a", {"ts": datetime(2024, 1, 1, 0, 0, 5, tzinfo=UTC), "v": 1})
    db.stop()
    status = db.status
    assert repr(status) == "<Status at rest, epoch 1; q final below 2024-01-01T00:00:05Z, held by a>"
    assert "2024-01-01T00:00:05Z" in str(status)
    assert "<td>2024-01-01T00:00:05Z</td>" in status._repr_html_()
    found = json.loads(json.dumps(status.to_dict()))
    assert found["streams"][0]["heartbeat"] == "2024-01-01T00:00:05Z"
    assert found["queries"][0]["chain"][-1] == {"node": 0, "heartbeat": "2024-01-01T00:00:05Z"}
    assert found["operators"][0]["rows_out"] == 1


def test_a_store_remembers_how_far_streams_are(tmp_path: Path) -> None:
    def opened() -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store")
        pushed(db, "a")
        db.query("SELECT v FROM a", name="q")
        db.start()
        return db

    with opened() as db:
        push(db, "a", 10, 20)
    with opened() as db:
        stream, query = db.status.stream("a"), db.status.query("q")
        assert (stream.rows, stream.heartbeat, stream.latest, stream.rate) == (2, 18, 20, None)
        assert (query.changes, query.heartbeat, query.unreleased) == (2, 18, 2)
        push(db, "a", 30)
        assert operators(db.status, "Source") == [(1, 1)]
        assert db.status.stream("a").rows == 3
