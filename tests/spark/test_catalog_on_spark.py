"""A store is started again on Spark without the text that it was made with."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr

pytestmark = pytest.mark.spark

TEXT = """
CREATE STREAM tick FROM rate OPTIONS (rowsPerSecond = 50) TIMESTAMP BY timestamp;
CREATE STREAM pushed (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY tops AS SELECT MAX(v) AS top FROM pushed [RANGE 10];
CREATE QUERY ticks AS SELECT value FROM tick;
ALTER QUERY ticks PAUSE;
"""


def test_a_store_goes_on_without_its_text(spark: object, tmp_path: Path) -> None:
    with hr.connect(spark=spark, storage=tmp_path) as db:
        db.execute(TEXT)
        db.start()
        db.push("pushed", [{"v": 1, "ts": 1}, {"v": 2, "ts": 5}])
    with hr.connect(spark=spark, storage=tmp_path) as db:
        db.start()
        assert not db.differences
        assert [query.name for query in db.queries] == ["tops", "ticks"]
        db.push("pushed", [{"v": 3, "ts": 7}, {"v": 1, "ts": 30}])
        assert db["tops"].history().to_pylist() == [
            {"top": 1, "valid_from": 1, "valid_to": 5},
            {"top": 2, "valid_from": 5, "valid_to": 7},
            {"top": 3, "valid_from": 7, "valid_to": 17},
        ]
        assert "rowspersecond '50'" in str(db.execute("SHOW CREATE STREAM tick")[0])
