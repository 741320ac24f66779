"""What a session that Headrace starts is started with, and what its workers are."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.runtime.spark.startup.ahead import session_settings

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("master", "threshold"), [("local[2]", 50_000), ("spark://host:7077", 5_000)])
def test_a_local_jvm_compiles_thoroughly_later(master: str, threshold: int) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed")
    options = shlex.split(session_settings(master)["spark.driver.extraJavaOptions"])
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    # The last word has it: an option that this JVM does not know is an error.
    asked = [java, *options, "-XX:-IgnoreUnrecognizedVMOptions", "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Tier4InvocationThreshold\s*=\s*(\d+)", flags)
    assert found is not None
    assert int(found[1]) == threshold


def test_workers_are_forked_with_everything_loaded() -> None:
    """As Spark starts them: PySpark is in an archive."""
    pyspark = pytest.importorskip("pyspark", reason="Spark is not installed")
    archives = [str(path) for path in Path(pyspark.__file__).parent.glob("python/lib/*.zip")]
    code = """
import sys, zipimport
from headrace.runtime.spark.startup import workers
assert any(isinstance(f, zipimport.zipimporter) for f in sys.path_importer_cache.values())
workers.load()
print("pandas" in sys.modules, "pyspark.worker" in sys.modules)
print(any(isinstance(f, zipimport.zipimporter) for f in sys.path_importer_cache.values()))
"""
    path = os.pathsep.join([*archives, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "False"]
