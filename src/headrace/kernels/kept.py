"""Where compiled kernels are kept: beside their sources, in the user's cache, or in a folder of our own.

Numba keeps what it compiles in `__pycache__` beside a source, or in `~/.cache`, and fails where it can write
to neither: in a container, or where others have installed Headrace. What is compiled is kept in a folder of
our own then, or nowhere, and what lies beside the source is copied there first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, Final

NOT_KEPT: Final = "nothing can be kept, unless NUMBA_CACHE_DIR is a folder that can be written"
"""Why nothing is kept, and what helps."""
_NO_FOLDER: Final = "no locator available"
"""A part of what Numba says where it can write to none of its folders."""


class Compiling:
    """Compiles functions, and keeps them where that is possible.

    Args:
        numba: Numba, loaded.

    Attributes:
        keeps: whether what is compiled can be kept anywhere.
        announced: whether standard error has a line about compiling.
    """

    def __init__(self, numba: Any) -> None:
        self._numba = numba
        self._lock = threading.Lock()
        self.announced = False
        self.keeps = True

    def compiled(self, function: Callable[..., Any], types: tuple[object, ...]) -> Callable[..., Any]:
        """A function compiled for arguments of these types, or what was kept of that."""
        made: Any = None
        if self.keeps:
            # With a full disk, say, it is compiled all the same.
            with contextlib.suppress(OSError):
                made = self._kept(function, types)
        if made is None:
            made = self._numba.njit(types, nogil=True)(function)
        if not made.stats.cache_hits:
            self._announce()
        return made  # type: ignore[no-any-return]

    def folder_of(self, function: Callable[..., Any]) -> Path | None:
        """The folder in which what is compiled of a function is kept; None where it is not kept."""
        try:
            return Path(self._numba.njit(cache=True)(function).stats.cache_path)
        except RuntimeError as error:
            if _NO_FOLDER not in str(error):
                raise
        with self._lock:
            if not self._numba.config.CACHE_DIR and self.keeps:
                own = own_folder()
                if own is None:
                    self.keeps = False
                else:
                    self._numba.config.CACHE_DIR = str(own)
        return self.folder_of(function) if self.keeps and self._numba.config.CACHE_DIR else None

    def _kept(self, function: Callable[..., Any], types: tuple[object, ...]) -> Any:
        folder = self.folder_of(function)
        if folder is None:
            return None
        _copy_from_source(function, folder)
        return self._numba.njit(types, cache=True, nogil=True)(function)

    def _announce(self) -> None:
        """Say once that this start is slower than others."""
        with self._lock:
            announced, self.announced = self.announced, True
        if not announced and sys.stderr is not None:
            how = "once" if self.keeps else f"at every start: {NOT_KEPT}"
            with contextlib.suppress(OSError, ValueError):
                print(f"headrace: compiling for this machine, {how}", file=sys.stderr, flush=True)


def own_folder() -> Path | None:
    """A folder that only this user can read and write, in XDG_CACHE_HOME or the one for temporary files.

    What lies in it is run, so that nobody else may have a hand in it.
    """
    for folder in _candidates():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            continue
        ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
        if stat.S_ISDIR(found.st_mode) and ours:
            return folder
    return None


def _candidates() -> Iterator[Path]:
    caches = os.environ.get("XDG_CACHE_HOME")
    if caches and Path(caches).is_absolute():
        yield Path(caches, "headrace", "compiled")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir(), f"headrace-compiled-{user}")


def _copy_from_source(function: Callable[..., Any], folder: Path) -> None:
    """Take over what was compiled beside the source by somebody who may write there, such as for an image."""
    assert isinstance(function, FunctionType)
    source = Path(function.__code__.co_filename)
    beside = source.parent / "__pycache__"
    if folder == beside:
        return
    for path in beside.glob(f"{source.stem}.{function.__name__}-*.nb[ic]"):
        if not (folder / path.name).exists():
            draft = folder / f".{path.name}.{os.getpid()}"
            shutil.copyfile(path, draft)
            draft.replace(folder / path.name)
