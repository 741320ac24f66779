"""The last windows and sessions of streams that stop: what lets them out, and what is late then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import LanguageError
from watched_clock import Clock

STREAM = "CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {said}"
TUMBLED = """SELECT window_start AS ws, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), 10))
GROUP BY window_start, window_end"""
SESSIONS = """SELECT window_end AS ws, COUNT(*) AS n FROM TABLE(SESSION(TABLE a, DESCRIPTOR(ts), 7))
GROUP BY window_start, window_end"""
HOPPED = """SELECT window_start AS ws, COUNT(*) AS n FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), 5, 10))
GROUP BY window_start, window_end"""
SLIDING = "SELECT MAX(v) AS ws, COUNT(*) AS n FROM a [RANGE 10 SLIDE 10]"


def push(db: hr.Database, stream: str, *times: int) -> None:
    db.push(stream, [{"v": instant, "ts": instant} for instant in times])


def answered(db: hr.Database) -> set[tuple[Any, int]]:
    return {(row["ws"], row["n"]) for row in db["q"].history().to_pylist() if row["n"]}


def reached(db: hr.Database, stream: str = "a") -> int:
    return db.status.stream(stream).heartbeat


LAST = {
    TUMBLED: (30, {(0, 1), (20, 2)}),
    SESSIONS: (32, {(11, 1), (32, 2)}),
    HOPPED: (35, {(-5, 1), (0, 1), (15, 1), (20, 2), (25, 1)}),
    SLIDING: (30, {(4, 1), (25, 2)}),
}
"""By query the heartbeat after 4, 22 and 25, and what there is to answer."""


@pytest.mark.parametrize(
    "said", ["TIMEOUT 5 SECONDS", "IDLE AFTER 5 SECONDS", "DISORDER 3 TIMEOUT 5 SECONDS"]
)
@pytest.mark.parametrize("query", LAST)
def test_the_windows_that_hold_rows_end_and_no_others(
    connect: Callable[..., hr.Database], clock: Clock, query: str, said: str
) -> None:
    heartbeat, expected = LAST[query]
    db = connect(query, a=said)
    push(db, "a", 4, 22, 25)
    clock.let_pass(3)
    assert answered(db) < expected
    clock.let_pass(4)
    assert answered(db) == expected
    epochs = db.status.epoch
    clock.let_pass(60)
    assert (reached(db), db.status.epoch) == (heartbeat, epochs)
    # What comes later is late in what has ended, and opens the next window.
    push(db, "a", heartbeat - 1, heartbeat)
    clock.let_pass(7)
    assert len(answered(db)) > len(expected)
    assert db.stop().late == 1
    assert db.dead_letters().column("reason").to_pylist() == [f"late: older than the heartbeat {heartbeat}"]


def test_the_last_windows_come_after_a_restart(connect: Callable[..., hr.Database], clock: Clock) -> None:
    db = connect(TUMBLED, durable=True, a="TIMEOUT 10 SECONDS")
    push(db, "a", 22, 25)
    clock.let_pass(6)
    # An epoch that remembers how long it has been silent.
    db.query("SELECT v FROM a", name="other")
    db.close()
    clock.advance(3_600_000_000)
    again = connect(TUMBLED, durable=True, a="TIMEOUT 10 SECONDS")
    clock.wait_for_looks()
    assert not answered(again)
    clock.let_pass(12)
    assert answered(again) == {(20, 2)}
    push(again, "a", 29, 30)
    assert again.stop().late == 1


def test_streams_that_are_joined_end_together(connect: Callable[..., hr.Database], clock: Clock) -> None:
    query = "SELECT COUNT(*) AS n FROM a [RANGE 10 SLIDE 10] AS x, b [RANGE 4] AS y WHERE x.v > y.v"
    db = connect(query, a="IDLE AFTER 5 SECONDS", b="IDLE AFTER 9 SECONDS")
    push(db, "b", 3)
    push(db, "a", 22)
    clock.let_pass(7)
    # The first is idle, the second is not yet.
    assert (reached(db, "a"), reached(db, "b")) == (22, 3)
    clock.let_pass(4)
    assert (reached(db, "a"), reached(db, "b")) == (30, 30)


def test_all_values_of_a_column_may_be_idle(connect: Callable[..., hr.Database], clock: Clock) -> None:
    db = connect(TUMBLED, a="PER v IDLE AFTER 5 SECONDS")
    push(db, "a", 4, 22, 25)
    clock.let_pass(8)
    assert answered(db) == {(0, 1), (20, 2)}


def test_values_are_waited_for_though_nothing_comes(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(TUMBLED, a="PER v WAIT 20 SECONDS IDLE AFTER 5 SECONDS")
    push(db, "a", 22, 25)
    clock.let_pass(15)
    assert reached(db) < 0
    push(db, "a", 4)
    clock.let_pass(22)
    assert answered(db) == {(0, 1), (20, 2)}
    assert db.stop().late == 0


def test_a_window_without_a_slide_has_no_end(connect: Callable[..., hr.Database], clock: Clock) -> None:
    """It answers at each instant, so that no later row need be late."""
    db = connect("SELECT COUNT(*) AS ws, 1 AS n FROM a [RANGE 1000]", a="TIMEOUT 5 SECONDS")
    push(db, "a", 4, 25)
    clock.let_pass(8)
    assert reached(db) == 26
    assert answered(db) == {(1, 1), (2, 1)}


@pytest.mark.parametrize("clause", ["TIMEOUT 5 SECONDS", "IDLE AFTER 5 SECONDS"])
def test_nobody_is_told_to_wait_in_vain(
    connect: Callable[..., hr.Database], clock: Clock, clause: str
) -> None:
    db = connect(TUMBLED, a=clause)
    push(db, "a", 4, 25)
    hint = next(one.hint for one in db.why("q").findings if "waits for a" in one.message) or ""
    assert hint == f"send a row of a at 30 or later or wait: it declares {clause}"
    clock.let_pass(8)
    hint = next(one.hint for one in db.why("q").findings if "waits for a" in one.message) or ""
    assert hint == "send a row of a at 40 or later"
    db.execute("CREATE QUERY long AS SELECT COUNT(*) AS n FROM a [RANGE 100 SLIDE 100]")
    push(db, "a", 31)
    hint = next(one.hint for one in db.why("long").findings if "waits for a" in one.message) or ""
    assert hint == f"send a row of a at 100 or later or wait: it declares {clause}"
    clock.let_pass(8)
    assert db["long"].history().column("n").to_pylist()[-1:] == [1]


def test_following_the_hint_lets_the_last_window_out(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(TUMBLED)
    push(db, "a", 25)
    hint = next(one.hint for one in db.why("q").findings if "waits for a" in one.message) or ""
    statement = hint.split(" or write ")[1]
    assert statement == "ALTER STREAM a TIMEOUT 30 SECONDS"
    db.execute(statement)
    clock.let_pass(33)
    assert answered(db) == {(20, 1)}


NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
"""The watched clock's first reading."""

