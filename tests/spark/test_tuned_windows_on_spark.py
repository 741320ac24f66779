"""Windows whose size changes while they run on Spark, in processes that have the graph of before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.spark

DEFINED = """
CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE QUERY counted AS SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE MIN 3, MAX 8) GROUP BY k;
CREATE QUERY paired AS SELECT a.k, a.ts, b.ts AS other
    FROM s WINDOW(RANGE MIN 3, MAX 8) a JOIN s WINDOW(RANGE MIN 3, MAX 8) b ON a.k = b.k
"""


def answers(connect: Callable[[], hr.Database]) -> list[list[str]]:
    """The answers of both queries over a life in which the size changes twice, with a restart in between."""
    with connect() as db:
        db.execute(DEFINED)
        db.start()
        _push(db, range(10))
        assert "for rows from 10 on" in str(db.execute("ALTER QUERY counted SET (WINDOW 3)")[0])
        _push(db, [8, *range(10, 20)])
    with connect() as db:
        db.start()
        db.execute("ALTER QUERY paired SET (WINDOW 6)")
        _push(db, range(20, 40))
        return [sorted(map(str, db[name].history().to_pylist())) for name in ("counted", "paired")]


def _push(db: hr.Database, times: Iterable[int]) -> None:
    db.push("s", [{"k": ts % 3, "ts": ts} for ts in times])


def test_sizes_change_in_what_stays_on_spark(spark: Any, tmp_path: Path) -> None:
    expected = answers(partial(hr.connect, runner="inline", storage=tmp_path / "inline"))
    found = answers(partial(hr.connect, spark=spark, buckets=3, storage=tmp_path / "spark"))
    assert found == expected
