"""Lanes come to rest, keep apart what is to wait, and leave nothing behind when they are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import headrace as hr
from headrace.errors import LanguageError, StoreError
from headrace.runtime.driver.change.wanted import Placement, RunChange
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.intake.retained import read_retained
from headrace.time import MICROSECONDS, ManualClock
from inside import execution_of, run_of
from waiting import wait_for, wait_until

SECOND = MICROSECONDS["SECOND"]
STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
SUMS = "SELECT k, SUM(v) AS x FROM s [RANGE 4] GROUP BY k"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", threads=1) as made:
        made.execute(STREAM)
        yield made


def live_of(db: hr.Database) -> LiveRun:
    live = execution_of(db)._live
    assert live is not None
    return live


def push(db: hr.Database, *instants: int) -> None:
    for at in instants:
        db.push("s", {"k": at % 3, "v": at, "ts": at})


def waiting(db: hr.Database) -> dict[str, int]:
    """The number of rows that wait for each query that is behind."""
    return {name: lane.rows for lane in live_of(db).lanes.status if lane.lane for name in lane.queries}


def at_rest(db: hr.Database) -> bool:
    return not live_of(db).lanes.waits


def test_turns_over_a_stream_about_the_run_are_no_news_for_it(db: hr.Database) -> None:
    db.execute("CREATE QUERY q AS SELECT k FROM s [RANGE 3]")
    noted = db.execute("CREATE QUERY noted WEIGHT 1 AS SELECT epoch FROM headrace.epochs [RANGE UNBOUNDED]")[
        0
    ]
    assert isinstance(noted, hr.Query)
    db.start()
    for number in range(1, 4):
        push(db, number)
        wait_until(lambda: len(noted.changes()), number)


def test_time_of_the_clock_moves_for_a_lane_only_as_far_as_answers_want_it() -> None:
    clock = ManualClock(1_000 * SECOND)
    with hr.connect(runner="inline", threads=1, clock=clock) as db:
        db.execute(
            "CREATE STREAM a (k BIGINT) FROM push TIMESTAMP BY ARRIVAL;"
            "CREATE QUERY q WEIGHT 1 AS SELECT COUNT(*) AS n FROM a [RANGE 2 SECONDS]"
        )
        db.start()
        db.push("a", {"k": 1})
        wait_for(lambda: db["q"].heartbeat > 0 and at_rest(db))
        clock.advance(5 * SECOND)
        # The row leaves its window, though no other comes.
        wait_for(lambda: db["q"].heartbeat > 1_002 * SECOND and at_rest(db))


def test_a_query_of_no_weight_takes_nothing(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q WEIGHT 0 AS {SUMS}")
    db.start()
    push(db, 1, 2)
    assert waiting(db) == {"q": 2}


def test_it_takes_nothing_after_a_change_either(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q WEIGHT 0 AS {SUMS}")
    db.start()
    push(db, 1, 2)
    db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    push(db, 3)
    assert waiting(db) == {"q": 1}


def test_what_comes_back_together_is_in_front_together(db: hr.Database, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("k,w\n0,1\n")
    db.execute(f"CREATE RELATION n FROM csv OPTIONS (path '{tmp_path / 'n.csv'}') REFRESH ON DEMAND")
    for name, said in (("q", ""), ("r", "LATENCY 5 SECONDS ")):
        db.execute(
            f"CREATE QUERY {name} WEIGHT 0 {said}AS SELECT s.k, n.w FROM s [RANGE 3] JOIN n ON s.k = n.k"
        )
    db.start()
    push(db, 1, 2, 3)
    moves: list[bool] = []
    change = Run.change

    def noticed(run: Run, asked: RunChange) -> None:
        if isinstance(asked, Placement):
            moves.append(asked.behind)
        change(run, asked)

    (tmp_path / "n.csv").write_text("k,w\n0,2\n")
    with patch.object(Run, "change", noticed):
        db.execute("REFRESH RELATION n")
        wait_for(lambda: len(moves) == 4)
    assert moves == [False, False, True, True]


@pytest.mark.parametrize("ends", ["DROP QUERY q", "ALTER QUERY q SET (WEIGHT DEFAULT)"])
def test_rows_are_let_go_of_that_nobody_waits_for_any_more(db: hr.Database, ends: str) -> None:
    db.execute(f"CREATE QUERY q WEIGHT 0 AS {SUMS}")
    db.execute(f"CREATE QUERY r WEIGHT 0 AS {SUMS}")
    db.start()
    push(db, 1, 2, 3)
    run = run_of(db)
    retained = run.point("s").retained
    assert retained is not None
    assert retained.rows == 3
    file = retained.files[0]
    db.execute(ends)
    db.execute(ends.replace(" q", " r"))
    if "WEIGHT" in ends:
        # It takes what waits, then it comes back by itself.
        live_of(db)._between_epochs(lambda: live_of(db)._come_back([*run.reading.queries.lanes]))
    assert run.point("s").retained is None
    with pytest.raises(StoreError):
        read_retained(run.store, file)


def test_lanes_are_shown_as_they_are_now(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q WEIGHT 0 AS {SUMS}")
    db.start()
    push(db, 1)
    db.execute("ALTER QUERY q SET (WEIGHT 3)")
    assert [lane.weight for lane in live_of(db).lanes.status if "q" in lane.queries] == [3]
    db.execute("DROP QUERY q")
    assert waiting(db) == {}


@pytest.mark.parametrize("level", ["(BLOCK 2 ROWS)", "(BLOCK 0, REMEMBER 2 ROWS)"])
def test_a_query_that_goes_by_when_rows_come_is_not_put_behind(db: hr.Database, level: str) -> None:
    db.execute("ALTER STREAM s DISORDER 5")
    said = (
        "q cannot have a WEIGHT, with which it may be behind others: what it says, or remembers, goes by when"
    )
    with pytest.raises(LanguageError, match=said):
        db.execute(f"CREATE QUERY q WEIGHT 2 CONSISTENCY {level} AS {SUMS}")
    db.execute(f"CREATE QUERY q WEIGHT 2 AS {SUMS}")
    db.start()
    push(db, 1)
    with pytest.raises(LanguageError, match=said):
        db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
    db.execute("ALTER QUERY q SET (WEIGHT DEFAULT)")
    db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
    with pytest.raises(LanguageError, match=said):
        db.execute("ALTER QUERY q SET (WEIGHT 2)")


def test_a_change_that_is_refused_hurries_nobody_any_more(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q WEIGHT 0 AS {SUMS}")
    db.start()
    push(db, *range(5))
    with patch.object(LiveRun, "_change", side_effect=hr.UserError("no")), pytest.raises(hr.UserError):
        db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    assert live_of(db).lanes.hurried == set()
    assert at_rest(db)
