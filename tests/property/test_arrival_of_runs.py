"""Streams that are timed by arrival: the answer is that over rows with the instants of the definition."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.reference.lateness import arrival_instants
from headrace.runtime.driver.epoch import committed as driver
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import TIMESTAMP
from headrace.time import ManualClock
from how_many import examples

BEGIN = 1_800_000_000_000_000
QUERIES = {
    "counts": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 4 MICROSECONDS] GROUP BY k",
    "rows": "SELECT v, received FROM s WHERE v % 3 > 0",
    "together": "SELECT COUNT(*) AS n FROM s",
}
READINGS = st.lists(st.integers(0, 9).map(BEGIN.__add__), min_size=1, max_size=6)
"""The clock's readings for the epochs; it may stop, jump, and be set back."""
TASKS = st.integers(1, 3)


def rows_of(count: int) -> pa.Table:
    return pa.table({"v": range(count), "k": [v % 2 for v in range(count)]})


def database(
    clock: ManualClock, tasks: int, storage: Path | None = None, rows: int | None = 2
) -> hr.Database:
    chosen = Settings(storage, RunSettings(rows, buckets=2, clock=clock), None)
    return hr.Database(lambda: InlineRunner(tasks), chosen, Policy.open())


def answers(db: hr.Database) -> dict[str, pa.Table]:
    return {name: db[name].history() for name in QUERIES}


def define(db: hr.Database) -> None:
    for name, text in QUERIES.items():
        db.query(text, name=name)


def read(db: hr.Database, folder: Path, clock: ManualClock, readings: Sequence[int]) -> hr.Summary:
    """Read the rows of a file, an epoch for each of the readings, as far as there were none before."""
    path = folder / "rows.parquet"
    db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ARRIVAL AS received")
    define(db)

    def tick(epochs: int) -> None:
        clock.instant = readings[min(epochs, len(readings) - 1)]

    stored = len(list((folder / "store" / "commits").glob("*.json")))
    tick(stored)
    return db.run(lambda progress: tick(progress.epoch))


@examples(4, 10)
@given(READINGS, TASKS)
def test_the_answer_is_that_over_rows_with_the_defined_instants(readings: list[int], tasks: int) -> None:
    clock, rows = ManualClock(), rows_of(2 * len(readings))
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(rows, Path(folder, "rows.parquet"), row_group_size=3)
        with database(clock, tasks) as db:
            summary = read(db, Path(folder), clock, readings)
            assert (summary.epochs, summary.late) == (len(readings), 0)
            found = answers(db)
    instants = arrival_instants([(reading, 2) for reading in readings])
    with database(clock, tasks, rows=None) as db:
        db.stream("s", rows.append_column("received", pa.array(instants).cast(TIMESTAMP)), "received")
        define(db)
        db.run()
        assert found == answers(db)


class PowerCutError(BaseException):
    """Of an epoch whose tasks are done, and which is not committed."""


@pytest.mark.parametrize("crash", [1, 3])
def test_an_epoch_that_comes_again_after_a_crash_has_the_instant_of_its_commit(
    crash: int, tmp_path: Path
) -> None:
    """Rows that were committed before keep theirs."""
    readings = [BEGIN + 5, BEGIN + 5, BEGIN + 3, BEGIN + 9]
    reached: list[str] = []

    def cut(point: str) -> None:
        reached.append(point)
        if reached.count("epoch.reported") == crash:
            raise PowerCutError

    clock = ManualClock()
    pq.write_table(rows_of(2 * len(readings)), tmp_path / "rows.parquet")
    with pytest.MonkeyPatch.context() as patch, database(clock, 2, tmp_path / "store") as db:
        patch.setattr(driver, "reach", cut)
        with pytest.raises(PowerCutError):
            read(db, tmp_path, clock, [*readings[: crash - 1], BEGIN + 100])
    with database(clock, 2, tmp_path / "store") as db:
        assert read(db, tmp_path, clock, readings).late == 0
        found = [{name: db[name].changes() for name in QUERIES}]
    (tmp_path / "store").rename(tmp_path / "old")
    with database(clock, 2) as db:
        read(db, tmp_path, clock, readings)
        found.append({name: db[name].changes() for name in QUERIES})
    assert found[0] == found[1]


@examples(4, 10)
@given(READINGS, st.data())
def test_instants_of_pushes(readings: list[int], data: st.DataObject) -> None:
    """Each push is an epoch; they rise, and rows of a push are together."""
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=len(readings), max_size=len(readings)))
    clock = ManualClock()
    with database(clock, 1) as db:
        db.execute("CREATE STREAM s (v BIGINT, k BIGINT) FROM push TIMESTAMP BY ARRIVAL AS received")
        define(db)
        db.start()
        ends = list(accumulate(sizes))
        for reading, size, end in zip(readings, sizes, ends, strict=True):
            clock.instant = reading
            db.push("s", rows_of(end).slice(end - size))
        assert db.stop().late == 0
        found = sorted(db["rows"].changes().select(["v", "received"]).to_pylist(), key=lambda row: row["v"])
    instants = arrival_instants(list(zip(readings, sizes, strict=True)))
    received = pa.array(instants).cast(TIMESTAMP).to_pylist()
    expected = [{"v": v, "received": at} for v, at in enumerate(received) if v % 3]
    assert found == expected
