"""Spark's classes as its JVM has them in memory, kept in a file that the next JVM maps (class data sharing).

Half of the time that Spark takes to start and to run its first job goes into loading some 10,000 classes. The
second JVM on a machine writes the file when it ends: it is slower for that, so the first one does not, since
on many a machine there is never another. A JVM that finds that the file does not fit, since Java or Spark has
changed, goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_STARTED: Final = ".started"
_FINISHED: Final = ".jsa"
_UNFINISHED: Final = ".unfinished"
_KEPT: Final = {_STARTED: 60 * 86400, _FINISHED: 60 * 86400, _UNFINISHED: 3600}
"""Seconds after which a file that nobody uses goes: of another Java or Spark, or of a JVM that was killed."""

_SILENT: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Use an archive where it fits; say nothing of classes that are not in it."""


def archive_options(spark: str | None) -> Sequence[str]:
    """What a JVM on this machine is given so that it uses the archive, or writes it if it is the second one.

    Args:
        spark: Spark's home folder.

    Returns:
        Nothing where no Java or no Spark is found, or no folder that is this user's alone.
    """
    java = found_java()
    if spark is None or java is None:
        return ()
    with suppress(OSError):
        folder = _folder()
        if folder is not None:
            return tuple(_options(folder, _name(spark, java)))
    return ()


def _options(folder: Path, name: str) -> Iterator[str]:
    _finish(folder)
    archive, started = folder / f"{name}{_FINISHED}", folder / f"{name}{_STARTED}"
    if archive.exists():
        # So that it is seen to be in use.
        os.utime(archive)
        yield from (*_SILENT, f"-XX:SharedArchiveFile={archive}")
    elif not started.exists():
        started.touch()
    else:
        yield from _SILENT
        yield f"-XX:ArchiveClassesAtExit={folder / f'{name}-{os.getpid()}-{time.time_ns()}{_UNFINISHED}'}"


def _finish(folder: Path) -> None:
    """Give archives that are whole their names, and remove what is of no use any more."""
    now = time.time()
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process does the same
            if path.suffix == _UNFINISHED and _is_whole(path):
                path.replace(folder / f"{path.name.split('-')[0]}{_FINISHED}")
            elif path.suffix in _KEPT and now - path.stat().st_mtime > _KEPT[path.suffix]:
                path.unlink()


def _is_whole(path: Path) -> bool:
    """Whether a JVM has written all of an archive: it writes the first bytes last."""
    with path.open("rb") as file:
        return any(file.read(4))


def _name(spark: str, java: Path) -> str:
    """A name that another Java or Spark, or one that was installed anew, does not have."""
    parts = [(str(path), path.stat().st_mtime_ns) for path in (java, Path(spark, "jars").resolve())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def found_java() -> Path | None:
    """The Java that Spark starts, as its scripts find it; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    return None if found is None else Path(found).resolve()


def _folder() -> Path | None:
    """Where archives are: in a folder that nobody else can write to, since what is in them is run."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "headrace")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return folder if found.st_uid == os.getuid() and not found.st_mode & others else None
