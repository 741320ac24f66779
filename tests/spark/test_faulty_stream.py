"""A stream whose batches no epoch can read is given up; the others, and the run, go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from inside import run_of
from waiting import wait_for

pytestmark = pytest.mark.spark
PATIENCE = 180


def write(folder: Path, number: int, values: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    draft = folder / f".{number}"
    pq.write_table(
        pa.table({"ts": [number * 10 + place for place in range(len(values))], "v": values}), draft
    )
    draft.rename(folder / f"{number}.parquet")


def streamed(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema("ts BIGINT, v BIGINT").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def test_a_stream_that_fails_in_the_epoch_is_given_up(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer attempts than by default, for the sake of the time they take.
    monkeypatch.setattr("headrace.runtime.driver.endless.retries.ATTEMPTS", 2)
    monkeypatch.setattr("headrace.runtime.spark.feed.RESTARTS", 1)

    def picky(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Raises where a value is 13, as a user's own function may; a closure, so that workers get it."""
        for batch in batches:
            if 13 in batch.column("v").to_pylist():
                raise ValueError("thirteen is out of the question")
            yield batch

    good, bad = tmp_path / "good", tmp_path / "bad"
    write(good, 0, [1, 2])
    write(bad, 0, [1, 2])
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        db.stream("good", streamed(spark, good), timestamp="ts")
        db.stream("bad", streamed(spark, bad).mapInArrow(picky, "ts BIGINT, v BIGINT"), timestamp="ts")
        fine = db.query("SELECT v FROM good", name="fine")
        poor = db.query("SELECT v FROM bad", name="poor")
        db.start()
        wait_for(lambda: {"good", "bad"} <= {name for name, rows in _read(db).items() if rows == 2})
        write(bad, 1, [3, 13])
        write(good, 1, [3, 4])
        wait_for(lambda: "bad" in db.problems)
        assert "thirteen is out of the question" in db.problems["bad"]
        write(good, 2, [5, 6])
        wait_for(lambda: _read(db)["good"] == 6)
        assert db.running
        assert _read(db)["bad"] == 2, "nothing of the batch was taken"
        db.stop()
        assert fine.history()["v"].to_pylist() == [1, 2, 3, 4, 5]
        assert poor.history()["v"].to_pylist() == [1]


def _read(db: hr.Database) -> dict[str, int]:
    return {name: seen.rows for name, seen in run_of(db).totals.arrivals.items()}
