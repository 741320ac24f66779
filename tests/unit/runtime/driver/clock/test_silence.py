"""Streams that are silent, late or behind: what their declarations let the others go on with, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError
from headrace.runtime.tasks import values
from watched_clock import SECOND, Clock

PAIRS = "SELECT a.v, b.v FROM a [RANGE 10], b [RANGE 10] WHERE a.v = b.v"
ONES = "SELECT v, COUNT(*) AS n FROM a [RANGE 10] GROUP BY v"


def push(db: hr.Database, stream: str, *times: int, value: int = 1) -> None:
    db.push(stream, [{"v": value, "ts": instant} for instant in times])


def heartbeat(db: hr.Database) -> Any:
    return db.status.queries[0].heartbeat


def epochs(db: hr.Database) -> int:
    return db.status.epoch


def test_a_silent_stream_holds_a_join_back_for_ever_unless_it_may_be_idle(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(PAIRS)
    push(db, "b", 5)
    push(db, "a", 5, 20)
    clock.advance(3600 * SECOND)
    assert heartbeat(db) == 5
    db.execute("ALTER STREAM b IDLE AFTER 10 SECONDS")
    clock.let_pass(12)
    assert heartbeat(db) == 20
    assert db["q"].history().to_pydict() == {"v": [1], "v_2": [1], "valid_from": [5], "valid_to": [15]}


def test_an_idle_stream_follows_the_slowest_of_those_that_are_read_with_it(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    query = "SELECT a.v FROM a [RANGE 10], b [RANGE 10], c [RANGE 10] WHERE a.v = b.v AND b.v = c.v"
    db = connect(query, c="IDLE AFTER 5 SECONDS")
    for number in range(4):
        push(db, "a", 10 + number)
        push(db, "b", 3 + number)
        clock.let_pass(2)
    assert heartbeat(db) == 6
    # From now on it follows in the epochs that bring the rows of the others.
    push(db, "b", 9)
    assert heartbeat(db) == 9


def test_a_stream_that_speaks_again_has_late_rows_below_what_was_promised(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(PAIRS, b="IDLE AFTER 5 SECONDS")
    push(db, "a", 20)
    clock.let_pass(7)
    assert heartbeat(db) == 20
    assert [stream.name for stream in db.status.streams if stream.idle] == ["b"]
    assert " idle " in str(db.execute("SHOW STREAMS")[0])
    push(db, "b", 19, 20, 25)
    assert not db.status.stream("b").idle
    summary = db.stop()
    assert {part.name: (part.rows, part.late) for part in summary.streams} == {"a": (1, 0), "b": (2, 1)}
    assert db.dead_letters().column("reason").to_pylist() == ["late: older than the heartbeat 20"]


def test_an_idle_system_makes_no_epochs(connect: Callable[..., hr.Database], clock: Clock) -> None:
    db = connect(
        PAIRS, a="TIMEOUT 5 SECONDS IDLE AFTER 3 SECONDS", b="TIMEOUT 5 SECONDS IDLE AFTER 3 SECONDS"
    )
    push(db, "a", 5)
    push(db, "b", 7)
    clock.let_pass(7)
    after = epochs(db)
    assert heartbeat(db) == 8
    clock.let_pass(100)
    assert epochs(db) == after


def test_a_timeout_lets_the_last_rows_out(connect: Callable[..., hr.Database], clock: Clock) -> None:
    db = connect(ONES, a="DISORDER 5 TIMEOUT 10 SECONDS")
    push(db, "a", 3, 9)
    clock.let_pass(8)
    assert heartbeat(db) == 4
    clock.let_pass(4)
    assert heartbeat(db) == 10
    assert db["q"].snapshot(9).to_pydict() == {"v": [1], "n": [2]}


def test_latency_makes_promises_wait_for_rows_under_way(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    """A row that overtakes others by less than the latency makes none of them late."""
    db = connect(ONES, a="LATENCY 4 SECONDS")
    push(db, "a", 9)
    clock.let_pass(2)
    push(db, "a", 3)
    assert heartbeat(db) < 0
    clock.let_pass(5)
    assert heartbeat(db) == 9
    assert db.stop().late == 0


def test_rows_bound_the_disorder(connect: Callable[..., hr.Database]) -> None:
    """After two further rows none is older than the first."""
    db = connect(ONES, a="DISORDER 2 ROWS")
    for instant, expected in ((9, None), (3, None), (8, 9), (9, 9), (12, 9), (11, 9), (12, 12), (5, 12)):
        push(db, "a", instant)
        assert heartbeat(db) == expected or (expected is None and heartbeat(db) < 0), instant
    assert db.stop().late == 1


@pytest.mark.parametrize("cut", [(8,), (1,) * 8, (3, 4, 1)])
def test_rows_bound_the_disorder_however_they_are_cut(
    connect: Callable[..., hr.Database], cut: tuple[int, ...]
) -> None:
    """A row is judged by those that came two rows before it, though they are of the same epoch."""
    db = connect(ONES, a="DISORDER 2 ROWS")
    times = [9, 3, 8, 8, 12, 11, 9, 11]
    for size in cut:
        push(db, "a", *times[:size])
        times = times[size:]
    assert heartbeat(db) == 12
    assert db.stop().late == 2
    letters = [
        (json.loads(row)["ts"], reason)
        for row, reason in zip(
            db.dead_letters().column("row").to_pylist(),
            db.dead_letters().column("reason").to_pylist(),
            strict=True,
        )
    ]
    assert letters == [
        (8, "late: older than the heartbeat 9"),
        (11, "late: older than the heartbeat 12"),
    ]


def test_rows_are_counted_on_after_a_restart(connect: Callable[..., hr.Database]) -> None:
    db = connect(ONES, durable=True, a="DISORDER 3 ROWS")
    push(db, "a", 5, 9, 3)
    db.close()
    again = connect(ONES, durable=True, a="DISORDER 3 ROWS")
    push(again, "a", 4, 4, 8)
    assert heartbeat(again) == 9
    assert again.stop().late == 2


def test_clocks_that_run_bring_the_last_rows_out(connect: Callable[..., hr.Database], clock: Clock) -> None:
    """Section 4.2: what a sensor is behind it has made up after a while, so that no timeout is needed."""
    db = connect(PAIRS, a="DEVIATION 2 RATE 1 PER 1 SECOND", b="DEVIATION 2 RATE 1 PER 1 SECOND")
    push(db, "a", 20)
    push(db, "b", 17)
    assert heartbeat(db) == 17
    clock.let_pass(3)
    assert heartbeat(db) == 18
    clock.let_pass(4)
    assert heartbeat(db) == 21
    assert db.stop().late == 0


@pytest.mark.parametrize("said", ["DISORDER 2 ROWS", "DISORDER 100 PER v OF (1)"])
def test_a_heartbeat_from_outside_comes_without_rows(connect: Callable[..., hr.Database], said: str) -> None:
    """Also where one task reads all rows of an epoch."""
    db = connect(ONES, a=said)
    push(db, "a", 20)
    db.heartbeat("a", 15)
    assert heartbeat(db) == 15
    push(db, "a", 14, 16)
    assert db.stop().late == 1


@pytest.mark.parametrize("queued", [False, True])
def test_time_in_which_rows_waited_does_not_count(
    connect: Callable[..., hr.Database], clock: Clock, queued: bool
) -> None:
    """An hour in which the machine slept, or in which a push waited, makes nobody idle."""
    db = connect(PAIRS, b="IDLE AFTER 10 SECONDS")
    push(db, "b", 5)
    push(db, "a", 20)
    clock.jump(3600)
    if queued:
        db.push("b", [{"v": 1, "ts": 6}], wait=False)
    clock.jump(-3600)
    clock.let_pass(3)
    assert heartbeat(db) == (6 if queued else 5)
    push(db, "b", 7)
    assert db.stop().late == 0


def test_the_silence_goes_on_after_a_restart(connect: Callable[..., hr.Database], clock: Clock) -> None:
    db = connect(PAIRS, durable=True, b="IDLE AFTER 10 SECONDS")
    push(db, "b", 5)
    push(db, "a", 5, 20)
    clock.let_pass(6)
    push(db, "a", 21)
    db.close()
    clock.instant += 3600 * SECOND
    again = connect(PAIRS, durable=True, b="IDLE AFTER 10 SECONDS", before="ALTER STREAM b DISORDER 2")
    clock.wait_for_looks()
    assert heartbeat(again) == 5
    clock.let_pass(8)
    assert heartbeat(again) == 21


def test_a_skew_without_a_wait_holds_at_once(connect: Callable[..., hr.Database]) -> None:
    db = connect(PAIRS, before="CREATE SKEW FROM a TO b (0 SECONDS, 3)")
    push(db, "a", 10)
    assert heartbeat(db) == 7


def test_a_bound_between_streams_moves_one_by_the_rows_of_another(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    """`b` is at most 3 behind `a`; five seconds later it is not behind at all."""
    skew = "CREATE SKEW FROM a TO b (0 SECONDS, 3), (5 SECONDS, 0)"
    db = connect(PAIRS, before=skew)
    push(db, "a", 20)
    assert heartbeat(db) == 17
    clock.let_pass(7)
    assert heartbeat(db) == 20
    db.execute("DROP SKEW FROM a TO b")
    push(db, "a", 30)
    assert heartbeat(db) == 20


def test_streams_of_a_group_are_moved_by_the_rows_of_the_others(connect: Callable[..., hr.Database]) -> None:
    every = "SELECT v FROM a UNION ALL SELECT v FROM b UNION ALL SELECT v FROM c"
    db = connect(every, before="CREATE SKEW AMONG a, b, c (0 SECONDS, 3)")

    def heartbeats() -> list[int]:
        return [stream.heartbeat for stream in db.status.streams]

    push(db, "b", 10)
    assert heartbeats() == [7, 10, 7]
    push(db, "c", 12)
    assert heartbeats() == [9, 10, 12]
    db.execute("DROP SKEW AMONG a, b, c; CREATE SKEW FROM (a, b) TO c (0 SECONDS, 5)")
    push(db, "b", 20)
    assert heartbeats() == [9, 20, 15]


def test_an_estimated_skew_moves_a_stream_and_is_known_after_a_restart(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    """`b` is at most 20 behind the newest row of `a` before it, and then once 100."""
    skew = "CREATE SKEW FROM a TO b ESTIMATED (WINDOW 1000 ROWS, ALPHA 0.5)"
    db = connect(PAIRS, durable=True, before=skew)
    clock.wait_for_looks()
    push(db, "a", 1000)
    push(db, "b", *range(980, 1080))
    assert db.status.stream("b").skews[0].behind == 20
    push(db, "a", 1200)
    assert [stream.heartbeat for stream in db.status.streams] == [1200, 1180]
    db.close()
    again = connect(PAIRS, durable=True, before=skew)
    clock.wait_for_looks()
    push(again, "a", 1300)
    assert [stream.heartbeat for stream in again.status.streams] == [1300, 1280]
    push(again, "b", 1200, 1290)
    assert again.dead_letters().column("reason").to_pylist() == ["late: older than the heartbeat 1280"]
    (known,) = again.status.stream("b").skews
    assert (known.streams, known.behind) == (("a",), 100)
    assert [change.disorder for change in known.changes] == [20, 100]
    assert "a     b   0 SECONDS  100 (estimated)" in str(again.execute("SHOW SKEWS")[0])


def test_estimated_bounds_move_a_stream_while_the_others_pause(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    """`b` has the instants of `a` two seconds later: it is behind until then, and not after it."""
    skew = "CREATE SKEW FROM a TO b ESTIMATED (WINDOW 1000 ROWS, WAIT 8 SECONDS)"
    db = connect(PAIRS, before=skew)
    clock.wait_for_looks()
    for newest in range(100, 800, 100):
        push(db, "a", newest)
        clock.let_pass(2)
        push(db, "b", *range(newest - 99, newest + 1))
    assert [(skew.wait, skew.behind) for skew in db.status.stream("b").skews] == [
        (0, 99),
        (2 * SECOND, 99),
        (4 * SECOND, 0),
        (6 * SECOND, 0),
        (8 * SECOND, 0),
    ]
    assert "a     b   4 SECONDS  0 (estimated)" in str(db.execute("SHOW SKEWS")[0])
    push(db, "a", 800)
    assert heartbeat(db) == 701
    clock.let_pass(5)
    assert heartbeat(db) == 800
    assert sum(stream.late for stream in db.status.streams) == 0


def test_a_heartbeat_from_outside(connect: Callable[..., hr.Database]) -> None:
    db = connect(PAIRS)
    push(db, "a", 20)
    db.heartbeat("b", 15)
    assert heartbeat(db) == 15
    push(db, "b", 14, 16)
    assert db.stop().late == 1
    db.start()
    with pytest.raises(UserError, match="no query reads a live stream c"):
        db.heartbeat("c", 1)


def test_a_heartbeat_stays_behind_the_rows_that_were_pushed_before_it(clock: Clock) -> None:
    """However many epochs these take."""
    with hr.connect(runner="inline", clock=clock, epoch_rows=1) as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 100")
        db.query("SELECT v FROM s", name="q")
        db.start()
        pushes = [db.push("s", {"v": 1, "ts": instant}, wait=False) for instant in (40, 30, 20, 10)]
        db.heartbeat("s", 50)
        assert all(push.result() for push in pushes)
        assert heartbeat(db) == 50
        assert db.stop().late == 0


def test_heartbeats_in_a_column(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(
            "CREATE STREAM s (v BIGINT, ts BIGINT, safe BIGINT) FROM push TIMESTAMP BY ts "
            "HEARTBEATS FROM safe;"
            "CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 10] GROUP BY v"
        )
        db.start()
        db.push("s", [{"v": 1, "ts": 9, "safe": None}, {"v": 1, "ts": 3, "safe": 2}])
        assert heartbeat(db) == 2
        db.push("s", {"v": None, "ts": None, "safe": 8})
        assert heartbeat(db) == 8
        db.push("s", [{"v": 1, "ts": 8, "safe": None}, {"v": 1, "ts": 7, "safe": None}])
        assert db.stop().streams[0].late == 1
        assert db.dead_letters().num_rows == 1


def test_each_value_has_a_bound_of_its_own_and_the_slowest_holds_the_stream_back(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(ONES, a="DISORDER 2 PER v IDLE AFTER 30 SECONDS")
    push(db, "a", 10, value=1)
    push(db, "a", 9, value=2)
    clock.let_pass(2)
    # The second was not below what counted when it came, and now it is the slowest.
    assert heartbeat(db) == 8
    push(db, "a", 40, 38, 37, value=1)
    push(db, "a", 20, 18, value=2)
    clock.let_pass(2)
    assert heartbeat(db) == 18
    assert db.stop().late == 1
    assert db.dead_letters().column("reason").to_pylist() == ["late: older than the heartbeat 38"]


def test_a_value_that_is_idle_lets_the_stream_go_and_an_idle_stream_is_quiet(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(ONES, a="PER v IDLE AFTER 10 SECONDS")
    db.push("a", [{"v": value, "ts": 10 * value} for value in (1, 2, 3)])
    clock.let_pass(6)
    assert heartbeat(db) == 10
    push(db, "a", 30, value=3)
    push(db, "a", 20, value=2)
    clock.let_pass(7)
    assert heartbeat(db) == 20
    after = epochs(db)
    clock.let_pass(30)
    # The second and the third became idle at once: all that came is all there is.
    assert (heartbeat(db), epochs(db)) == (31, after + 1)
    push(db, "a", 30, 31, value=1)
    summary = db.stop()
    assert (summary.late, summary.streams[0].rows) == (1, 6)


def test_a_stream_waits_for_values_that_it_does_not_know(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(ONES, a="PER v WAIT 10 SECONDS IDLE AFTER 1 MINUTE")
    push(db, "a", 50, value=1)
    clock.let_pass(5)
    push(db, "a", 3, value=2)
    assert heartbeat(db) < 0
    clock.let_pass(7)
    assert heartbeat(db) == 3
    push(db, "a", 2, value=3)
    assert db.stop().late == 1


def test_listed_values_hold_the_stream_back_until_they_come(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(ONES, a="PER v OF (1, 2)")
    push(db, "a", 50, value=1)
    clock.let_pass(100)
    assert heartbeat(db) < 0
    push(db, "a", 3, value=2)
    clock.let_pass(2)
    assert heartbeat(db) == 3
    db.execute("ALTER STREAM a PER v OF (1, 2, 7) IDLE AFTER 20 SECONDS")
    push(db, "a", 60, value=1)
    push(db, "a", 60, value=2)
    clock.let_pass(3)
    assert heartbeat(db) == 3
    push(db, "a", 30, value=7)
    clock.let_pass(2)
    assert heartbeat(db) == 30
    assert db.stop().late == 0


def test_values_are_known_after_a_restart(
    connect: Callable[..., hr.Database], clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In few files, and hardly anything of it in the records of commits."""
    monkeypatch.setattr(values, "RECENT", values.Recent(0))
    said = "DISORDER 2 PER v OF (1, 2) IDLE AFTER 30 SECONDS"
    db = connect(ONES, durable=True, a=said)
    push(db, "a", 10, value=2)
    push(db, "a", 40, value=1)
    clock.let_pass(20)
    push(db, "a", 39, value=1)
    db.close()
    again = connect(ONES, durable=True, a=said)
    assert heartbeat(again) == 8
    push(again, "a", 37, 38, value=1)
    clock.let_pass(12)
    # The second has been silent for half a minute, before and after the restart.
    assert heartbeat(again) == 38
    assert again.stop().late == 1
    names = {path.name for path in (tmp_path / "store" / "segments").iterdir()}
    assert len([name for name in names if "-l0-" in name]) <= 2


