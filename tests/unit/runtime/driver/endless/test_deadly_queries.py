"""A query in which workers die ends alone, like one whose aggregate fails; the workers are stand-ins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import WorkerLostError
from headrace.lowering.query_id import first_name
from headrace.runtime.tasks.inline import InlineRunner
from headrace.runtime.tasks.messages import EpochWork, TaskReport

TEXT = """
CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM other (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY good AS SELECT k, SUM(v) AS total FROM s [RANGE 5] GROUP BY k;
CREATE QUERY deadly AS SELECT a.v, b.v AS w FROM s [RANGE 5] a, other [RANGE 5] b;
CREATE QUERY fine AS SELECT v FROM s;
"""
BOUNDED = """
CREATE STREAM bid FROM nexmark OPTIONS (events=2000, seed=3) TIMESTAMP BY ts;
CREATE QUERY good AS SELECT auction, MAX(price) AS top FROM bid [RANGE 5 SECONDS] GROUP BY auction;
CREATE QUERY deadly AS SELECT COUNT(*) AS n FROM bid [RANGE 5 SECONDS];
"""


@pytest.fixture
def workers_die(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Workers that die in every epoch, from the one that is noted here on, that answers `deadly`."""
    from_epoch = [2]
    run_epoch = InlineRunner.run_epoch

    def run(self: InlineRunner, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        if work.epoch >= from_epoch[0] and "deadly" in {first_name(query) for query, _ in work.graph.outputs}:
            raise WorkerLostError("a worker died", hint="mend it")
        return run_epoch(self, work, frames)

    monkeypatch.setattr(InlineRunner, "run_epoch", run)
    return from_epoch


def answers(db: hr.Database) -> dict[str, Any]:
    return {query.name: query.history().to_pylist() for query in db.queries if query.name != "deadly"}


def test_a_deadly_query_ends_alone_and_for_good(workers_die: list[int], tmp_path: Path) -> None:
    failed = (("deadly", "a worker died", "mend it"),)
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(TEXT)
        db.start()
        assert db.push("s", {"k": "a", "v": 0, "ts": 0}, producer="p", sequence=0)
        assert db.push("other", {"v": 0, "ts": 0}, producer="p", sequence=0), "taken, as its query still was"
        for ts in range(1, 4):
            assert db.push("s", {"k": "ab"[ts % 2], "v": ts, "ts": ts}, producer="p", sequence=ts)
        with pytest.raises(hr.UserError, match="no query reads a stream other"):
            db.push("other", {"v": 1, "ts": 1})
        with pytest.raises(hr.UserError, match="a worker died"):
            next(query for query in db.queries if query.name == "deadly").history()
        assert db.stop().failed == failed
    workers_die[0] = 1000
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(TEXT)
        db.start()
        assert not db.push("s", {"k": "b", "v": 3, "ts": 3}, producer="p", sequence=3)
        assert db.push("s", {"k": "a", "v": 4, "ts": 4}, producer="p", sequence=4)
        assert db.stop().failed == failed, "as a restart finds it"
        found = answers(db)
    with hr.connect(runner="inline") as db:
        db.execute(TEXT)
        db.drop("deadly")
        db.start()
        for ts in range(5):
            db.push("s", {"k": "ab"[ts % 2], "v": ts, "ts": ts})
        db.stop()
        assert answers(db) == found


def test_a_bounded_run_goes_on_without_it(workers_die: list[int]) -> None:
    with hr.connect(runner="inline", epoch_rows=500) as db:
        db.execute(BOUNDED)
        summary = db.run()
        assert [name for name, _, _ in summary.failed] == ["deadly"]
        found = answers(db)
    workers_die[0] = 1000
    with hr.connect(runner="inline", epoch_rows=500) as db:
        db.execute(BOUNDED)
        assert db.run().rows == summary.rows
        assert answers(db) == found


def test_a_worker_that_dies_now_and_then_ends_nothing(
    workers_die: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_die[0] = 1000
    run_epoch = InlineRunner.run_epoch
    tried: list[int] = []

    def run(self: InlineRunner, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        tried.append(work.epoch)
        if tried.count(work.epoch) < 3:
            raise WorkerLostError("a worker died")
        return run_epoch(self, work, frames)

    monkeypatch.setattr(InlineRunner, "run_epoch", run)
    with hr.connect(runner="inline", epoch_rows=500) as db:
        db.execute(BOUNDED)
        summary = db.run()
    assert summary.failed == ()
    assert tried == [epoch for epoch in range(1, summary.epochs + 1) for _ in range(3)]
