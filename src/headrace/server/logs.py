"""Logs as JSON, one object a line, on standard error."""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from headrace.time import TimeDomain, format_instant

_FIELDS: Final = ("method", "path", "status", "milliseconds", "key")
"""What a request adds to its record."""

_MOST_WAITING: Final = 10_000
"""So many lines wait for whoever reads them."""

_ENDING: Final = 1.0
"""Seconds that the end waits for lines that nobody has read yet."""


class JsonFormatter(logging.Formatter):
    """Writes a record as a JSON object: `at`, `level`, `logger`, `message`, and what was added to it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        found = {
            "at": format_instant(int(record.created * 1e6), TimeDomain.TIMESTAMP),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found |= {name: value for name in _FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info is not None:
            found["trace"] = self.formatException(record.exc_info)
        return json.dumps(found)


class WaitingLines(logging.Handler):
    """Lines of the log that a thread writes, so that nobody who logs waits for whoever reads them.

    Where too many wait, since a pipe is full that nobody reads, further ones are lost. How many is said once
    lines are read again.

    Args:
        write: writes bytes, some of them or all, and says how many; may block.
        most: how many lines wait at most.
    """

    def __init__(self, write: Callable[[memoryview], int], most: int = _MOST_WAITING) -> None:
        super().__init__()
        self._write = write
        self._lines: queue.Queue[str] = queue.Queue(most)
        self._lost = 0
        self._counting = threading.Lock()
        self.setFormatter(JsonFormatter())
        threading.Thread(target=self._keep_writing, name="headrace log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Let a record wait for its turn."""
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            with self._counting:
                self._lost += 1
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines have been written, but not long: perhaps nobody reads them."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, _ENDING)

    def _keep_writing(self) -> None:
        while True:
            self._write_line(self._lines.get())
            if self._lines.empty():
                self._tell_lost()
            self._lines.task_done()

    def _tell_lost(self) -> None:
        with self._counting:
            lost, self._lost = self._lost, 0
        if lost:
            told = f"nobody has read the log for a while: {lost:,} lines of it are lost"
            record = logging.LogRecord("headrace", logging.WARNING, __file__, 0, told, None, None)
            self._write_line(self.format(record))

    def _write_line(self, line: str) -> None:
        # Whoever has closed the pipe wants no more of it.
        with suppress(OSError, ValueError):
            left = memoryview(f"{line}\n".encode())
            while left:
                left = left[self._write(left) :]


def log_as_json() -> None:
    """Write the logs of Headrace and of the HTTP server as JSON to standard error."""
    # The command line mutes libraries, whose errors it reports in its own words.
    logging.disable(logging.NOTSET)
    # Not by the stream of Python, whose lock the end of the process takes, also where a thread waits with it.
    handler = WaitingLines(partial(os.write, sys.stderr.fileno()))
    for name in ("headrace", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
