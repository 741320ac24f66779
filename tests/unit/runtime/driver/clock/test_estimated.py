"""Streams whose disorder is estimated: which rows are late, what is remembered, and what is to be seen."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace import Database, Policy
from headrace.engine.run.execution import Settings
from headrace.errors import LanguageError
from headrace.heartbeats.bounded import advance, judge_in_order
from headrace.heartbeats.share import ShareState, after, lateness_of, target
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.time import BEGINNING, MAX_INSTANT, ManualClock

COUNT = "CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 100] GROUP BY v"


def declared(clauses: str) -> str:
    return f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {clauses}; {COUNT}"


def delayed(sizes: list[int], each: int, seed: int = 1) -> list[int]:
    """Timestamps in the order of arrival, where rows are under way for up to each of the sizes in turn."""
    chance = random.Random(seed)
    due = [(place, place + chance.randrange(sizes[place // each])) for place in range(each * len(sizes))]
    return [sent for sent, _ in sorted(due, key=lambda one: one[1])]


def by_epochs(share: float, times: list[int], rows: int) -> tuple[ShareState, list[int]]:
    """The rows that are late in epochs of so many rows, by the pure functions, and what is known then."""
    state, heartbeat, newest, late = ShareState(), BEGINNING, BEGINNING, list[int]()
    for first in range(0, len(times), rows):
        part = np.array(times[first : first + rows], dtype=np.int64)
        found = judge_in_order(part, heartbeat, state.disorder)
        late += part[found.late].tolist()
        lateness = lateness_of(part, newest)
        newest = max(newest, int(part.max()))
        if state.disorder < MAX_INSTANT:
            heartbeat = advance(heartbeat, newest, state.disorder)
        state = after(target(share), state, found.arrivals, lateness)
    return state, late


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_share_of_late_rows_is_kept_though_delays_change(tmp_path: Path, tasks: int) -> None:
    """A file in epochs: the rows that are late are those of the pure functions, however epochs are split."""
    times = delayed([20, 200, 50, 1000, 20, 20], 4_000)
    pq.write_table(pa.table({"v": [1] * len(times), "ts": times}), tmp_path / "rows.parquet")
    settings = Settings(None, RunSettings(500, buckets=tasks), None)
    with Database(lambda: InlineRunner(parallelism=tasks), settings, Policy.open()) as db:
        path = tmp_path / "rows.parquet"
        db.execute(
            f"CREATE STREAM s FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ts DISORDER FOR 95 PERCENT;"
            f"{COUNT}"
        )
        summary = db.run()
        late = db.dead_letters().column("row").to_pylist()
        status = db.status.stream("s")
    expected, rows = by_epochs(0.05, times, 500)
    assert (summary.epochs, summary.late) == (48, expected.late)
    assert sorted(json.loads(row)["ts"] for row in late) == sorted(rows)
    assert 0.02 < summary.late / len(times) <= 0.05
    assert (status.estimated, status.disorder) == (True, expected.disorder)


def test_rows_are_measured_by_those_of_splits_before(tmp_path: Path) -> None:
    """Where no row can be late yet, a split still has to know a newer row of an earlier one."""
    times = [*range(1_000, 1_600), *range(600)]
    pq.write_table(pa.table({"v": times, "ts": times}), tmp_path / "rows.parquet")
    settings = Settings(None, RunSettings(1_200, buckets=3), None)
    with Database(lambda: InlineRunner(parallelism=3), settings, Policy.open()) as db:
        path = tmp_path / "rows.parquet"
        db.execute(
            f"CREATE STREAM s FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ts DISORDER FOR 75 PERCENT;"
            f"{COUNT}"
        )
        assert db.run().late == 0
        expected, _ = by_epochs(0.25, times, 1_200)
        assert db.status.stream("s").disorder == expected.disorder > 1_000


def test_a_heartbeat_never_goes_back_and_moves_once_enough_rows_have_come() -> None:
    times = delayed([10, 400, 10], 1_000)
    with hr.connect(runner="inline") as db:
        db.execute(declared("DISORDER FOR 90 PERCENT"))
        db.start()
        heartbeats = []
        for first in range(0, len(times), 100):
            known = db.status.stream("s") if first else None
            db.push("s", [{"v": 1, "ts": instant} for instant in times[first : first + 100]])
            now = db.status.stream("s")
            heartbeats.append(now.heartbeat)
            if known is not None and known.disorder is not None:
                # An epoch is made with the disorder that was to be seen before it.
                assert now.heartbeat == max(known.heartbeat, now.latest - known.disorder)
        assert heartbeats[:10] == [BEGINNING] * 10
        assert heartbeats[10:] == sorted(heartbeats[10:])
        assert heartbeats[10] > 900
        changes = db.status.stream("s").disorder_changes
        assert len({change.disorder for change in changes}) > 2
        assert db.status.stream("s").disorder == changes[-1].disorder


RULES = ["DISORDER FOR 90 PERCENT", "ESTIMATED", "ESTIMATED (ALPHA 0.25, WINDOW 50)"]


@pytest.fixture(params=RULES)
def clauses(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pushed(db: hr.Database, times: list[int]) -> None:
    for first in range(0, len(times), 100):
        db.push("s", [{"v": 1, "ts": instant} for instant in times[first : first + 100]])


def seen(db: hr.Database) -> Any:
    stream = db.status.stream("s")
    history = db["q"].history().to_pylist()
    return stream.disorder, stream.disorder_changes, stream.heartbeat, stream.late, history


def test_a_restart_changes_nothing(tmp_path: Path, clauses: str) -> None:
    times = delayed([10, 400, 50], 1_000)
    found = []
    for name, cuts in (("whole", [0, 3_000]), ("stopped", [0, 1_200, 1_300, 3_000])):
        for first, last in pairwise(cuts):
            with hr.connect(runner="inline", storage=tmp_path / name, clock=ManualClock(7)) as db:
                db.execute(declared(clauses))
                db.start()
                pushed(db, times[first:last])
                found.append(seen(db))
                letters = db.dead_letters().num_rows
        found[-1] = (*found[-1], letters)
    assert found[-1][0] is not None
    assert found[-1][3] > 0
    assert found[-1] == found[0]


def test_an_estimate_is_the_largest_of_late() -> None:
    """Figure 4 with a window of 200 rows: what was furthest behind counts until nothing has come near it."""
    with hr.connect(runner="inline", clock=ManualClock(7_000_000)) as db:
        db.execute(declared("ESTIMATED (WINDOW 200 ROWS, ALPHA 0.5)"))
        db.start()
        disorders = []
        for epoch in range(10):
            behind = 40 if epoch == 2 else 10
            instants = range(1_000 * epoch, 1_000 * epoch + 1_000, 10)
            rows = [*instants[:-1], instants[-2] - behind]
            db.push("s", [{"v": 1, "ts": instant} for instant in rows])
            disorders.append(db.status.stream("s").disorder)
        stream = db.status.stream("s")
        # The bound of a disorder d is d + 1: (41 + 11) / 2 = 26, (26 + 11) / 2 = 18.5, 14.75.
        assert disorders == [10, 10, 40, 40, 40, 25, 25, 25, 18, 18]
        assert stream.late == 1
        assert db.status.to_dict()["streams"][0]["disorder_changes"] == [
            {"at": "1970-01-01T00:00:07Z", "disorder": length} for length in (10, 40, 25, 18)
        ]


def test_what_is_shown_of_an_estimate() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts ESTIMATED (WINDOW 1 HOUR);"
            "CREATE QUERY q AS SELECT v FROM s WHERE v > 0"
        )
        assert disorder_shown(db) == "estimated"
        db.start()
        rows = [{"v": 1, "ts": n * 1_000_000} for n in range(200)]
        db.push("s", [*rows, rows[-6]])
        assert disorder_shown(db) == "5 SECONDS (estimated)"
        db.push("s", {"v": 1, "ts": 200_000_000})
        assert "(an estimated DISORDER of 5 SECONDS)" in str(db.execute("WHY q")[0])
        db.execute("ALTER STREAM s DISORDER FOR 99.9 PERCENT")
        # What is known holds on until something better is.
        assert disorder_shown(db) == "5 SECONDS (estimated)"
        db.execute("ALTER STREAM s DISORDER 2 SECONDS")
        assert disorder_shown(db) == "2 SECONDS"
        assert not db.status.stream("s").estimated


def disorder_shown(db: hr.Database) -> str:
    shown = str(db.execute("SHOW STREAMS")[0]).splitlines()
    begin = shown[0].index("disorder")
    end = shown[1].index(" ", begin)
    return shown[2][begin:end].strip()


def test_a_window_needs_the_unit_of_the_stream() -> None:
    with (
        hr.connect(runner="inline") as db,
        pytest.raises(LanguageError, match="WINDOW 1 MINUTE has a unit"),
    ):
        db.execute(declared("ESTIMATED (WINDOW 1 MINUTE)"))
