"""WATERMARK FOR, as Flink and others write how far rows are out of order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import headrace as hr

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("watermark", "said"),
    [
        ("ts - INTERVAL '5' SECOND", "DISORDER 5 SECONDS"),
        ("ts - INTERVAL '2' MINUTE", "DISORDER 2 MINUTES"),
        ("ts", "DISORDER 0 SECONDS"),
    ],
)
def test_a_watermark_is_a_disorder(watermark: str, said: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"""
            CREATE STREAM a (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS {watermark}) FROM push;
            CREATE STREAM b (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts {said};
        """)
        assert db.timings["a"] == db.timings["b"]


def test_a_row_at_exactly_the_bound_is_taken() -> None:
    """Flink drops it; here only a row that is older is late."""
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM a (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) FROM push"
        )
        query = db.query("SELECT v FROM a [NOW]")
        db.start()
        db.push("a", [{"v": 1, "ts": BEGIN}, {"v": 2, "ts": BEGIN - timedelta(seconds=5)}])
        db.push("a", [{"v": 3, "ts": BEGIN - timedelta(seconds=5, microseconds=1)}])
        db.push("a", [{"v": 4, "ts": BEGIN + timedelta(seconds=10)}])
        assert db.stop().late == 1
        assert query.history().column("v").to_pylist() == [2, 1]
