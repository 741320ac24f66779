"""A query on Spark that answers over rows from before it."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import connect

pytestmark = pytest.mark.spark


def test_rows_that_were_kept_are_read_by_several_tasks(spark: Any) -> None:
    with connect(spark=spark, buckets=3) as db:
        db.execute("CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL")
        counts = "SELECT k, COUNT(*) AS n FROM s [RANGE 7] GROUP BY k"
        first = db.query(counts)
        db.start()
        for begin in (0, 20, 40):
            db.push("s", [{"k": ts % 3, "ts": ts} for ts in range(begin, begin + 20)])
        [query] = db.execute(f"CREATE QUERY later FROM BEGINNING AS {counts}")
        db.push("s", [{"k": ts % 3, "ts": ts} for ts in range(60, 80)])
        db.stop()
        assert query.history().num_rows > 60
        assert query.history().to_pylist() == first.history().to_pylist()
