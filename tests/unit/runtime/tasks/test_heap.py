"""Memory that arrays no longer need, and that the process keeps."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are glibc's")

RUN = """
import resource
import pyarrow as pa
from headrace.runtime.tasks.heap import keep_freed_memory

keep_freed_memory()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        bytearray(b"x") * 2**26
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults(), pa.default_memory_pool().backend_name)
"""


COMMAND = """
import pathlib
import pyarrow as pa
from typer.testing import CliRunner
from headrace.cli.app import app

file = pathlib.Path("q.sql")
file.write_text("CREATE STREAM bid FROM nexmark OPTIONS (events=100) TIMESTAMP BY ts; SELECT * FROM bid")
result = CliRunner().invoke(app, ["run", "--runner", "inline", str(file)])
assert result.exit_code == 0, result.output
print(pa.default_memory_pool().backend_name)
"""


FORKED = """
import os
import resource
import threading

if os.environ["EARLY"]:
    from headrace.runtime.spark.startup.standby import loaded

    loaded()
import pyarrow as pa
from headrace.runtime.tasks.heap import keep_freed_memory

def faults():
    def work():
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(10):
            arrays = [bytearray(b"x") * 2**20 for _ in range(100)]
            del arrays
        print(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

if os.fork():
    os.wait()
else:
    keep_freed_memory()
    faults()
    faults()
"""


def said(code: str, folder: Path, **environment: str) -> list[str]:
    """The words that a new process prints in which nothing of the kind is set."""
    ours = ("MALLOC_", "ARROW_", "GLIBC_TUNABLES")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.check_output(
        [sys.executable, "-c", code], env=clean | environment, cwd=folder, text=True
    ).split()


def found(folder: Path, **environment: str) -> tuple[int, str]:
    """So many times memory is fetched for arrays after the first, and from where Arrow's is."""
    faults, pool = said(RUN, folder, **environment)
    return int(faults), pool


def test_a_process_keeps_the_memory_of_arrays(tmp_path: Path) -> None:
    """Unless it is told otherwise in its environment."""
    kept, pool = found(tmp_path)
    fetched, other = found(tmp_path, MALLOC_MMAP_THRESHOLD_="1048576", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert 4 * kept < fetched
    assert (pool, other) == ("system", "mimalloc")


def test_a_command_that_runs_epochs_does(tmp_path: Path) -> None:
    assert said(COMMAND, tmp_path) == ["system"]


@pytest.mark.parametrize("early", [True, False])
def test_threads_of_workers_keep_it_too(early: bool, tmp_path: Path) -> None:
    """Their daemon says so before it loads PyArrow; otherwise they take over what a thread of it had."""
    _, after = said(FORKED, tmp_path, EARLY="1" if early else "")
    assert (int(after) < 1_000) == early
