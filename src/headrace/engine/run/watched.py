"""Leaves looks at a run in its store, as long as somebody watches."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.runtime.journal import look

_EVERY: Final = 0.25
"""Seconds between two looks at the mark."""
_AS_LONG: Final = 5.0
"""For so many seconds after it was marked a store is watched."""


class Watched:
    """Leaves a look at a run in the folder of its store, a few times a second, while the folder is marked.

    It has a thread of its own, so that an epoch that takes long can be seen as well.

    Args:
        folder: the store's.
        status: gives what is to be seen, for JSON.
        every: seconds between two looks at the mark.
    """

    def __init__(self, folder: Path, status: Callable[[], Mapping[str, Any]], every: float = _EVERY) -> None:
        self._folder = folder
        self._status = status
        self._every = every
        self._ended = threading.Event()
        self._token = secrets.token_hex(8)
        # What a killed process has left is not a look at this one.
        look.take_away(folder)
        self._thread = threading.Thread(target=self._loop, name="headrace looks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave no more looks, and take the last one away; may be called again."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        look.take_away(self._folder)

    def _loop(self) -> None:
        seen, until = look.marked(self._folder), 0.0
        while not self._ended.wait(self._every):
            found = look.marked(self._folder)
            if found != seen:
                seen, until = found, time.monotonic() + _AS_LONG
            if found is not None and time.monotonic() < until:
                self._leave()

    def _leave(self) -> None:
        try:
            look.leave(self._folder, self._status(), self._token)
        except (OSError, HeadraceError):
            # The store may be full, or somebody has moved it: the run itself will say so.
            return
