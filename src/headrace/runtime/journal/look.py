"""A look at a run, left in the folder of its store for whoever watches it from another process.

Who watches marks the folder, again and again; who runs leaves a look as long as the mark is moved. The store
itself does not know of either file: nothing that is committed depends on them, and none is forced to disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.errors import StoreError
from headrace.runtime.store.paths import inside, open_new

_MARK: Final = "watched"
_LOOK: Final = "look.json"

Version = tuple[int, int]
"""What changes whenever a file is written or marked: its inode and its time."""


def mark(folder: Path) -> None:
    """Let the process that runs on a store know that somebody watches, where that may be written.

    Raises:
        StoreError: something else is in the place of the mark.
    """
    try:
        path = inside(folder, _MARK)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(path)
    except OSError:
        return


def marked(folder: Path) -> Version | None:
    """What changes whenever the folder is marked; None if it never was."""
    return _version(folder / _MARK)


def leave(folder: Path, look: Mapping[str, Any], drafted_by: str) -> None:
    """Leave a look in place of an older one.

    Args:
        folder: the store's.
        look: for JSON.
        drafted_by: letters and digits that no other process has.

    Raises:
        OSError: it cannot be written.
        StoreError: something else is in its place.
    """
    path = inside(folder, _LOOK)
    draft = path.with_name(f".{_LOOK}.{drafted_by}.part")
    with os.fdopen(open_new(draft), "w") as file:
        json.dump(look, file)
    draft.replace(path)


def take_away(folder: Path) -> None:
    """Remove the look of a process that has ended, and the mark."""
    _remove(folder, _LOOK)
    unmark(folder)


def unmark(folder: Path) -> None:
    """Remove the mark; without effect where that is forbidden."""
    _remove(folder, _MARK)


def _remove(folder: Path, name: str) -> None:
    try:
        inside(folder, name).unlink(missing_ok=True)
    except (OSError, StoreError):
        return


def left(folder: Path) -> tuple[Version, dict[str, Any]] | None:
    """The look that was left last, and what changes with each one; None if there is none."""
    try:
        path = inside(folder, _LOOK)
        version = _version(path)
        found = json.loads(path.read_text())
    except (OSError, StoreError, ValueError):
        return None
    return None if version is None or not isinstance(found, dict) else (version, found)


def _version(path: Path) -> Version | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
