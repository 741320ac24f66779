"""Whether a store in use is still the one that was opened, so that what is acknowledged can be read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Final

from headrace.errors import StoreError
from headrace.runtime.store.paths import make_inside
from headrace.runtime.store.segments import FolderStore, cannot_write, reading_store

_FOLDERS: Final = ("commits", "segments", "results")


class Guard:
    """Watches the folders of a store, its lock and its `store.json`.

    The folders and the lock are kept open, so that others which take their places are not taken for them.

    Args:
        store: the store; its folders are made where they are missing.
        lock: the lock that the driver holds.

    Raises:
        StoreError: a folder cannot be made.
    """

    def __init__(self, store: FolderStore, lock: IO[str]) -> None:
        self._path = Path(store.path)
        self._lock = lock.fileno()
        self._label = (self._path / "store.json").read_bytes()
        self._seen = _version(self._path / "store.json")
        self._folders: dict[str, int] = {}
        try:
            self._folders[""] = _opened(self._path)
            for name in _FOLDERS:
                self._folders[name] = _opened(make_inside(store.path, name))
            # The names of the folders survive a power cut, too.
            os.fsync(self._folders[""])
        except OSError as error:
            self.close()
            raise cannot_write(self._path, error) from error

    def check(self) -> None:
        """See that everything is in its place.

        Raises:
            StoreError: something is gone, or is not what it was.
        """
        for name, handle in (*self._folders.items(), ("lock", self._lock)):
            if _identity(self._path / name) != _identity(handle):
                raise self._changed(name or "the folder itself", "gone, or another one")
        self._check_label()

    def close(self) -> None:
        """Watch no longer; may be called again."""
        while self._folders:
            os.close(self._folders.popitem()[1])

    def _check_label(self) -> None:
        """`store.json` is read again only where it may be another one."""
        path = self._path / "store.json"
        seen = _version(path)
        if seen == self._seen:
            return
        try:
            with reading_store(path):
                same = path.read_bytes() == self._label
        except OSError as error:
            raise self._changed("store.json", "gone") from error
        if not same:
            raise self._changed("store.json", "not what it was")
        self._seen = seen

    def _changed(self, name: str, what: str) -> StoreError:
        return StoreError(
            f"the store {self._path} was changed while it was in use: {name} is {what}",
            hint="restore the store from a copy, then start again; what was not acknowledged is not in it",
        )


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _identity(place: Path | int) -> tuple[int, int] | None:
    """What no other file or folder has as long as one is open; None where there is none."""
    found = _found(place)
    return None if found is None else (found.st_dev, found.st_ino)


def _version(path: Path) -> tuple[int, int, int] | None:
    """What changes whenever a file is written; None where there is none."""
    found = _found(path)
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)


def _found(place: Path | int) -> os.stat_result | None:
    """What the system knows of a file or folder; None where there is none.

    Raises:
        StoreError: the system cannot say it for now.
    """
    try:
        with reading_store(place if isinstance(place, Path) else Path(f"descriptor {place}")):
            return os.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
