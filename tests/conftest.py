"""Which files are read, how many examples there are, and one Spark session for all tests that need one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine

from headrace.engine import connection
from headrace.runtime.tasks.inline import InlineRunner
from long_tests import LongTests

# Hypothesis profiles: `ci` is the same on every run, `soak` searches longer and at random.
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
# With more examples of what takes long, and with some more (tests/how_many.py).
settings.register_profile("runs", settings.get_profile("ci"))
settings.register_profile("build", settings.get_profile("ci"))
settings.register_profile(
    "soak", max_examples=5000, deadline=None, database=None, print_blob=True, suppress_health_check=_SLOW
)
# The example is made small for at most so many seconds; five minutes of a build went there for one failure.
engine.MAX_SHRINKING_SECONDS = 30

settings.load_profile(os.environ.get("HEADRACE_HYPOTHESIS", "ci"))

# HEADRACE_THREADS=7 lets all inline runs that say nothing else have so many threads, as on a machine with as
# many cores; they take turns as often as they can.
if "HEADRACE_THREADS" in os.environ:
    cores, begin = int(os.environ["HEADRACE_THREADS"]), InlineRunner.__init__

    def begin_with_threads(runner: InlineRunner, parallelism: int = 1, *others: Any, **named: Any) -> None:
        if parallelism == 1 and not others:
            named.setdefault("threads", cores)
        begin(runner, parallelism, *others, **named)

    InlineRunner.__init__ = begin_with_threads  # type: ignore[method-assign, assignment]
    vars(connection)["machine_cores"] = lambda: cores
    sys.setswitchinterval(1e-5)

# A shell that runs the tests in the background lets them ignore Ctrl-C, and so the processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# A property that has more examples in `make runs` bears `@examples(...)`, which makes it one of the `runs`.
_SPELLED = {"runs": ("@examples(", "mark.runs")}


def pytest_configure(config: pytest.Config) -> None:
    """Watches for tests that take long, where no test has to compile kernels."""
    if "HEADRACE_LONG_TESTS" in os.environ:
        config.pluginmanager.register(LongTests(), "long tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files that never name a mark that is asked for.

    `-m "spark and not kills"` would otherwise import all files, ten times as many, in every process.
    """
    if not collection_path.match("test_*.py"):
        return None
    wanted = config.option.markexpr
    asked = [] if " or " in wanted else [part for part in wanted.split(" and ") if part.isidentifier()]
    text = collection_path.read_text() if asked else ""
    return True if any(not _names(text, mark) for mark in asked) else None


def _names(text: str, mark: str) -> bool:
    return any(word in text for word in _SPELLED.get(mark, (mark,)))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session with two cores and no UI, stopped at the end."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").appName("headrace tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Tests end before thorough compilation pays; Structured Streaming's state has 200 partitions else.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
