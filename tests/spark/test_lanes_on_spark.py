"""Queries that are behind others say the same on Spark, wherever rows come from, while they change places."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from answers_at import content_at
from inside import execution_of
from waiting import wait_for

pytestmark = pytest.mark.spark

DEFINED = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
"""
QUERIES = {
    "sums": "SELECT k, SUM(v) AS x FROM s [RANGE 7] GROUP BY k",
    "pairs": "SELECT s.k, r.v AS x FROM s [RANGE 5] JOIN r [RANGE 6] ON s.k = r.k",
    "counts": "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k",
}
END = 80


def answers(connect: Callable[[], hr.Database], *, behind: bool) -> dict[str, list[Any]]:
    """The contents of all answers, over a life in which queries go behind and come back, with a restart."""
    with connect() as db:
        db.execute(DEFINED)
        for (name, text), weight in zip(QUERIES.items(), (0, 0, 2), strict=True):
            db.execute(f"CREATE QUERY {name} {f'WEIGHT {weight}' if behind else ''} AS {text}")
        db.start()
        _push(db, 0, 20)
        if behind:
            db.execute("ALTER QUERY sums SET (WEIGHT 1)")
        _push(db, 20, 40)
        if behind:
            db.execute("ALTER QUERY sums SET (WEIGHT DEFAULT)")
        _push(db, 40, 50)
    with connect() as db:
        db.start()
        _push(db, 50, END)
        if behind:
            assert not all(one.is_present for one in execution_of(db).run.backlogs())
            for name in QUERIES:
                db.execute(f"ALTER QUERY {name} SET (WEIGHT 1)")
            live = execution_of(db)._live
            assert live is not None
            wait_for(lambda: not live.lanes.waits)
        for stream in "sr":
            db.heartbeat(stream, END)
        if behind:
            wait_for(lambda: all(db[name].heartbeat == END for name in QUERIES))
        found = {name: db[name].changes().to_pylist() for name in QUERIES}
        return {
            name: [content_at(changes, ("k", "x"), at) for at in range(END)]
            for name, changes in found.items()
        }


def _push(db: hr.Database, begin: int, end: int) -> None:
    for at in range(begin, end, 10):
        for stream in "sr":
            rows = [{"k": ts % 3, "v": ts, "ts": ts} for ts in range(at, at + 10)]
            db.push(stream, rows[1::-1] + rows[2:] if stream == "s" else rows)


def test_they_say_the_same(spark: Any, tmp_path: Path) -> None:
    expected = answers(partial(hr.connect, runner="inline", storage=tmp_path / "inline"), behind=False)
    found = answers(partial(hr.connect, spark=spark, buckets=3, storage=tmp_path / "spark"), behind=True)
    assert found == expected
    assert all(any(contents) for contents in found.values())
