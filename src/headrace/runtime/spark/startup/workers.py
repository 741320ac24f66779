"""What Spark's Python daemon loads and serves, with workers that start fast and end quietly.

Workers are forked from the daemon. This one has loaded what they need, so that their first task is as fast as
any. The libraries' background threads (OpenBLAS, jemalloc) provide for a fork.

When Spark stops, its idle workers find their Unix socket closed and try to say so over it. PySpark's daemon
prints the traceback of that `BrokenPipeError` on the user's terminal, after everything has gone well.
"""

from __future__ import annotations

import gc
import sys
from typing import Any
from zipimport import zipimporter

import numpy as np
import pyarrow as pa
import pyspark.worker  # noqa: F401 - loaded for the workers
from pyspark import daemon

import headrace.runtime.spark.startup.resident  # noqa: F401 - loaded for the workers
from headrace.elements import integers
from headrace.kernels.rows.hashing import buckets_of

_worker = daemon.worker


def quiet_worker(socket: Any, authenticated: bool) -> int:
    """Serve one task; the exit code, 1 where the other side is gone."""
    try:
        return int(_worker(socket, authenticated))
    except BrokenPipeError:
        return 1


def load() -> None:
    """Do what every worker would have to do in its first task."""
    # PyArrow loads pandas when it first hands an array to NumPy.
    integers(pa.array([0]))
    # Numba sets itself up, a third of a second, when it first loads a kernel.
    buckets_of(np.zeros(1, np.int64), 1)
    # A worker's search path is changed, so it looks for modules anew: in Spark's archive once for each of its
    # folders that is known here, and each time it reads the list of all files in it.
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def serve() -> None:
    """Fork workers as Spark asks for them, until it stops."""
    daemon.worker = quiet_worker
    gc.freeze()
    gc.enable()
    daemon.manager()
