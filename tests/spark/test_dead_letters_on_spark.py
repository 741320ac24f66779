"""Dead letters as a stream, and replayed, where Spark runs the epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.spark


def test_letters_are_read_and_taken_once_more(spark: Any, tmp_path: Path) -> None:
    with hr.connect(spark=spark, storage=tmp_path / "store") as db:
        db.execute(
            """
            CREATE STREAM s (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 10
                DEAD LETTERS KEEP ALL;
            CREATE QUERY old AS SELECT 1 / v AS x FROM s;
            CREATE QUERY lost AS SELECT k, query, reason FROM DEAD LETTERS OF s;
            """
        )
        db.start()
        db.push("s", [{"ts": ts, "k": k, "v": v} for ts, k, v in ((50, "a", 1), (45, "b", 0), (20, "c", 0))])
        rows: list[Any] = []
        for change in db["lost"].subscribe():
            rows += change.elements.payload.to_pylist()
            if len(rows) == 2:
                break
        db.drop("old")
        new = db.query("SELECT k, v FROM s", name="new")
        (told,) = db.execute("REPLAY DEAD LETTERS OF s")
        db.heartbeat("s", 1_000)
        db.stop()
        assert new.stream()["k"].to_pylist() == ["b"]
    assert sorted((row["k"], row["query"], row["reason"]) for row in rows if row["query"]) == [
        ("b", "old", "division by zero")
    ]
    assert [row["k"] for row in rows if row["query"] is None] == ["c"]
    first, second = str(told).splitlines()
    assert first.startswith("1 of 2 dead letters of s became input in epoch")
    assert second == "  new takes 1, refuses 1 older than what it still takes"
