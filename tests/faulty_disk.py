"""A disk that fails once: one call of the system, on a file below a folder, ends with an error.

Calls are those of `os`, of `fcntl`, of files that Python opens, of what Arrow maps, and of SQLite. Files
below the folder are opened by Python's own `_pyio`, so that each of their reads and writes is one of `os`.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import importlib
import io
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

ALWAYS: Final = ("EIO", "ENOMEM", "ESTALE")
"""What any call may end with."""
_BY_PATH: Final = {
    **dict.fromkeys(("listdir", "scandir"), ("EMFILE", "EACCES")),
    **dict.fromkeys(("stat", "access", "readlink"), ("EACCES",)),
    **dict.fromkeys(
        ("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "link", "symlink", "utime", "chmod"),
        ("ENOSPC", "EACCES"),
    ),
}
"""Calls that name a file, and what else they may end with."""
_BY_HANDLE: Final = {
    **dict.fromkeys(("read", "pread"), ()),
    **dict.fromkeys(("write", "pwrite", "fsync", "fdatasync"), ("ENOSPC",)),
}
_OPENING: Final = ("EMFILE", "ENOSPC", "EACCES")
_OF_SQLITE: Final = {
    "EIO": (sqlite3.SQLITE_IOERR, "disk I/O error"),
    "EMFILE": (sqlite3.SQLITE_CANTOPEN, "unable to open database file"),
    "ENOSPC": (sqlite3.SQLITE_FULL, "database or disk is full"),
    "EACCES": (sqlite3.SQLITE_CANTOPEN, "unable to open database file"),
    "ESTALE": (sqlite3.SQLITE_IOERR, "disk I/O error"),
}
"""What SQLite makes of the errors of its files; where memory is short, Python raises a MemoryError."""


@dataclass(frozen=True, order=True)
class Call:
    """One call: what is called, the file without numbers and marks in its name, and which of its calls."""

    name: str
    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} {self.path} #{self.number}"

    @property
    def errors(self) -> tuple[str, ...]:
        """The names of the errors that it may end with."""
        known = {**_BY_PATH, **_BY_HANDLE}
        return (*ALWAYS, *known.get(self.name, _OPENING))


@dataclass
class FaultyDisk:
    """The files below a folder, one call of which fails.

    Attributes:
        folder: the folder.
        at: the call that fails; None fails none.
        kind: the name of its error.
        calls: those that were made, in order.
        failed: whether it has failed.
    """

    folder: Path
    at: Call | None = None
    kind: str = "EIO"
    calls: list[Call] = field(default_factory=list)
    failed: bool = False
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _handles: dict[int, str] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _own: threading.local = field(default_factory=threading.local)

    @contextmanager
    def spinning(self) -> Iterator[FaultyDisk]:
        """Let calls go through this disk."""
        with ExitStack() as patches:
            for name in _BY_PATH:
                patches.enter_context(patch.object(os, name, self._by_path(name)))
            for name in _BY_HANDLE:
                patches.enter_context(patch.object(os, name, self._by_handle(os, name)))
            patches.enter_context(patch.object(fcntl, "flock", self._by_handle(fcntl, "flock")))
            patches.enter_context(patch.object(os, "open", self._opening()))
            patches.enter_context(patch.object(os, "close", self._closing()))
            opened = self._opened()
            patches.enter_context(patch.object(io, "open", opened))
            patches.enter_context(patch.object(builtins, "open", opened))
            for name in ("memory_map", "OSFile"):
                patches.enter_context(patch.object(pa, name, self._of_arrow(name)))
            patches.enter_context(patch.object(sqlite3, "connect", self._of_sqlite()))
            yield self

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Let calls of this thread be those of somebody else, which do not count."""
        self._own.outside = True
        try:
            yield
        finally:
            self._own.outside = False

    def _place(self, path: Any) -> str | None:
        """A path below the folder without what differs from run to run; None for any other."""
        if getattr(self._own, "outside", False):
            return None
        if isinstance(path, int):
            return self._handles.get(path)
        text = os.fsdecode(path)
        if not text.startswith(str(self.folder)):
            return None
        return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", text.removeprefix(str(self.folder)).lstrip("/"))

    def _reached(self, name: str, place: str) -> bool:
        """Count a call; whether it is the one that fails."""
        with self._lock:
            self._counts[name, place] += 1
            call = Call(name, place, self._counts[name, place])
            self.calls.append(call)
            if self.failed or call != self.at:
                return False
            self.failed = True
            return True

    def _check(self, name: str, path: Any) -> None:
        place = self._place(path)
        if place is not None and self._reached(name, place):
            number = getattr(errno, self.kind)
            # As the system does: calls by a handle know no name.
            named = () if isinstance(path, int) else (os.fspath(path),)
            raise OSError(number, os.strerror(number), *named)

    def _by_path(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def called(path: Any = ".", *args: Any, **options: Any) -> Any:
            self._check(name, path)
            return real(path, *args, **options)

        return called

    def _by_handle(self, module: Any, name: str) -> Callable[..., Any]:
        real = getattr(module, name)

        def called(handle: Any, *args: Any) -> Any:
            self._check(name, handle if isinstance(handle, int) else handle.fileno())
            return real(handle, *args)

        return called

    def _opening(self) -> Callable[..., int]:
        real = os.open

        def called(path: Any, *args: Any, **options: Any) -> int:
            self._check("open", path)
            handle = real(path, *args, **options)
            place = self._place(path)
            if place is not None:
                self._handles[handle] = place
            return handle

        return called

    def _closing(self) -> Callable[[int], None]:
        real = os.close

        def called(handle: int) -> None:
            self._handles.pop(handle, None)
            real(handle)

        return called

    def _opened(self) -> Callable[..., Any]:
        real, plain = io.open, importlib.import_module("_pyio").open

        def called(file: Any, *args: Any, **options: Any) -> Any:
            return (real if self._place(file) is None else plain)(file, *args, **options)

        return called

    def _of_arrow(self, name: str) -> Callable[..., Any]:
        real = getattr(pa, name)

        def called(path: Any, *args: Any, **options: Any) -> Any:
            self._check(name, path)
            return real(path, *args, **options)

        return called

    def _of_sqlite(self) -> Callable[..., Any]:
        real, disk = sqlite3.connect, self

        def check(name: str) -> None:
            if disk._reached(name, "a database"):
                if disk.kind == "ENOMEM":
                    raise MemoryError
                code, text = _OF_SQLITE[disk.kind]
                error = sqlite3.OperationalError(text)
                error.sqlite_errorcode = code
                raise error

        class Cursor(sqlite3.Cursor):
            def execute(self, *args: Any) -> Any:
                check("execute")
                return super().execute(*args)

            def executemany(self, *args: Any) -> Any:
                check("executemany")
                return super().executemany(*args)

        class Connection(sqlite3.Connection):
            def cursor(self, factory: Any = Cursor) -> Any:
                return super().cursor(factory)

            def commit(self) -> None:
                check("commit")
                super().commit()

        def called(path: Any, *args: Any, **options: Any) -> Any:
            if self._place(path) is None:
                return real(path, *args, **options)
            check("connect")
            return real(path, *args, factory=Connection, **options)

        return called
