"""OVERFLOW of streams FROM push: rows for which there is no room wait, or are dropped and counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import BusyError
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.intake.streams import Intake

STREAM = "CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
QUERY = "CREATE QUERY q AS SELECT v FROM s"


class Held:
    """A run whose epochs wait for a word."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        run_epoch = LiveRun._run_epoch

        def waits(live: LiveRun, intakes: Mapping[str, Intake], *more: Any) -> Mapping[str, BaseException]:
            self.reached.set()
            self.go.wait(30)
            return run_epoch(live, intakes, *more)

        monkeypatch.setattr(LiveRun, "_run_epoch", waits)


def test_what_is_dropped_is_in_no_answer_and_counted_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with hr.connect(runner="inline", storage=tmp_path / "store", epoch_rows=1) as db:
        db.execute(f"{STREAM} OVERFLOW DROP OLDEST; {QUERY}")
        db.start()
        first = db.push("s", {"v": 0, "ts": 0}, wait=False)
        assert held.reached.wait(30)
        pushed = [db.push("s", {"v": ts, "ts": ts}, wait=False) for ts in range(1, 8)]
        held.go.set()
        assert first.result(30) is True
        assert pushed[-1].result(30) is True
        for lost in pushed[:3]:
            with pytest.raises(BusyError, match="OVERFLOW DROP OLDEST"):
                lost.result(30)
        db.stop()
        assert db.queries[0].changes().column("v").to_pylist() == [0, 4, 5, 6]
        assert db.status.stream("s").dropped == 3
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.start()
        db.push("s", {"v": 8, "ts": 8})
        assert db.status.stream("s").dropped == 3
        assert "OVERFLOW DROP OLDEST" in str(db.execute("SHOW CREATE STREAM s")[0])


def test_another_policy_counts_from_the_next_push_on(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with hr.connect(runner="inline", epoch_rows=1) as db:
        db.execute(f"{STREAM} OVERFLOW DROP NEWEST; {QUERY}")
        db.start()
        db.execute("ALTER STREAM s SET (OVERFLOW BLOCK)")
        pushed = [db.push("s", {"v": 0, "ts": 0}, wait=False)]
        assert held.reached.wait(30)
        pushed += [db.push("s", {"v": ts, "ts": ts}, wait=False) for ts in range(1, 5)]
        waiting = threading.Thread(target=lambda: pushed.append(db.push("s", {"v": 5, "ts": 5}, wait=False)))
        waiting.start()
        held.go.set()
        waiting.join(30)
        assert [push.result(30) for push in pushed] == [True] * 6
        assert db.status.stream("s").dropped == 0


def test_other_input_has_none(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v,ts\n1,1\n")
    with hr.connect(runner="inline") as db:
        columns, path = "v BIGINT, ts BIGINT", tmp_path / "t.csv"
        text = f"CREATE STREAM t ({columns}) FROM csv OPTIONS (path '{path}') TIMESTAMP BY ts"
        with pytest.raises(hr.UserError, match="OVERFLOW is of streams FROM push, and t is FROM csv"):
            db.execute(f"{text} OVERFLOW BLOCK")
        db.execute(text)
        with pytest.raises(hr.UserError, match="OVERFLOW is of streams FROM push, which t is not"):
            db.execute("ALTER STREAM t SET (OVERFLOW DROP OLDEST)")
