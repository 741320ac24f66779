"""A join of a silent stream, one filtered to nothing and one 10 minutes behind; also killed in between."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

import headrace as hr
import silent_streams
import warm_processes
from silent_streams import CLAUSES, IDLE, QUERY, SILENT, STREAMS
from watched_clock import Clock


def answered(db: hr.Database) -> tuple[int, list[int]]:
    """How far the join is final, and when it has its rows."""
    return db["joined"].heartbeat, db["joined"].changes()["valid_from"].to_pylist()


@pytest.mark.parametrize("clause", CLAUSES)
def test_output_appears_once_the_silent_stream_is_idle(clock: Clock, clause: str) -> None:
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(STREAMS + SILENT + QUERY.format(clause=clause))
        silent_streams.begin(db)
        clock.let_pass(IDLE - 3)
        silent_streams.push(db, 50)
        assert answered(db) == (0, [])
        assert any(one.waiting_rows for one in db.status.operators) == bool(clause)
        clock.let_pass(4)
        assert answered(db) == (45, [0])
        silent_streams.push(db, 100)
        assert answered(db) == (95, [0, 50])
        assert db.stop().late == 0


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_silence_goes_on_after_a_kill(clock: Clock, tmp_path: Path, clause: str) -> None:
    """What has counted until the last commit counts on, and nothing is late."""
    command = [sys.executable, silent_streams.__file__, str(tmp_path), clause]
    killed = warm_processes.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with hr.connect(runner="inline", storage=tmp_path, clock=clock) as db:
        db.execute(STREAMS + SILENT + QUERY.format(clause=clause))
        db.start()
        clock.wait_for_looks()
        assert answered(db) == (0, [])
        clock.let_pass(5)
        assert answered(db) == (45, [0])
        silent_streams.push(db, 100)
        assert answered(db) == (95, [0, 50])
        assert db.stop().late == 0
