"""One Spark session for all tests that need one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine

# Hypothesis profiles: `ci` is the same on every run, `soak` searches longer and at random.
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "soak", max_examples=5000, deadline=None, database=None, print_blob=True, suppress_health_check=_SLOW
)
# The example is made small for at most so many seconds; five minutes of a build went there for one failure.
engine.MAX_SHRINKING_SECONDS = 30

settings.load_profile(os.environ.get("HEADRACE_HYPOTHESIS", "ci"))


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
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
