"""Split, pushed and Spark streams in one run on Spark, killed between the steps of a commit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crashing
from headrace.runtime.journal.inspect import verify

pytestmark = [pytest.mark.spark, pytest.mark.kills]

FILES = 5


def attempt(folder: Path, files: Path, fault: str = "") -> tuple[int, str]:
    """One start of the job in a process with a Spark of its own; how it ended, and what it said."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, crashing.__file__, "--attempt", str(folder), "--files", str(files)]
    done = subprocess.run(
        [*command, "--pushes", "6", "--epoch-rows", "1500"],
        env=os.environ | {"HEADRACE_FAULT": fault},
        capture_output=True,
        text=True,
        timeout=3 * crashing.PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr


def answers(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    return found


def test_killed_runs_end_as_if_undisturbed(tmp_path: Path) -> None:
    files = tmp_path / "files"
    crashing.write_files(files, FILES)
    code, said = attempt(tmp_path / "plain", files)
    assert code == 0, said
    for fault in ("commit.drafted:3", "sink.taken:2"):
        code, said = attempt(tmp_path / "killed", files, fault)
        assert code == -signal.SIGKILL, f"{fault}: {said}"
    code, said = attempt(tmp_path / "killed", files)
    assert code == 0, said
    assert answers(tmp_path / "killed") == answers(tmp_path / "plain")
    assert answers(tmp_path / "plain")["read"]["filed"] == [10 * FILES, 0, 0]
    assert verify(tmp_path / "killed/store").problems == ()
    assert crashing.strays(tmp_path / "killed/store") == []
