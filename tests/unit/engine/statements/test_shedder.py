"""SET latency_bound, SET shedder and SHOW SHEDDING: rows are left out where a run cannot keep up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.errors import LanguageError, UserError
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder import recent
from headrace.runtime.driver.shedder.findings import Shedding
from headrace.runtime.driver.shedder.precision import FIRST
from headrace.runtime.driver.shedder.recent import MeasuredLoad
from headrace.runtime.driver.shedder.shedder import FIRST_COMMITS
from headrace.steps import WHOLE
from headrace.time import ManualClock
from waiting import wait_until

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
COUNTED = "SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 100]"
EXACT = "CREATE QUERY exact AS SELECT COUNT(*) AS n FROM s [RANGE 100]"


@dataclass
class World:
    """What a run is found to need: something for what bears no loss, and something for each share."""

    rest: float = 0.1
    each: float = 0.2
    behind: float | None = 0.0

    def load(self, run: PublishedRun) -> MeasuredLoad:
        tunings = {one for plan in run.queries.plans.values() for one in shares_in(plan)}
        costs = dict.fromkeys(sorted(tunings, key=repr), self.each)
        kept = [size_of(one, run.queries.tunings) for one in costs]
        needed = self.rest + sum(self.each * share / WHOLE for share in kept)
        return MeasuredLoad(needed, self.behind, costs, {"s": 100.0})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(recent.RecentLoad, "load", lambda _, run, bound: found.load(run))
    return found


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    options = {"latency_bound": 2, **options}
    return hr.connect(runner="inline", buckets=2, storage=storage, **options)


@pytest.fixture
def db(world: World) -> Iterator[hr.Database]:
    with database() as made:
        made.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS {COUNTED}; {EXACT}")
        made.start()
        yield made


def push(db: hr.Database, first: int, last: int, step: int = 50) -> None:
    for begin in range(first, last, step):
        times = range(begin, min(begin + step, last))
        assert db.push("s", [{"k": at % 5, "v": at % 7, "ts": at} for at in times])


def shedding(db: hr.Database) -> Shedding:
    found = db.status.shedding
    assert found is not None
    return found


def share(db: hr.Database, place: int = 0) -> float:
    return shedding(db).shares[place].share / WHOLE


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def test_rows_are_left_out_under_overload_and_all_are_kept_again(db: hr.Database, world: World) -> None:
    push(db, 0, 200)
    assert share(db) == 1
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 200, 250)
    world.behind = 0.0
    push(db, 250, 500)
    assert share(db) == 0.5
    (known,) = db.status.tunings.values()
    assert [step.begin for step in known.steps] == [250]
    assert "lowered from 1 to 0.5 by the shedder, since 120 % of the run's time" in known.why
    assert known.why in told(db, "DESCRIBE QUERY q")
    found = db["q"].snapshot(400).to_pylist()[0]
    assert found["n_low"] < found["n"] < found["n_high"]
    assert db["exact"].snapshot(400).to_pylist() == [{"n": 100}]
    world.rest = world.each = 0.1
    push(db, 500, 700)
    assert share(db) == 1
    assert db["q"].snapshot(690).to_pylist()[0]["n_low"] == 100


def test_more_is_kept_again_only_when_windows_have_drained(db: hr.Database, world: World) -> None:
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 0, 50)
    world.rest = world.each = 0.1
    world.behind = 0.0
    push(db, 50, 150)
    assert share(db) == 0.5
    push(db, 150, 300)
    assert share(db) == 1


def test_nobody_who_does_not_say_so_loses_a_row(world: World) -> None:
    world.rest, world.behind = 9.0, 60.0
    with database() as db:
        db.execute(f"{STREAM}; {EXACT}")
        db.start()
        push(db, 0, 300)
        assert not db.status.tunings
        assert "more comes than can be answered, and no query bears loss" in shedding(db).text
        assert "no query bears loss" in told(db, "SHOW SHEDDING")


def test_what_costs_least_is_left_out_first(world: World) -> None:
    with database() as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        db.execute(f"CREATE QUERY half LOSS TOLERANT (0.5: 0.95) AS {COUNTED}")
        db.start()
        world.rest, world.each, world.behind = 0.2, 0.4, 3.0
        push(db, 0, 50)
        world.behind = 0.0
        push(db, 50, 100)
        plain, half = (share(db, place) for place in (0, 1))
        assert plain == 1
        assert half == pytest.approx(0.5)
        assert shedding(db).shares[1].utility == pytest.approx(0.95)


def test_it_advises_or_is_off(db: hr.Database, world: World) -> None:
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    db.execute("SET shedder = 'advise'")
    push(db, 0, 100)
    assert not db.status.tunings
    (one,) = shedding(db).shares
    assert (one.share, one.wanted) == (WHOLE, WHOLE // 2)
    shown = told(db, "SHOW SHEDDING")
    assert re.search(r"rows of s LOSS TOLERANT +1 +1 +0.01 +0.5 ", shown)
    db.execute("SET shedder = 'off'")
    assert db.status.shedding is None
    assert "the shedder is off" in told(db, "SHOW SHEDDING")
    db.execute("SET latency_bound = DEFAULT; SET shedder = DEFAULT")
    assert "there is no latency_bound" in told(db, "SHOW SHEDDING")
    push(db, 100, 200)
    assert not db.status.tunings


def test_streams_that_end_are_read_whole(world: World) -> None:
    world.rest, world.behind = 9.0, 60.0
    with database() as db:
        db.stream("t", [{"v": at, "ts": at} for at in range(50)], timestamp="ts")
        db.execute("CREATE QUERY q LOSS TOLERANT AS SELECT COUNT(*) AS n FROM t [RANGE 10]")
        db.run()
        assert db["q"].snapshot(45).to_pylist() == [{"n": 10, "n_low": 10, "n_high": 10}]


def test_the_bound_is_kept_with_the_store_and_shown(world: World, tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{STREAM}; {EXACT}")
        db.start()
        db.execute("SET latency_bound = '1500 MILLISECONDS'; SET shedder = 'advise'")
        assert settings(db)["latency_bound"] == ("1500 MILLISECONDS", "SET")
    with hr.connect(runner="inline", storage=tmp_path) as db:
        assert settings(db)["latency_bound"] == ("1500 MILLISECONDS", "SET")
        assert settings(db)["shedder"] == ("advise", "SET")
    with hr.connect(runner="inline", latency_bound="2 seconds") as db:
        assert settings(db)["latency_bound"] == ("2 SECONDS", "connect")
        assert settings(db)["shedder"] == ("act with a latency_bound", "default")


def settings(db: hr.Database) -> dict[str, tuple[str, str]]:
    rows = [line.split("  ") for line in told(db, "SHOW SETTINGS").splitlines()]
    found = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return {row[0]: (row[1], row[2]) for row in found if len(row) == 3}


@pytest.mark.parametrize("bound", [0, -1, "soon", "5", True, float("nan"), float("inf")])
def test_a_bound_that_is_none_is_refused(bound: Any) -> None:
    with pytest.raises(UserError):
        hr.connect(runner="inline", latency_bound=bound)


def test_the_shares_of_each_epoch_are_a_stream(db: hr.Database, world: World) -> None:
    db.execute("CREATE QUERY shares AS SELECT epoch, share, utility, needed, why FROM headrace.shedding")
    push(db, 0, 50)
    world.rest, world.each, world.behind = 0.4, 0.8, 3.0
    push(db, 50, 200)
    said = db["shares"]
    wait_until(lambda: said.changes().num_rows >= 2, True)
    found = said.changes().to_pylist()
    assert [row["share"] for row in found[:2]] == [1.0, 0.5]
    assert found[0]["why"] is None
    assert "lowered from 1 to 0.5" in found[1]["why"]


def test_findings_are_plain_values(db: hr.Database, world: World) -> None:
    push(db, 0, 100)
    found = json.loads(json.dumps(db.status.to_dict()))["shedding"]
    assert found["bound"] == 2_000_000
    assert found["room"] == "enough"
    (one,) = found["shares"]
    assert one["share"] == 1.0
    assert set(one["at"]) == {"2", "3", "5"}


def test_a_promise_limits_what_is_left_out(world: World) -> None:
    with database() as db:
        db.execute(f"{STREAM}; CREATE QUERY q WITHIN 20 PERCENT AS SELECT COUNT(*) AS n FROM s [RANGE 1000]")
        db.start()
        world.rest, world.each, world.behind = 0.1, 9.0, 3.0
        push(db, 0, 1000)
        # Nothing is known of bounds before some rows are left out; and then not before all are of this share.
        assert share(db) == 0.9
        push(db, 1000, 12_000, step=250)
        promised = share(db)
        assert 0.05 < promised < 0.3
        found = db["q"].snapshot(11_000).to_pylist()[0]
        assert (found["n_high"] - found["n"]) / found["n"] <= 0.2
        (one,) = shedding(db).shares
        assert one.least <= one.share
        with pytest.raises(
            LanguageError, match=r"bounds would be .* and q has promised 20 percent"
        ) as refused:
            db.execute("ALTER QUERY q SET (KEEP 0.01)")
        assert refused.value.hint is not None
        least = re.search(r"KEEP ([0-9.]+)", refused.value.hint)
        assert least is not None
        assert 0.05 < float(least[1]) < promised
        asked = f"ALTER QUERY q SET (KEEP {least[1]})"
        assert "20 percent are promised" in told(db, f"EXPLAIN {asked}")
        assert least[1] in told(db, asked)


def test_explain_says_what_another_share_would_do(db: hr.Database, world: World) -> None:
    push(db, 0, 100)
    said = told(db, "EXPLAIN ALTER QUERY q SET (KEEP 0.25)")
    saved = "that would save about 15 % of the run's time"
    assert said == f"0.25 of the rows that come would be kept, where 1 is now; {saved}"
    assert not db.status.tunings
    assert told(db, "EXPLAIN ALTER QUERY q SET (KEEP 1)") == "1 of the rows is kept already"
    with pytest.raises(LanguageError, match="does not say that rows may be left out"):
        db.execute("EXPLAIN ALTER QUERY exact SET (KEEP 0.5)")


def test_a_run_is_measured_by_its_clock_and_its_operators() -> None:
    clock = ManualClock()
    with database(clock=clock) as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        db.start()
        for number in range(12):
            push(db, 100 * number, 100 * (number + 1), step=100)
            # What the first epochs of a process take is no measure; and the bound is two seconds.
            assert (shedding(db).needed is None) == (number < FIRST_COMMITS + 2)
            clock.instant += 1_000_000
        found = shedding(db)
        assert found.needed is not None
        assert 0 < found.needed < 1
        assert found.behind == 0
        assert found.shares[0].saves > 0


def test_small_groups_are_tried_ever_more_seldom(world: World) -> None:
    with database() as db:
        db.execute(
            f"{STREAM}; CREATE QUERY q WITHIN 5 PERCENT AS SELECT COUNT(*) AS n FROM s [RANGE 50] GROUP BY v"
        )
        db.start()
        world.rest, world.each, world.behind = 0.1, 9.0, 3.0
        lowered = []
        for begin in range(0, 3000, 50):
            push(db, begin, begin + 50)
            if share(db) < 1:
                assert share(db) == FIRST / WHOLE
                lowered.append(begin)
        # Of eight rows in a window no bounds are known, and twice as long is waited each time.
        waits = [then - before for before, then in pairwise(lowered) if then - before > 50]
        assert waits == sorted(waits)
        assert len(waits) > 3
        assert waits[-1] > 4 * waits[0]


@pytest.mark.parametrize(
    "ending", ["SET latency_bound = DEFAULT", "SET shedder = 'off'", "SET shedder = 'advise'"]
)
def test_what_a_shedder_has_lowered_is_kept_again_without_it(world: World, ending: str) -> None:
    with database(latency_bound=None) as db:
        db.execute(f"{STREAM}; CREATE QUERY q LOSS TOLERANT AS {COUNTED}")
        db.execute(f"CREATE QUERY asked LOSS TOLERANT (0.5: 0.9) AS {COUNTED}")
        db.execute("SET latency_bound = '2 SECONDS'")
        db.start()
        push(db, 0, 100)
        assert "is kept" not in str(db.why("q"))
        assert "none of" not in str(db.why("q"))
        world.rest, world.each, world.behind = 0.4, 0.8, 3.0
        push(db, 100, 400)
        assert share(db) < 1
        assert "of the rows of s is kept from" in str(db.why("q"))
        assert "by the shedder" in str(db.why("q"))
        told(db, "ALTER QUERY asked SET (KEEP 0.3)")
        db.execute(ending)
        push(db, 400, 600)
        found = {one.loss: size_of(one, db.status.tunings) for one in db.status.tunings}
        assert found == {"LOSS TOLERANT": WHOLE, "LOSS TOLERANT (0.5: 0.9)": 300_000}
        if "advise" not in ending:
            assert "all rows are kept, but where somebody has asked" in told(db, "SHOW SHEDDING")
        assert "somebody has asked for it" in str(db.why("asked"))
