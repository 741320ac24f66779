"""`headrace run` over a source that never ends: it prints until Ctrl-C, and leaves a clean store."""

from __future__ import annotations

import json
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli import app

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM tick FROM rate OPTIONS (rowsPerSecond = 50) TIMESTAMP BY timestamp;
CREATE QUERY ticks AS SELECT value FROM tick;
CREATE QUERY counts AS SELECT COUNT(*) AS n FROM tick [RANGE 1 SECOND SLIDE 1 SECOND];
CREATE QUERY steady AS SELECT DISTINCT 'up' AS state FROM tick [RANGE 1 HOUR];
"""
COMMAND = "import sys; from headrace.cli import main; sys.argv = sys.argv[1:]; main()"


def test_prints_until_interrupted_and_leaves_a_clean_store(tmp_path: Path) -> None:
    file, store = tmp_path / "ticks.sql", tmp_path / "store"
    file.write_text(SQL)
    words = ["headrace", "run", str(file), "--as", "history", "--format", "jsonl", "--storage", str(store)]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words, "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdout is not None
        first = _line(process.stdout, deadline=time.monotonic() + 240)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    rows = [json.loads(line) for line in (first + out).splitlines()]
    values = [row["value"] for row in rows if row["query"] == "ticks"]
    assert values == list(range(len(values)))
    steady = [row for row in rows if row["query"] == "steady"]
    assert [row["state"] for row in steady] == ["up"], "it is told once, when everything ends"
    last = max(row["valid_to"] for row in rows if row["query"] == "ticks")
    assert steady[0]["valid_from"] < last <= steady[0]["valid_to"]
    assert b"stopping after this epoch" in err
    assert CliRunner().invoke(app, ["store", str(store), "--verify"]).exit_code == 0


def test_options_for_inputs_that_end_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "pushed.sql"
    file.write_text("CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts; SELECT k FROM s;")
    done = CliRunner().invoke(app, ["run", str(file), "--runner", "inline", "--head", "3"])
    assert done.exit_code == 2
    assert "--head is for inputs that end" in done.stderr


def _line(stream: object, deadline: float) -> bytes:
    """The first line that a process prints, before the deadline."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)  # type: ignore[arg-type]
        assert selector.select(timeout=max(0.0, deadline - time.monotonic())), "nothing was printed in time"
    return stream.readline()  # type: ignore[attr-defined, no-any-return]
