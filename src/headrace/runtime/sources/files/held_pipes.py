"""Pipes as files: what they give is read to its end once, and kept for as long as the process lives."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path
from typing import Any, Final

from headrace.runtime.outside.pipes import is_standard, name_of, opened_pipe
from headrace.runtime.outside.trouble import reading
from headrace.runtime.store.temporary import new_folder

_PIECE: Final = 2**20

_lock: Final = threading.Lock()
_held: Final[dict[Any, Path]] = {}
"""By what identifies a pipe, where its bytes are."""


def held(path: str, place: Path) -> Path:
    """A file with all that a pipe gives; it is waited for the first time, and read again later.

    Args:
        path: the pipe, as it is written.
        place: where that is.

    Raises:
        SourceError: nothing is sent into it, or it cannot be read.
        AwayError: the file cannot be written for now.
    """
    # The object, not its address: another one may get that.
    key: Any = sys.stdin if is_standard(path) else _identity(place)
    with _lock:
        if key not in _held:
            source = opened_pipe(path, place)
            file = new_folder("pipe") / name_of(path, place)
            with reading(name_of(path, place), "pipe"), file.open("wb") as kept:
                shutil.copyfileobj(source, kept, _PIECE)
            if not is_standard(path):
                source.close()
            _held[key] = file
        return _held[key]


def _identity(place: Path) -> tuple[int, int]:
    found = place.stat()
    return found.st_dev, found.st_ino
