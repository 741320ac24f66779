"""What a session that Headrace starts is started with."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("master", "threshold"), [("local[2]", 50_000), ("spark://host:7077", 5_000)])
def test_a_local_jvm_compiles_thoroughly_later(master: str, threshold: int) -> None:
    runner = pytest.importorskip("headrace.runtime.spark.runner", reason="Spark is not installed")
    options = shlex.split(runner.session_settings(master)["spark.driver.extraJavaOptions"])
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    # The last word has it: an option that this JVM does not know is an error.
    asked = [java, *options, "-XX:-IgnoreUnrecognizedVMOptions", "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Tier4InvocationThreshold\s*=\s*(\d+)", flags)
    assert found is not None
    assert int(found[1]) == threshold
