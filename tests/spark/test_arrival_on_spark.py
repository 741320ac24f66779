"""Streams of Spark's that are timed by arrival: each batch gets the instant of the epoch that takes it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.time import ManualClock

pytestmark = pytest.mark.spark

PATIENCE = 120
BEGIN = 1_800_000_000_000_000


def test_batches_have_the_instants_of_their_epochs(spark: Any, tmp_path: Path) -> None:
    """Whether our tasks read the files or Spark does, and where no column of theirs is read."""
    for name in ("files", "texts"):
        (tmp_path / name).mkdir()
    for number in range(2):
        pq.write_table(pa.table({"v": [number, number]}), tmp_path / "files" / f"{number}.parquet")
        (tmp_path / "texts" / f"{number}.json").write_text('{"v": 1}\n{"v": 2}\n')
    reader = spark.readStream.schema("v BIGINT").option("maxFilesPerTrigger", 1)
    with hr.connect(spark=spark, clock=ManualClock(BEGIN)) as db:
        db.stream("files", reader.parquet(str(tmp_path / "files")), timestamp=hr.ByArrival("received"))
        db.stream("texts", reader.json(str(tmp_path / "texts")), timestamp=hr.ByArrival())
        db.query("SELECT v, received FROM files", name="files_read")
        db.query("SELECT COUNT(*) AS n, MIN(arrival) AS at FROM texts", name="texts_read")
        db.start()
        until = time.monotonic() + PATIENCE
        while any(db.status.stream(name).rows < 4 for name in ("files", "texts")):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert not db.problems
        assert db.stop().late == 0
        read = db["files_read"].stream().to_pylist()
        counted = db["texts_read"].stream().to_pylist()
    assert sorted(row["v"] for row in read) == [0, 0, 1, 1]
    assert [row["n"] for row in counted] == [2, 2]
    assert all(row["ts"] == row["received"] for row in read)
    assert all(row["ts"] == row["at"] for row in counted)
    # The clock stands still.
    for rows in (read, counted):
        instants = {round(row["ts"].timestamp() * 1e6) for row in rows}
        assert len(instants) == 2
        assert BEGIN <= min(instants) < BEGIN + 10
