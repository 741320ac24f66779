"""Answers as Spark data frames, made by Spark's tasks from the committed results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headrace as hr

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "ts": pa.array([0, 1, 2, 3, 3, 40, 41, 60], pa.timestamp("us", tz="UTC")),
        "a.b": ["x", "y", "x", None, "x", "y", "x", "x"],
        "v": [0.0, -0.0, float("nan"), 1.5, 0.0, 2.0, 2.0, 3.0],
    }
)


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_frames_have_the_rows_of_the_answer(spark: Any) -> None:
    with hr.connect(spark=spark, epoch_rows=3, buckets=3) as db:
        db.stream("s", ROWS, timestamp="ts", disorder="5 microseconds")
        queries = [
            db.query("SELECT `a.b`, v FROM s [RANGE 10 MICROSECONDS]"),
            db.query(
                "SELECT `a.b`, COUNT(*) AS n, ARRAY_AGG(v) AS vs FROM s [RANGE 9 MICROSECONDS] GROUP BY `a.b`"
            ),
            db.query("SELECT MAX(v) AS top FROM s [RANGE UNBOUNDED]"),
            db.query("SELECT ISTREAM(v) FROM s [RANGE 5 MICROSECONDS]"),
            db.query("SELECT v FROM s WHERE v > 100"),
        ]
        assert db.run().epochs > 1
        for query in queries:
            for view in ("history", "changes", "latest"):
                frame = query.to_spark(view)
                expected = getattr(query, view)()
                found = frame.toArrow()
                assert found.schema.names == expected.schema.names
                assert rows_of(found) == rows_of(expected), (query, view)
        assert rows_of(queries[3].to_spark("stream").toArrow()) == rows_of(queries[3].stream())
        queries[1].to_spark().createOrReplaceTempView("counts")
        assert spark.sql("SELECT SUM(n) FROM counts").first()[0] > 0
