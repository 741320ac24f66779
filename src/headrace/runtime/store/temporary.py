"""One private folder for all temporary files of a process, and the removal of what dead processes have left.

The folder is below `TMPDIR`, belongs to the user alone, and holds a lock for as long as its process lives.
A process that is killed leaves it there, without the lock; the next one of the same user on the same machine
removes it, and nothing else.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import platform
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from headrace.errors import UserError

_NAME: Final = re.compile(r"headrace-\d+-[a-z0-9_]{8}")
"""What the folders are called: the process, and what makes the name unique."""
_LOCK: Final = "lock"
"""The file in a folder that its process holds locked; it names the machine."""
LONGEST_SOCKET: Final = 100
"""So many bytes the name of a Unix socket may have; systems allow 104 to 108."""


@dataclass(frozen=True)
class _Held:
    """A folder and its lock, which is held for as long as the file is open."""

    folder: Path
    lock: IO[str]


def private_folder() -> Path:
    """The folder for the temporary files of this process; it is removed when the process ends."""
    return _held_by(os.getpid()).folder


def new_folder(purpose: str) -> Path:
    """A new, empty folder below it.

    Args:
        purpose: how its name begins.
    """
    return Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=private_folder()))


def new_door(purpose: str) -> Path | None:
    """The place for a Unix socket, alone in a new folder, or None where its name would be too long.

    Args:
        purpose: how the folder's name begins.
    """
    folder = new_folder(purpose)
    door = folder / "door"
    if len(os.fsencode(door)) <= LONGEST_SOCKET:
        return door
    folder.rmdir()
    return None


NO_TEMPORARY: Final = "no folder for temporary files can be written"
SET_TMPDIR: Final = "set TMPDIR to one that can, such as a volume of a container"


@lru_cache
def _held_by(process: int) -> _Held:
    """The folder of a process: a fork has one of its own.

    Raises:
        UserError: no folder for temporary files can be written.
    """
    try:
        sweep_dead(Path(tempfile.gettempdir()))
    except FileNotFoundError:
        raise UserError(NO_TEMPORARY, hint=SET_TMPDIR) from None
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"headrace-{process}-"))
        with suppress(FileNotFoundError):  # swept by another process, before it was locked
            lock = _locked(folder, os.O_CREAT)
            if lock is not None:
                lock.write(platform.node())
                lock.flush()
                held = _Held(folder, lock)
                atexit.register(_remove_at_exit, held, process)
                return held


def sweep_dead(place: Path) -> None:
    """Remove the folders of this user's processes on this machine that have ended.

    Args:
        place: where they are.
    """
    for name in os.listdir(place):
        folder = place / name
        if _NAME.fullmatch(name) and _is_private(folder):
            with suppress(OSError):
                _sweep(folder)


def _sweep(folder: Path) -> None:
    try:
        lock = _locked(folder)
    except FileNotFoundError:
        # Its process was killed before it made the lock, or is about to make it and will notice.
        folder.rmdir()
        return
    if lock is None:
        return
    with lock:
        if lock.read() in ("", platform.node()):
            _remove(folder)


def _locked(folder: Path, flags: int = 0) -> IO[str] | None:
    """The lock of a folder, or None where somebody has it.

    Raises:
        OSError: there is none, or this file system has no locks.
    """
    path = folder / _LOCK
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o600), "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
            return file
    except BlockingIOError:
        pass
    except BaseException:
        file.close()
        raise
    file.close()
    return None


def _is_private(folder: Path) -> bool:
    """Whether it is a folder, no link, that belongs to this user and is closed to others."""
    with suppress(OSError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return False


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: what is left of it can be swept another time."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_at_exit(held: _Held, process: int) -> None:
    # A fork closes its own descriptor of the lock, and leaves the folder to the process that made it.
    with held.lock:
        if os.getpid() == process:
            with suppress(OSError):
                _remove(held.folder)
