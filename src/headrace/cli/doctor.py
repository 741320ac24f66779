"""`headrace doctor`: whether this machine has what Headrace needs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final

import typer

from headrace.cli.errors import USER_ERROR
from headrace.cli.progress import readable_bytes
from headrace.kernels import __main__ as compiling
from headrace.runtime.store.temporary import NO_TEMPORARY, SET_TMPDIR

_OLDEST_JAVA: Final = 17
_PYTHONS: Final = ((3, 11), (3, 15))
"""The oldest Python that will do, and the first one that will not."""
_MEMORY: Final = 2 * 10**9
_ROOM: Final = 10**9


class Verdict(StrEnum):
    """How a check came out."""

    FINE = "ok"
    DOUBTFUL = "warning"
    BAD = "missing"


@dataclass(frozen=True)
class CheckResult:
    """What a check has found.

    Attributes:
        verdict: how it came out.
        text: what there is.
        hint: what to do about it, or empty.
    """

    verdict: Verdict
    text: str
    hint: str = ""


def doctor(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that is to hold a store or answers.")
    ] = Path(),
    *,
    compile_all: Annotated[
        bool, typer.Option("--compile", help="Compile all kernels besides, such as for an image.")
    ] = False,
) -> None:
    """Check Java, Python, memory and folders; exits with 2 where something is missing."""
    findings = [python(), *packages(), java(), memory(), room(folder), temporary(), compiled()]
    for finding in findings:
        typer.echo(f"{finding.verdict:<8} {finding.text}")
        if finding.hint:
            typer.echo(f"{'':<8} hint: {finding.hint}")
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(USER_ERROR)
    if compile_all:
        typer.echo(f"{Verdict.FINE:<8} {compiling.compile_every()}")


def temporary() -> CheckResult:
    """Whether there is a folder for temporary files."""
    try:
        return room(Path(tempfile.gettempdir()))
    except FileNotFoundError:
        return CheckResult(Verdict.BAD, NO_TEMPORARY, SET_TMPDIR)


def compiled() -> CheckResult:
    """Whether what is compiled for this machine can be kept."""
    folder = compiling.kept_in()
    if folder is not None:
        return CheckResult(Verdict.FINE, f"what is compiled for this machine is kept in {folder}")
    hint = "set NUMBA_CACHE_DIR to a folder that can be written; every start compiles otherwise"
    return CheckResult(Verdict.DOUBTFUL, "what is compiled for this machine cannot be kept", hint)


def python(found: tuple[int, int] = sys.version_info[:2]) -> CheckResult:
    """Whether Python is one that Headrace runs on."""
    oldest, beyond = _PYTHONS
    text = f"Python {platform.python_version()} in {sys.executable}"
    if oldest <= found < beyond:
        return CheckResult(Verdict.FINE, text)
    newest = f"{beyond[0]}.{beyond[1] - 1}"
    return CheckResult(Verdict.BAD, text, f"use a Python from {oldest[0]}.{oldest[1]} to {newest}")


def packages() -> Iterator[CheckResult]:
    """Which versions of the libraries below are installed."""
    for name in ("headrace", "pyspark", "pyarrow", "numba"):
        try:
            yield CheckResult(Verdict.FINE, f"{name} {version(name)}")
        except PackageNotFoundError:
            yield CheckResult(Verdict.BAD, f"{name} is not installed", "pip install headrace")


def java() -> CheckResult:
    """Whether there is a Java that Spark runs on; Spark takes that of JAVA_HOME, or the one in PATH."""
    hint = f"install Java {_OLDEST_JAVA} or newer and set JAVA_HOME, or use --runner inline, which needs none"
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if command is None:
        where = f"there is no bin/java in JAVA_HOME, {home}" if home else "there is no java in PATH"
        return CheckResult(Verdict.BAD, where, hint)
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return CheckResult(Verdict.BAD, f"{command} does not run: {error}", hint)
    said = re.search(r'version "(\d+)(?:\.(\d+))?[^"]*"', done.stderr)
    if said is None:
        return CheckResult(Verdict.DOUBTFUL, f"{command} does not say its version", hint)
    major = int(said[2] or 0) if said[1] == "1" else int(said[1])
    verdict = Verdict.FINE if major >= _OLDEST_JAVA else Verdict.BAD
    return CheckResult(verdict, f"Java {major}: {command}", "" if verdict is Verdict.FINE else hint)


def memory() -> CheckResult:
    """Whether there is memory for a local Spark."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return CheckResult(Verdict.DOUBTFUL, "the size of the memory is not known")
    text = f"{readable_bytes(size)} of memory, {os.cpu_count()} processors"
    if size >= _MEMORY:
        return CheckResult(Verdict.FINE, text)
    return CheckResult(Verdict.DOUBTFUL, text, "give --epoch-bytes a smaller number, or use --runner inline")


def room(folder: Path) -> CheckResult:
    """Whether files can be written to a folder, and how many."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".headrace-doctor-"):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return CheckResult(
            Verdict.BAD, f"{folder.absolute()} cannot be written: {error.strerror}", "choose another folder"
        )
    verdict = Verdict.FINE if free >= _ROOM else Verdict.DOUBTFUL
    hint = "" if verdict is Verdict.FINE else "make room, or choose another folder"
    return CheckResult(verdict, f"{readable_bytes(free)} free in {folder.absolute()}", hint)
