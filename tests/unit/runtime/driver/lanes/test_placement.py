"""Queries go behind where they make others late, come back when that is over, and share no state with those
that went on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar
from unittest.mock import patch

import pytest

import headrace as hr
from headrace.lowering.behind import input_behind
from headrace.runtime.driver.change.placement import placed
from headrace.runtime.driver.change.wanted import Placement
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.lanes import lanes as lanes_module
from headrace.runtime.driver.lanes.lanes import Lanes
from headrace.runtime.intake.streams import Intake
from headrace.scheduling.priority import Priority
from headrace.time import Duration
from inside import execution_of, run_of

T = TypeVar("T")

COUNTS = "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k"
SECOND = Priority(bound=Duration(1_000_000, "SECOND"))


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", threads=1) as made:
        made.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        yield made


def live_of(db: hr.Database) -> LiveRun:
    live = execution_of(db)._live
    assert live is not None
    return live


def between_epochs(db: hr.Database, change: Callable[[], T]) -> T:
    return live_of(db)._between_epochs(change)


@dataclass
class Watched:
    """The lanes of a run beside its own, with a clock and seconds that are given to them.

    Attributes:
        db: the database.
        weighs: the part that each query has in an epoch's seconds.
        lanes: its lanes.
        now: the clock.
    """

    db: hr.Database
    weighs: dict[str, float]
    lanes: Lanes = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.lanes = Lanes(run_of(self.db), lambda: self.now, {self.db["light"].id: SECOND})

    def seconds(self, _: PublishedRun) -> dict[str, float]:
        answered = self.lanes.run.reading.queries.answered
        return {
            self.db[name].id: part
            for name, part in self.weighs.items()
            if answered[self.db[name].id].lane is None
        }

    def epochs(self, name: str, number: int, seconds: float, rows: int = 1) -> None:
        """Let so many epochs take rows of an input, for so long each."""
        for _ in range(number):
            self.now += seconds
            self.lanes.note({name: Intake(rows, end=rows)}, self.lanes.run.reading, seconds)

    def relief(self) -> tuple[str, ...] | None:
        with patch.object(lanes_module, "seconds_of", self.seconds):
            found = self.lanes.relief()
        assert found is None or found.behind
        return None if found is None else tuple(map(self.lanes.run.reading.queries.name_of, found.queries))

    def put(self, change: Placement) -> None:
        between_epochs(self.db, lambda: self.lanes.run.change(change))


@pytest.fixture
def watched(db: hr.Database) -> Watched:
    for name, length in (("light", 3), ("heavy", 4), ("middling", 5)):
        db.execute(f"CREATE QUERY {name} AS SELECT k, SUM(v) AS x FROM s [RANGE {length}] GROUP BY k")
    db.start()
    return Watched(db, {"light": 1.0, "heavy": 6.0, "middling": 3.0})


def test_the_heaviest_query_goes_behind_that_makes_another_late(watched: Watched) -> None:
    watched.epochs("s", 40, 0.4)
    assert watched.relief() is None
    watched.epochs("s", 40, 0.8)
    assert watched.relief() == ("heavy",)
    # Without it an epoch is expected to take less: nobody else has to go.
    watched.weighs.pop("heavy")
    assert watched.relief() is None
    watched.epochs("s", 40, 0.8)
    assert watched.relief() == ("middling",)


def test_nobody_goes_behind_who_would_be_no_relief_or_is_as_urgent(watched: Watched) -> None:
    watched.epochs("s", 40, 5.0)
    watched.weighs = {"light": 9.0, "heavy": 1.0, "middling": 1.0}
    assert watched.relief() is None
    watched.weighs = dict.fromkeys(watched.weighs, 0.0)
    assert watched.relief() is None
    watched.weighs = {"light": 1.0, "heavy": 9.0, "middling": 3.0}
    watched.lanes.priorities = {**watched.lanes.priorities, watched.db["heavy"].id: SECOND}
    assert watched.relief() == ("middling",)


def test_it_comes_back_when_there_is_time_for_it_and_stays(watched: Watched) -> None:
    heavy = watched.db["heavy"].id
    watched.epochs("s", 40, 0.8)
    watched.put(Placement((heavy,), behind=True))
    (lane,) = watched.lanes.run.reading.queries.lanes
    turns = input_behind("s", lane)
    watched.epochs(turns, 19, 0.4)
    watched.epochs("s", 40, 0.01)
    assert watched.lanes.returning() is None
    watched.epochs(turns, 1, 0.4)
    change = watched.lanes.returning()
    assert change == Placement((heavy,), behind=False)
    assert change is not None
    watched.put(change)
    watched.epochs("s", 40, 0.41)
    assert watched.relief() is None


def test_it_is_asked_again_only_after_as_many_turns_where_there_is_no_time(watched: Watched) -> None:
    heavy = watched.db["heavy"].id
    watched.put(Placement((heavy,), behind=True))
    (lane,) = watched.lanes.run.reading.queries.lanes
    turns = input_behind("s", lane)
    watched.epochs(turns, 20, 0.4)
    watched.epochs("s", 40, 0.2)
    assert watched.lanes.returning() is None
    watched.epochs("s", 40, 0.01)
    watched.epochs(turns, 19, 0.4)
    assert watched.lanes.returning() is None
    watched.epochs(turns, 1, 0.4)
    assert watched.lanes.returning() == Placement((heavy,), behind=False)


def test_a_query_with_a_weight_does_not_come_back_by_itself(watched: Watched) -> None:
    heavy = watched.db["heavy"].id
    watched.put(Placement((heavy,), behind=True))
    (lane,) = watched.lanes.run.reading.queries.lanes
    watched.epochs(input_behind("s", lane), 60, 0.001)
    watched.lanes.priorities = {heavy: Priority(weight=1.0)}
    assert watched.lanes.returning() is None
    watched.lanes.priorities = {}
    assert watched.lanes.returning() == Placement((heavy,), behind=False)


def test_who_comes_back_has_state_of_its_own_where_others_have_the_same_operators(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY ahead AS {COUNTS}; CREATE QUERY q AS {COUNTS}")
    db.start()
    ahead, moved = db["ahead"].id, db["q"].id
    run = run_of(db)

    def operators(present: PublishedRun, query: str) -> set[str]:
        graph = present.queries.graph
        users = zip(graph.nodes, graph.users, strict=True)
        return {node.identity for node, names in users if query in names and node.reads is None}

    assert operators(run.reading, ahead) == operators(run.reading, moved)
    between_epochs(db, lambda: run.change(Placement((moved,), behind=True)))
    assert operators(run.reading, ahead).isdisjoint(operators(run.reading, moved))
    db.push("s", [{"k": 1, "v": 1, "ts": 1}, {"k": 2, "v": 1, "ts": 2}])
    db.heartbeat("s", 9)

    def back() -> set[str]:
        live = live_of(db)
        while any(not one.is_present for one in live.lanes.backlogs):
            (one,) = live.lanes.backlogs
            live._pass(run.turn_of(one, 1))
        turn = placed(run.present, Placement((moved,), behind=False))
        return {identity for identity, _ in turn.given}

    given = between_epochs(db, back)
    assert given
    assert given.isdisjoint(operators(run.reading, ahead))
