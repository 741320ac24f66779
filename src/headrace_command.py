"""The command `headrace`, which heeds Ctrl-C also while Headrace is being loaded: a second or two."""

from __future__ import annotations

import importlib
import os
import signal


def main() -> None:
    """Load the command line and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        command = importlib.import_module("headrace.cli")
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:  # ignored, as in the background of a shell
        command = importlib.import_module("headrace.cli")
    command.main()


def _leave(*_: object) -> None:
    """End at once: nothing has begun yet, and an exception could get lost inside a library that loads."""
    os.write(2, b"headrace: interrupted\n")
    os._exit(130)
