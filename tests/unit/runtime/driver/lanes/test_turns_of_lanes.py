"""Who has the next turn: beside lanes that are hurried, after idle time, and by what age of rows."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

import headrace as hr
from headrace.lowering.behind import input_behind, lane_of
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.driver.lanes import lanes as lanes_module
from headrace.runtime.driver.lanes.lanes import Lanes
from headrace.runtime.intake.streams import Intake
from headrace.scheduling.priority import Priority
from headrace.time import MICROSECONDS, ManualClock
from inside import execution_of, run_of
from waiting import wait_for

SECOND = MICROSECONDS["SECOND"]
STREAMS = """CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
    CREATE STREAM t (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"""


def live_of(db: hr.Database) -> LiveRun:
    live = execution_of(db)._live
    assert live is not None
    return live


def lanes_of(db: hr.Database, *names: str) -> set[int]:
    """The lanes of some queries, which are behind."""
    answered = run_of(db).reading.queries.answered
    found = {answered[db[name].id].lane for name in names}
    assert None not in found
    return {lane for lane in found if lane is not None}


@dataclass
class Turns:
    """The turns of two lanes, a over s and b over t, that are chosen beside the run and never taken.

    In the run their queries have no weight, so that their rows wait.

    Attributes:
        db: the database.
        lanes: who chooses.
        now: the clock.
    """

    db: hr.Database
    lanes: Lanes = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        weights = {self.db[name].id: Priority(weight=1.0) for name in "ab"}
        self.lanes = Lanes(run_of(self.db), lambda: self.now, weights)

    def lane(self, name: str) -> int:
        (found,) = lanes_of(self.db, name)
        return found

    def chosen(self, *, front: bool) -> set[str]:
        """The names of the lanes that have the next turn; none for the front, or where nobody has one."""
        named = {self.lane(name): name for name in "ab"}
        found = self.lanes.take(front=front)
        return {named[lane] for name in found or {} if (lane := lane_of(name)) is not None}

    def took(self, name: str, seconds: float) -> None:
        """Note a turn of a lane in which its operators work; it takes no rows of those that wait."""
        self.now += seconds
        lane = self.lane(name)
        taken = {input_behind({"a": "s", "b": "t"}[name], lane): Intake(1, end=1)}
        with patch.object(lanes_module, "seconds_by_lane", lambda *_: {lane: seconds}):
            self.lanes.note(taken, run_of(self.db).reading, seconds)


@pytest.fixture
def turns() -> Iterator[Turns]:
    with hr.connect(runner="inline", threads=1) as db:
        db.execute(STREAMS + "CREATE QUERY front AS SELECT k FROM s [RANGE 2];")
        db.start()
        # What is created by itself has a lane of its own.
        for name, stream in (("a", "s"), ("b", "t")):
            db.execute(f"CREATE QUERY {name} WEIGHT 0 AS SELECT COUNT(*) AS n FROM {stream} [RANGE 5]")
        db.push("s", [{"k": at, "ts": at} for at in range(10)])
        yield Turns(db)


def test_whoever_else_waits_has_every_second_turn_beside_one_that_is_hurried(turns: Turns) -> None:
    turns.lanes.hurried = {turns.lane("a")}
    assert [turns.chosen(front=True) for _ in range(6)] == [{"a"}, set()] * 3
    turns.db.push("t", [{"k": at, "ts": at} for at in range(10)])
    assert [turns.chosen(front=False) for _ in range(6)] == [{"a"}, {"b"}] * 3


def test_one_that_is_hurried_has_all_turns_where_nobody_else_waits(turns: Turns) -> None:
    turns.lanes.hurried = {turns.lane("a")}
    assert [turns.chosen(front=False) for _ in range(4)] == [{"a"}] * 4


def test_who_begins_to_wait_has_no_claim_on_the_time_in_which_nothing_of_it_waited(turns: Turns) -> None:
    for _ in range(20):
        assert turns.chosen(front=False) == {"a"}
        turns.took("a", 1.0)
    turns.db.push("t", [{"k": at, "ts": at} for at in range(10)])
    had = []
    for _ in range(10):
        (name,) = turns.chosen(front=False)
        turns.took(name, 1.0)
        had.append(name)
    # With a claim on them b would have all ten.
    assert had.count("a") == had.count("b") == 5


def test_the_age_of_rows_is_by_the_clock_of_the_epoch_that_took_them() -> None:
    clock = ManualClock(1_000 * SECOND)
    with hr.connect(runner="inline", threads=1, clock=clock) as db:
        db.execute(STREAMS + "CREATE QUERY q WEIGHT 0 AS SELECT k FROM s [RANGE 2]")
        db.start()
        db.push("s", {"k": 1, "ts": 1})
        clock.advance(7 * SECOND)
        db.push("s", {"k": 1, "ts": 2})
        lanes = Lanes(run_of(db), lambda: 0.0, {db["q"].id: Priority(weight=0.0)})
        lanes.look()
        assert [one.behind for one in lanes.status if one.lane] == [7.0]


def test_those_come_near_the_present_first_that_read_what_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("k,w\n0,1\n")
    with hr.connect(runner="inline", threads=1) as db:
        db.execute(
            f"{STREAMS}CREATE RELATION n FROM csv OPTIONS (path '{tmp_path / 'n.csv'}') REFRESH ON DEMAND;"
            "CREATE QUERY front AS SELECT k FROM t [RANGE 2];"
            "ALTER STREAM s DEAD LETTERS KEEP ALL"
        )
        db.start()
        db.execute("CREATE QUERY other WEIGHT 0 AS SELECT k FROM t [RANGE 2]")
        db.execute("CREATE QUERY joined WEIGHT 0 AS SELECT s.k, n.w FROM s [RANGE 2], n WHERE s.k = n.k")
        db.execute("CREATE QUERY failing WEIGHT 0 AS SELECT 1 / k AS x FROM s [RANGE 2]")
        db.push("s", {"k": 0, "ts": 1})
        asked, far = list[set[int]](), Lanes.far

        def noted(lanes: Lanes, which: Collection[int]) -> bool:
            asked.append({*which})
            return far(lanes, which)

        with patch.object(Lanes, "far", noted):
            lanes = lanes_of(db, "joined")
            db.execute("REFRESH RELATION n")
            assert asked
            assert asked.pop() == lanes
            # Who has come back for that has another lane from the next rows on.
            db.push("s", {"k": 0, "ts": 2})
            lanes = lanes_of(db, "joined", "failing")
            db.execute("REPLAY DEAD LETTERS OF s")
            assert asked.pop() == lanes
            assert lanes.isdisjoint(lanes_of(db, "other"))


def test_others_are_created_and_pushed_to_while_one_comes_near_the_present(turns: Turns) -> None:
    db, near, waits = turns.db, threading.Event(), threading.Event()
    # Whoever waits for the change waits until it gives up.
    patience = threading.Timer(10, near.set)

    def far(lanes: Lanes, which: Collection[int]) -> bool:
        waits.set()
        return bool(which) and not near.is_set()

    with patch.object(Lanes, "far", far):
        change = threading.Thread(target=db.execute, args=("ALTER QUERY a SET CONSISTENCY MIDDLE",))
        change.start()
        patience.start()
        try:
            wait_for(waits.is_set)
            other = db.query("SELECT k FROM t [RANGE 3]", name="other")
            db.push("t", [{"k": 1, "ts": 99}, {"k": 2, "ts": 100}])
            assert other.snapshot(99).to_pylist() == [{"k": 1}]
            assert not near.is_set()
        finally:
            patience.cancel()
            near.set()
            change.join(30)
    assert not change.is_alive()
    assert live_of(db).lanes.hurried == set()
