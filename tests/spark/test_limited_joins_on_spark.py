"""Joins that remember a share of their rows find the same pairs on Spark, while shares change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import headrace as hr
from headrace.algebra.tunings.tunings import remembered_in
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.remembering.remembering import Remembering
from inside import core_of

pytestmark = pytest.mark.spark

DEFINED = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q WITHIN MEMORY '1 MB' AS
    SELECT a.k, a.v, b.v AS w, c.v AS x FROM s [RANGE 12] a JOIN r [RANGE 9] b ON a.k = b.k
    JOIN s [RANGE 5] c ON b.k = c.k
"""


def answer(connect: Callable[[], hr.Database]) -> list[str]:
    """The answer over a life in which shares change twice, with a restart in between."""
    with connect() as db:
        db.execute(DEFINED)
        db.start()
        _push(db, 0, 20)
        _remember(db, 300_000, 600_000, 1_000_000)
        _push(db, 20, 40)
    with connect() as db:
        db.start()
        _remember(db, 100_000, 900_000, 500_000)
        _push(db, 40, 80)
        return sorted(map(str, db["q"].history().to_pylist()))


def _push(db: hr.Database, begin: int, end: int) -> None:
    for stream in "sr":
        db.push(stream, [{"k": ts % 3, "v": ts, "ts": ts} for ts in range(begin, end)])


def _remember(db: hr.Database, *shares: int) -> None:
    query = db["q"]
    tunings = remembered_in(core_of(db).definitions.queries[query.id].plan)
    change = Tune(dict(zip(tunings, shares, strict=True)), {tuning: [query.id] for tuning in tunings})
    core_of(db).started.tune(change)


def test_the_same_pairs_are_found(spark: Any, tmp_path: Path) -> None:
    with patch.object(Remembering, "after", lambda *_: None):
        expected = answer(partial(hr.connect, runner="inline", storage=tmp_path / "inline"))
        found = answer(partial(hr.connect, spark=spark, buckets=3, storage=tmp_path / "spark"))
    assert found == expected
    assert 10 < len(found) < 20_000
