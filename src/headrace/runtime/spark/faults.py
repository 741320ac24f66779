"""What it means for a run when Spark fails: a worker has died, the JVM has, or someone pressed Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError

from headrace.errors import RunnerLostError, WorkerLostError

if TYPE_CHECKING:
    from pyspark import SparkContext

GATEWAY_ERRORS: Final = (Py4JError, ConnectionError)
"""What a call of the JVM raises when there is none any more."""

_DEATHS: Final = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "Python daemon failed to launch worker",
    "Timed out while waiting for the Python worker to connect back",
    "ExecutorLostFailure",
    "java.io.IOException: Broken pipe",
    "java.net.SocketException",
)
"""What Spark says when a worker, the daemon that forks workers, or an executor is gone."""

_FATAL: Final = re.compile(r"Fatal Python error: (.+)")
"""How Python's own report of a crash begins, which Spark passes on."""


@contextmanager
def faults_named(context: SparkContext, epoch: int) -> Iterator[None]:
    """Say what an epoch has failed of, where that is none of the epoch's own doing.

    Args:
        context: where it runs.
        epoch: its number.

    Raises:
        RunnerLostError: there is no JVM any more, or it has stopped Spark.
        WorkerLostError: a Python worker or an executor has died.
        KeyboardInterrupt: Spark has cancelled the epoch for Ctrl-C, whatever else it raised on the way.
        Exception: any other error, unchanged.
    """
    try:
        yield
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        if not is_alive(context):
            raise jvm_lost(f"during epoch {epoch}") from error
        if any(death in str(error) for death in _DEATHS):
            fatal = _FATAL.search(str(error))
            raise WorkerLostError(
                f"a Python worker of Spark's died during epoch {epoch}" + (f": {fatal[1]}" if fatal else ""),
                hint="a function that crashes ends the worker it runs in, and so does the system when memory "
                "is short: fix the function, or take smaller epochs",
            ) from error
        raise


def jvm_lost(when: str) -> RunnerLostError:
    """The error for a JVM that is gone.

    Args:
        when: when it was found missing, such as `during epoch 5`.
    """
    return RunnerLostError(
        f"Spark's JVM ended {when}",
        hint="start again: a durable store goes on from its last commit. If it keeps ending, give it more "
        "memory with Spark's setting spark.driver.memory, or take smaller epochs",
    )


@contextmanager
def jvm_needed(when: str) -> Iterator[None]:
    """Name the fault where a call finds no JVM.

    Args:
        when: as `jvm_lost` takes it.

    Raises:
        RunnerLostError: there is none.
        Exception: any other error, unchanged.
    """
    try:
        yield
    except Py4JJavaError:
        raise
    except GATEWAY_ERRORS as error:
        raise jvm_lost(when) from error


def is_alive(context: SparkContext) -> bool:
    """Whether a session's JVM answers and has not stopped Spark."""
    try:
        return context._jsc is not None and not context._jsc.sc().isStopped()
    except GATEWAY_ERRORS:
        return False


def _was_interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
