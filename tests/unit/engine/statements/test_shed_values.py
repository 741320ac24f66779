"""The shedder moves the thresholds of queries LOSS TOLERANT BY a column, as it moves shares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.nodes import SemanticDrop
from headrace.algebra.tunings.tunings import movable_in
from headrace.runtime.driver.facts.capacity import from_streams
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder import recent
from headrace.runtime.driver.shedder.findings import ShedShare
from headrace.runtime.driver.shedder.recent import MeasuredLoad, boxes_of, costs_of
from headrace.steps import WHOLE
from inside import run_of
from waiting import wait_until

CLAUSE = "LOSS TOLERANT BY v (0: 0, 100: 1)"
STATEMENTS = f"""
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q {CLAUSE} AS SELECT k, v FROM s [RANGE 10];
CREATE QUERY exact AS SELECT v FROM s [RANGE 10]
"""


@dataclass
class World:
    """The need of a run: something for what bears no loss, and something for each number."""

    rest: float = 0.1
    each: float = 0.2
    behind: float | None = 0.0

    def load(self, run: PublishedRun) -> MeasuredLoad:
        tunings = {one for plan in run.queries.plans.values() for one in movable_in(plan)}
        boxes = boxes_of(run.queries.graph, run.statistics, run.queries.tunings)
        kept = {
            one: boxes[node.number].selectivity
            for one in tunings
            for node in run.queries.graph.nodes
            if getattr(node.plan, "loss", None) == one.loss
        }
        needed = self.rest + sum(self.each * share for share in kept.values())
        costs = dict.fromkeys(sorted(tunings, key=repr), self.each)
        return MeasuredLoad(needed, self.behind, costs, {"s": 100.0})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(recent.RecentLoad, "load", lambda _, run, bound: found.load(run))
    return found


def database(**options: Any) -> hr.Database:
    made = hr.connect(runner="inline", buckets=2, **{"latency_bound": 2, **options})
    made.execute(STATEMENTS)
    made.start()
    return made


@pytest.fixture
def db(world: World) -> Iterator[hr.Database]:
    with database() as made:
        yield made


def push(db: hr.Database, first: int, last: int, step: int = 100) -> None:
    for begin in range(first, last, step):
        times = range(begin, min(begin + step, last))
        # Of a hundred rows each has another value, from 0 to 99: utility u is that of the rows from 100 u on.
        assert db.push("s", [{"k": at % 5, "v": at * 37 % 100, "ts": at} for at in times])


def one_of(db: hr.Database) -> ShedShare:
    found = db.status.shedding
    assert found is not None
    (one,) = found.shares
    return one


def threshold(db: hr.Database) -> float:
    one = one_of(db)
    return one.number(one.share) / WHOLE


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def lines_of(db: hr.Database, text: str) -> str:
    return next(line for line in told(db, text).splitlines() if "least utility" in line)


def test_a_threshold_rises_under_overload_and_falls_when_there_is_room(db: hr.Database, world: World) -> None:
    push(db, 0, 400)
    assert threshold(db) == 0
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 400, 500)
    world.behind = 0.0
    push(db, 500, 1000)
    # Half of the rows have to go.
    assert threshold(db) == 0.5
    assert one_of(db).share == WHOLE // 2
    assert one_of(db).utility == pytest.approx(0.7525, abs=0.0001)
    (known,) = db.status.tunings.values()
    assert [step.begin for step in known.steps] == [500]
    assert "raised from 0 to 0.5 by the shedder, since 120 % of the run's time" in known.why
    assert {row["v"] for row in db["q"].snapshot(900).to_pylist()} == {
        at * 37 % 100 for at in range(891, 901) if at * 37 % 100 >= 50
    }
    assert len(db["exact"].snapshot(900)) == 10
    world.rest = world.each = 0.1
    push(db, 1000, 1600)
    assert threshold(db) == 0
    assert len(db["q"].snapshot(1590)) == 10


def test_it_falls_only_when_windows_have_drained(db: hr.Database, world: World) -> None:
    push(db, 0, 300)
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 300, 400)
    world.rest = world.each = 0.1
    world.behind = 0.0
    push(db, 400, 407, step=7)
    assert threshold(db) == 0.5
    push(db, 407, 707)
    assert threshold(db) == 0


def test_what_is_worth_most_is_never_left_out(db: hr.Database, world: World) -> None:
    push(db, 0, 200)
    world.rest, world.each, world.behind = 9.0, 9.0, 60.0
    push(db, 200, 1200)
    assert threshold(db) == 1
    # Of 99, the largest value, utility is 0.99; a NULL has none.
    assert db.push("s", [{"k": 0, "v": 100, "ts": 1200}, {"k": 0, "v": None, "ts": 1200}])
    push(db, 1201, 1301)
    assert [row["v"] for row in db["q"].snapshot(1205).to_pylist()] == [None, 100]
    assert "more comes than can be answered, and no query bears more loss" in told(db, "SHOW SHEDDING")


def test_what_is_left_out_is_told_as_shares_are(db: hr.Database, world: World) -> None:
    db.execute("CREATE QUERY said AS SELECT epoch, share, least, wanted, loss, why FROM headrace.shedding")
    push(db, 0, 300)
    line = lines_of(db, "SHOW SHEDDING")
    assert re.search(r"\(0: 0, 100: 1\) +0 +1 +1 +0 +0 +\S+ +\S+ +2 % for 0.1 +all rows are kept", line)
    would = told(db, "EXPLAIN ALTER QUERY q SET (KEEP UTILITY 0.8)")
    assert would.startswith("rows with v below 80 would be left out, where all rows are kept now; ")
    assert "0.2 of the rows that came lately are worth as much, with 0.362 of all utility" in would
    assert would.endswith("that would save about 16 % of the run's time")
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 300, 400)
    world.behind = 0.0
    push(db, 400, 500)
    line = lines_of(db, "SHOW SHEDDING")
    assert re.search(r"\(0: 0, 100: 1\) +0.5 +0.753 +1 +0.5 +\S+ +\S+ +\S+ +8 % for 0.1", line)
    for text in ("SHOW SHEDDING", "DESCRIBE QUERY q", "WHY q"):
        assert "rows with v below 50 are left out from 400 on" in told(db, text)
        assert "raised from 0 to 0.5 by the shedder" in told(db, text)
    assert "SET latency_bound = DEFAULT keeps all" in told(db, "WHY q")
    (plain,) = json.loads(json.dumps(db.status.to_dict()))["shedding"]["shares"]
    assert (plain["threshold"], plain["wanted_threshold"], plain["share"]) == (0.5, 0.5, 0.5)
    said = db["said"]
    wait_until(lambda: any(row["share"] == 0.5 for row in said.changes().to_pylist()), True)
    rows = said.changes().to_pylist()
    assert (rows[0]["share"], rows[0]["why"], rows[0]["loss"]) == (1, None, CLAUSE)
    assert all("raised from 0 to 0.5" in row["why"] for row in rows if row["share"] == 0.5)


def test_it_advises_and_gives_back(db: hr.Database, world: World) -> None:
    push(db, 0, 300)
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 300, 400)
    assert threshold(db) == 0.5
    db.execute("SET shedder = 'advise'")
    push(db, 500, 700)
    assert threshold(db) == 0
    assert one_of(db).number(one_of(db).wanted) == WHOLE // 2
    (known,) = db.status.tunings.values()
    assert known.why == "lowered from 0.5 to 0, since the shedder only advises"
    # What somebody has asked for stays.
    db.execute("ALTER QUERY q SET (KEEP UTILITY 0.3)")
    push(db, 700, 900)
    assert threshold(db) == 0.3
    db.execute("SET latency_bound = DEFAULT")
    push(db, 900, 1000)
    values = db.status.query("q").values
    assert values is not None
    assert values.threshold == 300_000


def test_another_query_would_change_it(db: hr.Database, world: World) -> None:
    push(db, 0, 200)
    world.rest, world.each = 0.3, 0.6
    push(db, 200, 300)
    text = told(db, "EXPLAIN CREATE QUERY more AS SELECT v FROM s [RANGE 10] WHERE k = 1")
    assert re.search(r"rows with v below \d+ would be left out by the shedder of those of s LOSS", text)


def test_of_a_join_the_rows_of_one_side_are_saved(world: World) -> None:
    with database() as db:
        db.execute("DROP QUERY q; CREATE STREAM r (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute(
            f"CREATE QUERY q {CLAUSE} AS SELECT a.v FROM s [RANGE 9] a JOIN r [RANGE 9] b ON a.k = b.k"
        )
        for begin in range(0, 200, 50):
            push(db, begin, begin + 50)
            assert db.push("r", [{"k": at % 5, "ts": at} for at in range(begin, begin + 50)])
        db.execute("ALTER QUERY q SET (KEEP UTILITY 0.9)")
        run = run_of(db).reading
        graph = run.queries.graph
        boxes = boxes_of(graph, run.statistics, run.queries.tunings)
        (drop,) = (node for node in graph.nodes if isinstance(node.plan, SemanticDrop))
        assert boxes[drop.number].selectivity == pytest.approx(0.1, abs=0.01)
        both, one = (
            list(costs_of(graph, boxes, from_streams(graph, rates)).values())
            for rates in ({"s": 1.0, "r": 9.0}, {"s": 1.0})
        )
        assert both == one
        assert one[0] > 0
