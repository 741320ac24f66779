"""The file with Spark's classes that JVMs map; a script takes the place of Java here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.runtime.spark.startup.archive import archive_options


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Spark's home folder; with a Java, and a folder for archives."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(0o755)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return str(tmp_path / "spark")


def asked(options: Sequence[str]) -> tuple[str, Path]:
    """What a JVM is to do with which archive."""
    option, _, path = options[-1].partition("=")
    return option, Path(path)


def test_the_second_jvm_writes_the_archive_that_later_ones_map(spark: str) -> None:
    assert archive_options(spark) == ()
    option, written = asked(archive_options(spark))
    assert option == "-XX:ArchiveClassesAtExit"
    # As long as it is being written, the next one writes another.
    written.write_bytes(bytes(100))
    option, other = asked(archive_options(spark))
    assert (option, other == written) == ("-XX:ArchiveClassesAtExit", False)
    written.write_bytes(b"whole")
    option, archive = asked(archive_options(spark))
    assert (option, archive.read_bytes()) == ("-XX:SharedArchiveFile", b"whole")
    assert not written.exists()
    # One that was written besides takes its place, so that nothing is left over.
    other.write_bytes(b"other")
    assert asked(archive_options(spark)) == (option, archive)
    assert archive.read_bytes() == b"other"


def test_another_java_or_spark_has_an_archive_of_its_own(spark: str, tmp_path: Path) -> None:
    def name() -> str:
        assert archive_options(spark) == ()
        return asked(archive_options(spark))[1].name.split("-")[0]

    found = {name()}
    for changed in ("spark/jars", "java/bin/java"):
        os.utime(tmp_path / changed, (1, 1))
        found.add(name())
    assert len(found) == 3


def test_what_is_of_no_use_any_more_is_removed(spark: str, tmp_path: Path) -> None:
    archive_options(spark)
    folder = tmp_path / "cache" / "headrace"
    for end in (".jsa", ".started", "-1-1.unfinished", ".txt"):
        (folder / f"new{end}").write_bytes(bytes(4))
        (folder / f"old{end}").write_bytes(bytes(4))
        os.utime(folder / f"old{end}", (1, 1))
    archive_options(spark)
    assert {path.name for path in folder.glob("old*")} == {"old.txt"}
    assert {path.suffix for path in folder.glob("new*")} == {".jsa", ".started", ".unfinished", ".txt"}


def test_nothing_is_mapped_that_others_can_write(spark: str, tmp_path: Path) -> None:
    archive_options(spark)
    assert archive_options(spark) != ()
    (tmp_path / "cache" / "headrace").chmod(0o777)
    assert archive_options(spark) == ()


def test_without_java_spark_or_a_folder_there_is_no_archive(
    spark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive_options(None) == ()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert archive_options(spark) == ()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert archive_options(spark) == ()
