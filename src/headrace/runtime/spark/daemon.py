"""Spark's Python daemon, with workers that start fast and end quietly.

Workers are forked from the daemon. This one has loaded what they need, so that a worker need not; the
libraries' background threads (OpenBLAS, jemalloc) provide for a fork.

When Spark stops, its idle workers find their Unix socket closed and try to say so over it. PySpark's daemon
prints the traceback of that `BrokenPipeError` on the user's terminal, after everything has gone well.
"""

from __future__ import annotations

import gc
from typing import Any

from pyspark import daemon

import headrace.runtime.spark.stages  # noqa: F401 - loaded for the workers

_worker = daemon.worker


def quiet_worker(socket: Any, authenticated: bool) -> int:
    """Serve one task; the exit code, 1 where the other side is gone."""
    try:
        return int(_worker(socket, authenticated))
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = quiet_worker
    gc.freeze()
    daemon.manager()
