"""Spark's workers die: by chance, each time a query runs, and with the whole JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headrace as hr
from headrace.runtime.journal.inspect import verify

pytestmark = pytest.mark.spark

ENDLESS = """
CREATE STREAM tick FROM rate OPTIONS (rowsPerSecond = 50) TIMESTAMP BY timestamp;
CREATE QUERY ticks AS SELECT value FROM tick;
"""
COMMAND = "import sys; from headrace.cli import main; sys.argv = sys.argv[1:]; main()"


def test_a_worker_that_dies_fails_the_epoch_and_one_that_always_dies_its_query(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.runtime.driver.endless.retries.ATTEMPTS", 2)
    died = tmp_path / "died"

    def dies_once(values: pa.Array) -> pa.Array:
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pc.add(values, 1)

    def dies(values: pa.Array) -> pa.Array:
        os.kill(os.getpid(), signal.SIGKILL)

    rows = {"ts": list(range(40)), "k": [place % 3 for place in range(40)], "v": list(range(40))}
    with hr.connect(spark=spark) as db:
        db.function("dies_once", dies_once, arguments=["BIGINT"], returns="BIGINT")
        db.function("dies", dies, arguments=["BIGINT"], returns="BIGINT")
        db.stream("r", pa.table(rows), timestamp="ts")
        lucky = db.query("SELECT dies_once(v) AS v FROM r", name="lucky")
        db.query("SELECT k, SUM(dies(v)) AS total FROM r [RANGE 9] GROUP BY k", name="deadly")
        largest = db.query("SELECT MAX(v) AS top FROM r [RANGE 1]", name="largest")
        summary = db.run()
        assert [name for name, _, _ in summary.failed] == ["deadly"]
        assert "a Python worker of Spark's died during epoch 1" in summary.failed[0][1]
        assert lucky.history()["v"].to_pylist() == [value + 1 for value in rows["v"]]
        assert largest.history()["top"].to_pylist() == rows["v"]


def test_a_jvm_that_is_killed_is_an_error_and_not_a_fault_of_ours(tmp_path: Path) -> None:
    file, store = tmp_path / "ticks.sql", tmp_path / "store"
    file.write_text(ENDLESS)
    place = tmp_path / "tmp"
    place.mkdir()
    words = ["headrace", "run", str(file), "--format", "jsonl", "--storage", str(store)]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words, "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["value"] == 0
        (private,) = place.iterdir()
        assert private.stat().st_mode & 0o777 == 0o700
        kinds = {path.name.partition("-")[0] for path in private.iterdir()}
        assert {"lock", "spark", "blockmgr"} <= kinds
        for child in children(process.pid):
            os.kill(child, signal.SIGKILL)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 2, said
    assert f"{file}: Spark's JVM ended" in said
    assert "hint: start again: a durable store goes on from its last commit" in said
    assert "Traceback" not in said
    assert verify(store).problems == ()
    assert list(place.iterdir()) == [], "what is temporary goes with the process"


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
