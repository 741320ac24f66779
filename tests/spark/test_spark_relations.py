"""Relations on Spark: a data frame of Spark's is looked up in by several tasks."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import connect

pytestmark = pytest.mark.spark


def test_a_frame_is_looked_up_in_also_by_a_query_that_is_added(spark: Any) -> None:
    sensors = spark.range(1, 1001).selectExpr("id", "concat('room ', id) AS room")
    with connect(spark=spark, buckets=3) as db:
        db.relation("sensor", sensors, key="id")
        db.execute("CREATE STREAM reading (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        look_up = "SELECT r.id, s.room FROM reading r LEFT JOIN sensor s ON s.id = r.id"
        first = db.query(look_up)
        db.start()
        db.push("reading", [{"id": 7, "ts": 1}, {"id": 5000, "ts": 2}])
        later = db.query(look_up)
        count = db.query("SELECT COUNT(*) AS n FROM sensor")
        db.push("reading", [{"id": 900, "ts": 3}, {"id": 1000, "ts": 4}])
        db.heartbeat("reading", 5)
        assert first.stream().column("room").to_pylist() == ["room 7", None, "room 900", "room 1000"]
        assert later.stream().column("room").to_pylist() == ["room 900", "room 1000"]
        assert count.snapshot(0).to_pydict() == {"n": [1000]}
        db.stop()
