"""The JVM that a command starts before it loads what it needs; a script takes its place here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headrace.runtime.spark.startup import ahead

WRITES = """#!/bin/sh
printf '\\0\\0\\1\\2\\0\\0\\0\\5abcde' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
cat
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What is started in place of a JVM; it writes how it is reached, and ends with its input."""
    for name in ("spark/bin/spark-submit", "java/bin/java"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(WRITES)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(ahead, "_begun", [])
    yield tmp_path / "spark/bin/spark-submit"
    ahead._end()


def test_what_is_begun_is_reached_and_ends_with_its_input(program: Path) -> None:
    ahead.begin("local[2]")
    ahead.begin("local[2]")
    begun = ahead.taken("local[2]")
    assert begun is not None
    assert begun.settings["spark.master"] == "local[2]"
    assert begun.wait() == (258, "abcde")
    assert begun.process.stdin is not None
    begun.process.stdin.close()
    assert begun.process.wait(10) == 0
    assert ahead.taken("local[2]") is None


def test_what_is_begun_for_another_master_is_ended(program: Path) -> None:
    ahead.begin(None)
    (begun,) = ahead._begun
    assert ahead.taken("local[1]") is None
    assert begun.process.returncode == -9


def test_what_does_not_start_is_not_reached(program: Path) -> None:
    program.write_text("#!/bin/sh\nexit 3\n")
    ahead.begin(None)
    begun = ahead.taken(None)
    assert begun is not None
    started = time.monotonic()
    assert begun.wait() is None
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("missing", ["java", "spark"])
def test_nothing_is_begun_without_java_or_spark(program: Path, missing: str) -> None:
    (program.parents[2] / missing / "bin").rename(program.parents[2] / "gone")
    ahead.begin(None)
    assert ahead.taken(None) is None


@pytest.mark.parametrize(
    ("master", "variable", "waits"),
    [
        (None, None, True),
        ("local[2]", None, True),
        ("spark://machine:7077", None, False),
        (None, "SPARK_HOME", False),
        (None, "PYSPARK_PYTHON", False),
    ],
)
def test_a_daemon_waits_only_where_the_jvm_would_start_the_same(
    master: str | None, variable: str | None, waits: bool, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text("#!/bin/sh\nenv > $0.environment\n")
    monkeypatch.setattr(ahead, "_program", lambda: str(program))
    monkeypatch.setattr(ahead, "_standbys", [])
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "other")
    ahead.begin(master)
    begun = ahead.taken(master)
    assert begun is not None
    begun.process.wait(60)
    begun.end()
    told = program.with_name(f"{program.name}.environment").read_text()
    assert ("HEADRACE_STANDBY=" in told, len(ahead._standbys)) == (waits, waits)
    for process in ahead._standbys:
        process.wait(60)


@pytest.mark.parametrize(
    ("words", "masters"),
    [
        (["run", "q.sql"], [None]),
        (["run", "q.sql", "--master", "local[3]"], ["local[3]"]),
        (["serve", "--master=local[3]", "--runner", "spark"], ["local[3]"]),
        (["run", "q.sql", "--runner", "inline"], []),
        (["run", "--runner=inline"], []),
        (["run", "--runner"], []),
        (["run", "-h"], []),
        (["explain", "q.sql"], []),
        (["--version"], []),
        ([], []),
    ],
)
def test_which_commands_need_it(
    words: Sequence[str], masters: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(ahead, "begin", asked.append)
    ahead.begin_for(words)
    assert asked == masters
