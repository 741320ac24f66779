"""The command `headrace`, which heeds Ctrl-C also while Headrace is being loaded: a second or two."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
from typing import Any

_BETWEEN_LOOKS = 100_000
"""So many objects are made before Python looks for garbage: it does so by default after a few hundred."""


def main() -> None:
    """Load the command line and run it."""
    # Nearly all objects that loading makes stay. To look for garbage among them takes a quarter of the time
    # that it needs, and at the end once more as long.
    gc.set_threshold(_BETWEEN_LOOKS)
    atexit.register(gc.freeze)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        command = _loaded()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:  # ignored, as in the background of a shell
        command = _loaded()
    command.main()


def _loaded() -> Any:
    """The module of the command line. Threads that libraries start have their memory from one heap."""
    importlib.import_module("headrace.runtime.tasks.heap").keep_one_arena()
    return importlib.import_module("headrace.cli")


def _leave(*_: object) -> None:
    """End at once: nothing has begun yet, and an exception could get lost inside a library that loads."""
    os.write(2, b"headrace: interrupted\n")
    os._exit(130)
