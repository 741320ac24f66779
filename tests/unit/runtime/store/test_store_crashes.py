"""A run killed at every fault point and at random moments answers as if nothing had happened.

Inline: split and pushed streams in one endless run, with the producers' own retries (`tests/crashing.py`),
and with sinks, each of which holds in the end what its promise says (`tests/delivering.py`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import crashing
import warm_processes
from headrace.runtime.store.crash_points import POINTS

pytestmark = pytest.mark.kills


def crash(*options: str) -> dict[str, Any]:
    """What `crashing.py` prints: an undisturbed job and killed ones."""
    done = warm_processes.run(
        [sys.executable, crashing.__file__, *options],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any]) -> dict[str, int]:
    """Every killed job ended like the undisturbed one, with a whole and tidy store; its kills per point."""
    plain = found["plain"]
    assert plain["attempts"] == 1
    assert plain["answers"]["read"]["signal"][0] == 2 * 3 * 20, "every pushed row was read once"
    kills: dict[str, int] = {}
    for job in found["killed"]:
        assert job["answers"] == plain["answers"]
        assert job["damage"] == job["strays"] == []
        for point, count in job["kills"].items():
            kills[point] = kills.get(point, 0) + count
    return kills


@pytest.mark.parametrize("count", [1, 4])
def test_a_run_killed_at_every_fault_point_ends_as_if_undisturbed(count: int) -> None:
    """Killed when it comes to a point for the first or the fourth time."""
    kills = check(crash("--counts", str(count)))
    # A job changes its plan twice, so that the fourth of those points is never reached.
    assert set(kills) >= {point for point in POINTS if count == 1 or not point.startswith("change.")}
    assert sum(kills.values()) >= len(POINTS) - (0 if count == 1 else 5)


def test_a_run_killed_at_random_moments_ends_as_if_undisturbed() -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    kills = check(crash("--counts", "", "--random", "16", "--seed", str(seed), "--longest", "0.8"))
    assert kills["random"] >= 8, f"seed {seed}"


def test_a_run_that_keeps_few_results_is_swept_and_reads_every_row_once_when_killed() -> None:
    """With retention, commit records go too; a sweep cut short leaves some of them."""
    kills = check(crash("--counts", "2,30", "--retain", "4", "--epoch-rows", "80"))
    assert sum(kills.values()) >= len(POINTS)


@pytest.mark.parametrize("point", ["commit.linked"])
def test_the_environment_kills_a_process(point: str, tmp_path: Path) -> None:
    """The same by the variable that the soak and the Spark tests use, in a process of its own."""
    code = """
import headrace, sys
with headrace.connect(runner="inline", storage=sys.argv[1], epoch_rows=100) as db:
    db.execute("CREATE STREAM bid FROM nexmark OPTIONS (events=1000) TIMESTAMP BY ts; SELECT price FROM bid")
    print(db.run().epochs)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    environment = os.environ | {"HEADRACE_FAULT": f"{point}:3"}
    killed = warm_processes.run(command, env=environment, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "store/commits").glob("*.json"))) == 2  # one link was that of store.json
    done = warm_processes.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 2
