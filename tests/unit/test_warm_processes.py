"""Processes that are forked from a warm one are like those that Python starts by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import warm_processes

TELLING = """
import atexit, os, sys
atexit.register(lambda: print("at the end"))
print(sys.argv, os.getcwd(), os.environ.get("TOLD"), __name__, sys.stdin.read())
print("problem", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


def test_a_command_is_carried_out_as_by_python_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TELLING, "3", "two words"]
    environment = os.environ | {"TOLD": "so"}
    ours, real = (
        run(
            command, cwd=tmp_path, env=environment, input="given", capture_output=True, text=True, check=False
        )
        for run in (warm_processes.run, subprocess.run)
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)
    assert "at the end" in ours.stdout


@pytest.mark.parametrize(
    "code", ["raise SystemExit('why')", "raise SystemExit(-1)", "import nothing_there", "1 / 0", "pass"]
)
def test_the_status_is_that_of_python(code: str) -> None:
    command = [sys.executable, "-c", code]
    ours = warm_processes.run(command, capture_output=True, text=True)
    real = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ours.returncode == real.returncode
    assert ours.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_a_module_and_a_script_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'imported'")
    (tmp_path / "script.py").write_text("import sys, beside; print(beside.WORD, sys.argv[1:], __name__)")
    for words in ([str(tmp_path / "script.py"), "a"], ["-m", "script", "a"]):
        done = warm_processes.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == "imported ['a'] __main__\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_is_a_child_that_can_be_ended(number: signal.Signals) -> None:
    code = "import time; print('there', flush=True)\nwhile True: time.sleep(0.1)"
    with warm_processes.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.send_signal(number)
        assert process.wait(30) == -number


def test_a_fault_is_wanted_by_the_environment() -> None:
    code = "from headrace.runtime.store.crash_points import reach; reach('commit.done'); print('went on')"
    command = [sys.executable, "-c", code]
    assert warm_processes.run(command, capture_output=True).stdout == b"went on\n"
    environment = os.environ | {"HEADRACE_FAULT": "commit.done:1"}
    assert warm_processes.run(command, env=environment).returncode == -signal.SIGKILL


def test_descriptors_are_passed_on() -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-c", f"import os; os.write({writer}, b'passed')"]
    warm_processes.run(command, pass_fds=[writer], check=True)
    os.close(writer)
    assert os.read(reader, 100) == b"passed"
    os.close(reader)
