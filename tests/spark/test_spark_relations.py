"""Relations on Spark: a data frame of Spark's is looked up in by several tasks."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from headrace import connect

pytestmark = pytest.mark.spark


def test_a_frame_is_looked_up_in_also_by_a_query_that_is_added(spark: Any) -> None:
    sensors = spark.range(1, 1001).selectExpr("id", "concat('room ', id) AS room")
    with connect(spark=spark, buckets=3) as db:
        db.relation("sensor", sensors, key="id")
        db.execute("CREATE STREAM reading (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        look_up = "SELECT r.id, s.room FROM reading [NOW] r LEFT JOIN sensor s ON s.id = r.id"
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


def test_a_frame_is_computed_again(spark: Any) -> None:
    factor = [1]
    with connect(spark=spark, buckets=3) as db:
        db.relation(
            "sensor",
            lambda: spark.range(1, 1001).selectExpr("id", f"id * {factor[0]} AS size"),
            key="id",
            refresh="on demand",
        )
        db.execute("CREATE STREAM reading (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT r.id, s.size FROM reading [NOW] r JOIN sensor s ON s.id = r.id")
        db.start()
        db.push("reading", [{"id": 7, "ts": 1}, {"id": 1000, "ts": 2}])
        factor[0] = 10
        report = db.refresh("sensor")
        assert (report.at, report.inserted, report.deleted) == (2, 1000, 1000)
        db.push("reading", [{"id": 900, "ts": 3}])
        db.heartbeat("reading", 5)
        assert query.stream().column("size").to_pylist() == [7, 10_000, 9_000]
        db.stop()


def test_changes_from_a_frame_and_pushed_ones(spark: Any) -> None:
    renamed = "CASE WHEN id % 10 = 0 THEN 'd' WHEN id > 1000 THEN 'u' ELSE 'i' END AS op"
    changes = spark.range(1, 2001).selectExpr(
        "id % 1000 AS id", "concat('room ', id) AS room", renamed, "id DIV 1001 * 10 AS ts", "id AS seq"
    )
    with connect(spark=spark, buckets=3) as db:
        db.relation("sensor", changes, "id", changes_by="op", timestamp="ts", version="seq")
        db.execute("""
            CREATE STREAM reading (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
            CREATE RELATION owner (id BIGINT, name STRING, op STRING, ts BIGINT) KEY (id) FROM push
              CHANGES BY op TIMESTAMP BY ts
        """)
        query = db.query("""
            SELECT r.id, s.room, o.name FROM reading r
            LEFT JOIN sensor FOR SYSTEM_TIME AS OF r.ts s ON s.id = r.id
            LEFT JOIN owner FOR SYSTEM_TIME AS OF r.ts o ON o.id = r.id
        """)
        db.start()
        db.push("owner", [{"id": 7, "name": "Ada", "op": "i", "ts": 1}, {"id": 7, "op": "d", "ts": 12}])
        db.push(
            "reading", [{"id": 7, "ts": 9}, {"id": 10, "ts": 9}, {"id": 7, "ts": 11}, {"id": 7, "ts": 13}]
        )
        db.heartbeat("reading", 14)
        assert query.stream().select(["room", "name"]).to_pylist() == [
            {"room": "room 7", "name": "Ada"},
            {"room": None, "name": None},
            {"room": "room 1007", "name": "Ada"},
            {"room": "room 1007", "name": None},
        ]
        db.stop()


def test_changes_in_a_frame_have_no_order(spark: Any) -> None:
    """Which of two at one instant counts is not known without a version, and is said."""
    changes = spark.range(2).selectExpr("1 AS id", "'i' AS op", "id AS seq", "5L AS ts")
    with connect(spark=spark) as db:
        with pytest.warns(match="Spark gives the rows of r in no order: name a column by VERSION BY"):
            db.relation("r", changes, "id", changes_by="op", timestamp="ts")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            db.relation("versioned", changes, "id", changes_by="op", timestamp="ts", version="seq")
