"""Memory that arrays no longer need, and that the process keeps."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

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


def found(**environment: str) -> tuple[int, str]:
    """So many times memory is fetched for arrays after the first, and from where Arrow's is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "ARROW_"))}
    faults, pool = subprocess.check_output(
        [sys.executable, "-c", RUN], env=clean | environment, text=True
    ).split()
    return int(faults), pool


def test_a_process_keeps_the_memory_of_arrays() -> None:
    """Unless it is told otherwise in its environment."""
    kept, pool = found()
    fetched, other = found(MALLOC_MMAP_THRESHOLD_="1048576", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert 4 * kept < fetched
    assert (pool, other) == ("system", "mimalloc")
