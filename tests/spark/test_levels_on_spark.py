"""A query that changes its level of consistency on Spark: state lies in several buckets, which tasks read."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import connect

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10"
LARGEST = "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k)"


def test_a_level_is_changed_and_data_frames_say_what_was_taken_back(spark: Any) -> None:
    with connect(spark=spark, buckets=3) as db:
        db.execute(
            f"{STREAM}; CREATE QUERY q AS {LARGEST}; CREATE QUERY middle CONSISTENCY MIDDLE AS {LARGEST}"
        )
        db.start()
        query, middle = db["q"], db["middle"]
        db.push("s", [{"k": k, "ts": ts} for k in "abc" for ts in (5, 15, 17, 20)])
        db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
        db.push("s", [{"k": "b", "ts": 16}, {"k": "c", "ts": 22}])
        said = [query.snapshot(at) for at in range(query.horizon)]
        assert said == [middle.snapshot(at) for at in range(middle.horizon)]
        assert said[17].to_pylist() == [{"most": 3}]
        db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
        db.push("s", [{"k": "a", "ts": 60}])
        changes = query.changes().to_pylist()
        assert any(row["change"] < 0 for row in changes)
        frame = query.to_spark("changes").collect()
        assert sorted(map(str, changes)) == sorted(str(row.asDict()) for row in frame)
        assert query.history() == middle.history()
