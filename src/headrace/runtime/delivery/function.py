"""Results for a Python function."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headrace.runtime.delivery.contract import Origin
from headrace.runtime.results.changes import Change


class FunctionSink:
    """Calls a Python function for every epoch.

    Promise: at least once, in order, no epoch left out. After a crash or a failure the function may see the
    last epoch again, with the same rows in the same order; a function that keeps the number of the last
    epoch together with what it writes, and returns at once where it has seen it, gets everything exactly
    once. It is never called by two threads at once.

    Args:
        function: called with the epoch's number, the heartbeat (the answer is final below this instant;
            `headrace.time.INFINITY` at the end) and the changes as an Arrow table, which may have no rows.
    """

    def __init__(self, function: Callable[[int, int, pa.Table], object]) -> None:
        self._function = function

    @property
    def name(self) -> str:
        """The function's own name, where it has a plain one."""
        name = str(getattr(self._function, "__name__", ""))
        return name if name.isidentifier() and name.isascii() else "function"

    def open(self, origin: Origin) -> None:
        """Nothing to get ready."""

    def write(self, change: Change) -> None:
        """Call the function."""
        self._function(change.epoch, change.heartbeat, change.rows)
