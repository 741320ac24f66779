"""CONSISTENCY (BLOCK 5 SECONDS BY ARRIVAL) and (BLOCK 2 ROWS): what is said by when rows have come."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.runtime.driver.endless import live
from headrace.time import MICROSECONDS, ManualClock
from waiting import wait_for

SECOND = MICROSECONDS["SECOND"]
COUNTS = "SELECT COUNT(*) AS n FROM s [RANGE 4]"
TEXT = f"""
    CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 100;
    CREATE QUERY strong AS {COUNTS};
    CREATE QUERY late CONSISTENCY (BLOCK 5 SECONDS BY ARRIVAL) AS {COUNTS};
    CREATE QUERY counted CONSISTENCY (BLOCK 2 ROWS) AS {COUNTS};
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_LOOK", 0.005)


def connect(clock: ManualClock, storage: Path | None = None) -> hr.Database:
    return hr.connect(runner="inline", clock=clock, storage=storage)


def horizons(db: hr.Database) -> tuple[int, int]:
    return db["late"].horizon, db["counted"].horizon


def test_what_has_come_long_enough_ago_is_said() -> None:
    clock = ManualClock(1_000 * SECOND)
    with connect(clock) as db:
        db.execute(TEXT)
        db.start()
        found = []
        for ts in (120, 125, 122, 130, 141):
            db.push("s", [{"ts": ts}])
            found.append(horizons(db))
            clock.advance(2 * SECOND)
        # The rows came at 0, 2, 4, 6 and 8 seconds; up to the heartbeat is said at once.
        assert found == [(20, 20), (25, 25), (25, 121), (121, 126), (126, 126)]
        assert db["late"].snapshot(125).to_pylist() == [{"n": 2}]
        # Nothing else comes; the clock alone moves the answer: 10 seconds have passed since the first row.
        wait_for(lambda: horizons(db) == (126, 126))
        clock.advance(SECOND)
        wait_for(lambda: horizons(db) == (131, 126))
        clock.advance(2 * SECOND)
        wait_for(lambda: horizons(db) == (142, 126))


def test_a_run_that_is_started_again_says_as_much(tmp_path: Path) -> None:
    clock = ManualClock(1_000 * SECOND)
    with connect(clock, tmp_path) as db:
        db.execute(TEXT)
        db.start()
        for ts in (120, 125, 122, 130):
            db.push("s", [{"ts": ts}])
            clock.advance(SECOND)
        before = horizons(db)
        assert before == (30, 126)
    with connect(clock, tmp_path) as db:
        db.execute(TEXT)
        db.start()
        assert horizons(db) == before
        clock.advance(3 * SECOND)
        wait_for(lambda: horizons(db)[0] == 126)
        db.push("s", [{"ts": 131}, {"ts": 132}])
        assert horizons(db)[1] == 131
        assert db["late"].history().equals(db["strong"].history())


def test_a_level_by_arrival_and_back() -> None:
    clock = ManualClock(1_000 * SECOND)
    with connect(clock) as db:
        db.execute(TEXT)
        db.start()
        db.push("s", [{"ts": 120}])
        db.execute("ALTER QUERY strong SET CONSISTENCY (BLOCK 3 ROWS)")
        assert db["strong"].horizon == 20
        db.push("s", [{"ts": 121}, {"ts": 122}, {"ts": 123}])
        # Three rows have come since then.
        assert db["strong"].horizon == 121
        db.execute("ALTER QUERY strong SET CONSISTENCY MIDDLE")
        assert db["strong"].horizon == 124
        db.execute("ALTER QUERY strong SET CONSISTENCY STRONG")
        assert db["strong"].horizon == 23
        assert sum(row["change"] for row in db["strong"].changes().to_pylist()) == 0


def test_rows_that_come_so_long_after_newer_ones_are_left_out() -> None:
    clock = ManualClock(1_000 * SECOND)
    level = "CONSISTENCY (REMEMBER 5 SECONDS BY ARRIVAL)"
    with connect(clock) as db:
        db.execute(
            "CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10;"
            f"CREATE QUERY q {level} AS SELECT COUNT(*) AS n FROM s [RANGE 4]"
        )
        db.start()
        db.push("s", [{"ts": at} for at in (15, 20, 18)])
        assert db["q"].heartbeat == 10
        clock.advance(6 * SECOND)
        # The clock makes an epoch of its own.
        wait_for(lambda: db["q"].heartbeat == 20)
        db.push("s", [{"ts": at} for at in (19, 21)])
        assert db.status.query("q").departures == 1
        assert "wait until its rows have been here for 5 SECONDS" in str(db.why("q"))
        db.execute("ALTER QUERY q SET CONSISTENCY (REMEMBER 8)")
        db.push("s", [{"ts": 20}, {"ts": 40}])
        assert db["q"].heartbeat == 32
        assert db["q"].snapshot(20).to_pylist() == [{"n": 3}]
