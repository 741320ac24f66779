"""Columns that are added to a stream while a run on Spark reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr

pytestmark = pytest.mark.spark


def test_columns_are_added_while_a_run_on_spark_reads_the_stream(tmp_path: Path) -> None:
    """Pushed rows before and after it, kept ones, and a restart."""
    with hr.connect(storage=tmp_path) as db:
        db.execute("CREATE STREAM s (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL")
        db.execute("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k")
        db.start()
        db.push("s", [{"ts": 1, "k": 1}, {"ts": 2, "k": 2}])
        db.execute("ALTER STREAM s ADD COLUMN c STRING")
        db.execute("CREATE QUERY r FROM BEGINNING AS SELECT k, c FROM s [RANGE UNBOUNDED]")
        db.push("s", [{"ts": 3, "k": 1, "c": "x"}, {"ts": 4, "k": 2}])
        db.stop()
    with hr.connect(storage=tmp_path) as db:
        db.start()
        db.push("s", [{"ts": 5, "k": 1, "c": "y"}])
        rows = sorted(map(str, db["r"].latest().to_pylist()))
        assert rows == sorted(
            map(str, [{"k": 1, "c": None}, {"k": 2, "c": None}, {"k": 1, "c": "x"}, {"k": 2, "c": None}])
        )
        assert sorted(map(str, db["q"].latest().to_pylist())) == ["{'k': 1, 'n': 2}", "{'k': 2, 'n': 2}"]
        db.stop()