CLOCKED = """CREATE STREAM c (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts {said};
CREATE QUERY q AS SELECT window_start AS ws, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end"""


@pytest.fixture
def clocked(clock: Clock, tmp_path: Path) -> Iterator[Callable[[str], hr.Database]]:
    """Databases with a stream `c` whose timestamps are those of the clock."""
    made: list[hr.Database] = []

    def new(said: str) -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store", clock=clock)
        made.append(db)
        db.execute(CLOCKED.format(said=said))
        db.start()
        return db

    yield new
    for db in made:
        db.close()


def send(db: hr.Database, *seconds: float) -> None:
    db.push("c", [{"v": 1, "ts": NOW + timedelta(seconds=second)} for second in seconds])


def test_the_clock_alone_closes_windows(clocked: Callable[[str], hr.Database], clock: Clock) -> None:
    """Rows are at most 4 seconds behind it; nothing comes, and the system is quiet in the end."""
    db = clocked("DISORDER 4 SECONDS AT MOST 4 SECONDS BEHIND")
    send(db, 1)
    clock.let_pass(12)
    assert not answered(db)
    clock.let_pass(4)
    assert answered(db) == {(NOW, 1)}
    clock.let_pass(30)
    after = db.status.epoch
    clock.let_pass(30)
    assert db.status.epoch == after
    # A row that is as far behind as was said is taken.
    send(db, 73)
    send(db, 60)
    clock.let_pass(20)
    assert answered(db) == {(NOW, 1), (NOW + timedelta(seconds=70), 1)}
    assert db.stop().late == 1


def test_the_clock_goes_on_after_a_restart(clocked: Callable[[str], hr.Database], clock: Clock) -> None:
    said = "DISORDER 4 SECONDS AT MOST 4 SECONDS BEHIND"
    db = clocked(said)
    send(db, 1)
    db.close()
    clock.advance(3_600_000_000)
    again = clocked(said)
    clock.let_pass(4)
    assert answered(again) == {(NOW, 1)}
    # What comes after the first look is compared with the clock of now.
    send(again, 3, 3600)
    assert again.stop().late == 1


def test_integers_are_not_compared_with_the_clock() -> None:
    db = hr.connect(runner="inline")
    with pytest.raises(LanguageError, match="BEHIND compares with the clock, and the stream is timed by an"):
        db.execute(STREAM.format(name="a", said="AT MOST 1 MINUTE BEHIND"))
    with pytest.raises(LanguageError, match="AHEAD or BEHIND is missing, before 'OF'"):
        db.execute(STREAM.format(name="a", said="AT MOST 1 MINUTE OF"))
    with pytest.raises(LanguageError, match=r"AT MOST \.\.\. BEHIND is given twice"):
        db.execute(
            STREAM.format(name="a", said="AT MOST 1 DAY AHEAD AT MOST 1 DAY BEHIND AT MOST 1 DAY BEHIND")
        )


def test_why_says_when_the_clock_closes_a_window(clocked: Callable[[str], hr.Database]) -> None:
    db = clocked("AT MOST 4 SECONDS BEHIND")
    send(db, 1)
    hint = next(one.hint for one in db.why("q").findings if "waits for c" in one.message) or ""
    assert "wait until the clock has passed 2027-01-15T08:00:14" in hint
