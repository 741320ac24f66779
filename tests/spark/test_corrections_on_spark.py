"""A stream of Spark's whose rows have lifetimes and take others back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from waiting import wait_for

pytestmark = pytest.mark.spark

PATIENCE = 120


def test_batches_of_corrections(spark: Any, tmp_path: Path) -> None:
    """What the second file takes back the first one has added, and the other way round."""
    (tmp_path / "0.json").write_text('{"a": 1, "b": 9, "w": 1, "k": "x"}\n{"a": 3, "w": -1, "k": "y"}\n')
    (tmp_path / "1.json").write_text('{"a": 4, "b": 9, "w": -1, "k": "x"}\n{"a": 2, "w": 1, "k": "y"}\n')
    reader = spark.readStream.schema("a BIGINT, b BIGINT, w BIGINT, k STRING")
    frame = reader.option("maxFilesPerTrigger", 1).json(str(tmp_path))
    with hr.connect(spark=spark, buckets=3) as db:
        db.stream("s", frame, disorder=20, valid=("a", "b"), changes_by="w")
        found = db.query("SELECT k FROM s")
        db.start()
        wait_for(lambda: db.status.stream("s").rows >= 4)
        db.heartbeat("s", 20)
        db.stop()
        rows = [tuple(row.values()) for row in found.history().to_pylist()]
    assert rows == [("x", 1, 4), ("y", 2, 3)]
