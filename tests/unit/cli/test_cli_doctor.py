"""`headrace doctor`: what it finds, and how it exits."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.doctor import Verdict, java, python, room


def a_java(folder: Path, says: str, code: int = 0) -> None:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    command.chmod(0o700)


def test_everything_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path, 'openjdk version "17.0.11" 2024-04-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["doctor", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for part in (
        "Python 3.",
        "headrace 0.",
        "pyspark 4.",
        f"Java 17: {tmp_path}",
        "of memory",
        f"free in {tmp_path}",
    ):
        assert part in done.stdout


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    done = CliRunner().invoke(app, ["doctor", str(tmp_path / "gone")])
    assert done.exit_code == 2
    assert f"missing  there is no bin/java in JAVA_HOME, {tmp_path}/nowhere" in done.stdout
    assert "--runner inline" in done.stdout
    assert f"missing  {tmp_path}/gone cannot be written: No such file" in done.stdout


@pytest.mark.parametrize(
    ("says", "code", "verdict", "text"),
    [
        ('openjdk version "21" 2023-09-19', 0, Verdict.FINE, "Java 21: "),
        ('java version "1.8.0_402"', 0, Verdict.BAD, "Java 8: "),
        ('openjdk version "11.0.2" 2019-01-15', 0, Verdict.BAD, "Java 11: "),
        ("a coffee", 0, Verdict.DOUBTFUL, "does not say its version"),
        ("broken", 3, Verdict.BAD, "does not run: "),
    ],
)
def test_java_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int, verdict: Verdict, text: str
) -> None:
    a_java(tmp_path, says, code)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = java()
    assert (found.verdict, text in found.text) == (verdict, True)
    assert bool(found.hint) == (verdict is not Verdict.FINE)


def test_without_java_home_the_one_in_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert java().text == "there is no java in PATH"
    a_java(tmp_path, 'openjdk version "17.0.1"')
    assert java().verdict is Verdict.FINE


@pytest.mark.parametrize(
    ("found", "verdict"), [((3, 10), Verdict.BAD), ((3, 11), Verdict.FINE), ((3, 15), Verdict.BAD)]
)
def test_pythons(found: tuple[int, int], verdict: Verdict) -> None:
    assert python(found).verdict is verdict


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert room(tmp_path / "file").verdict is Verdict.BAD
    assert room(tmp_path).text.endswith(f"free in {tmp_path}")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