def test_what_is_known_of_the_values_of_another_column_is_of_no_use(
    connect: Callable[..., hr.Database], clock: Clock
) -> None:
    db = connect(ONES, a="PER v OF (1)")
    push(db, "a", 40, value=1)
    db.execute("ALTER STREAM a PER ts OF (50)")
    push(db, "a", 45, value=1)
    push(db, "a", 50, value=1)
    clock.let_pass(2)
    assert heartbeat(db) == 45
    assert db.stop().late == 0


def test_a_heartbeat_of_the_future_promises_nothing(clock: Clock) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(
            "CREATE STREAM s (ts TIMESTAMP, safe TIMESTAMP) FROM push TIMESTAMP BY ts HEARTBEATS FROM safe"
        )
        db.query("SELECT ts FROM s", name="q")
        db.start()
        now = time_of(clock.instant)
        db.push("s", {"ts": now, "safe": now.replace(year=2126)})
        assert heartbeat(db) < 0
        db.push("s", {"ts": now, "safe": now})
        assert heartbeat(db) == clock.instant
        assert db.stop().late == 0


def test_a_row_of_the_future_is_set_apart(clock: Clock) -> None:
    """One row dated a century ahead would make all later ones late."""
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute("CREATE STREAM s (ts TIMESTAMP) FROM push TIMESTAMP BY ts AT MOST 2 HOURS AHEAD")
        db.query("SELECT ts FROM s", name="q")
        db.start()
        now = clock.instant
        for ahead in (0, 100 * 365 * 24, 2, 1, 3):
            db.push("s", {"ts": time_of(now + ahead * 3600 * SECOND)})
        summary = db.stop()
        part = summary.streams[0]
        assert (part.rows, part.late, part.rejected) == (2, 1, 2)
        reason = db.dead_letters().column("reason")[0].as_py()
        assert reason.startswith(
            "the timestamp ts is more than 2 HOURS ahead of the clock, after 2027-01-15T10"
        )


def time_of(instant: int) -> datetime:
    return datetime.fromtimestamp(instant // SECOND, UTC)


def test_a_store_knows_what_was_altered(tmp_path: Path) -> None:
    """A text that says what was declared before that is refused."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"v": [1, 2], "ts": [5, 3]}), path)

    def database() -> hr.Database:
        return hr.connect(runner="inline", storage=tmp_path / "store")

    def text(disorder: int) -> str:
        return (
            f"CREATE STREAM file FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ts DISORDER {disorder};"
            f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {disorder};"
            "CREATE QUERY q AS SELECT s.v FROM s, file [RANGE 10] WHERE s.v = file.v"
        )

    with database() as db:
        db.execute(text(2))
        db.start()
        db.execute("ALTER STREAM file DISORDER 3; ALTER STREAM s DISORDER 3")
        push(db, "s", 4)
    with database() as db, pytest.raises(LanguageError, match="the store has another stream file"):
        db.execute(text(2))
    with database() as db:
        db.execute(text(3))
        db.start()
        push(db, "s", 14)
        assert heartbeat(db) == 11
