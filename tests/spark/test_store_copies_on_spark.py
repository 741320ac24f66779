"""Copies of a store whose streams Spark reads: its log is copied with the epoch that it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from waiting import wait_for

pytestmark = pytest.mark.spark

FILES = 12


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "in step"])
def test_a_copy_of_a_store_that_spark_reads_for_goes_on(spark: Any, tmp_path: Path, ahead: bool) -> None:
    def opened(storage: Path) -> hr.Database:
        frame = spark.readStream.schema("v BIGINT, ts BIGINT").option("maxFilesPerTrigger", 1)
        read = frame.json(str(tmp_path / "files"))
        db = hr.connect(spark=spark, storage=storage)
        # A frame that keeps state is one of which Spark counts nothing as done ahead of us.
        db.stream("s", read if ahead else read.dropDuplicates(["v"]), timestamp="ts", disorder=1_000)
        if "q" not in {query.name for query in db.queries}:
            db.query("SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE UNBOUNDED]", name="q")
        db.start()
        return db

    (tmp_path / "files").mkdir()

    def add(numbers: range) -> None:
        for number in numbers:
            (tmp_path / "files" / f"{number:02}.json").write_text(f'{{"v": {number}, "ts": {number}}}\n')

    add(range(FILES // 2))
    with opened(tmp_path / "store") as db:
        wait_for(lambda: db.status.stream("s").rows >= 2)
        made = [hr.copy_store(tmp_path / "store", tmp_path / f"copy{number}") for number in range(3)]
        add(range(FILES // 2, FILES))
        wait_for(lambda: db.status.stream("s").rows == FILES)
        # Behind it all others are final.
        (tmp_path / "files" / "last.json").write_text('{"v": -1, "ts": 9999}\n')
        wait_for(lambda: db.status.stream("s").rows == FILES + 1)
        db.stop()
    for number in (0, len(made) - 1):
        with opened(tmp_path / f"copy{number}") as db:
            wait_for(lambda: db.status.stream("s").rows == FILES + 1)
            assert not db.problems
            db.stop()
            found = db["q"].snapshot(FILES).to_pylist()
        assert found == [{"n": FILES, "total": FILES * (FILES - 1) // 2}]
