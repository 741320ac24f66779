"""The feed of a stream in which a run describes itself: its rows ride on epochs that others cause."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from headrace.algebra.system_streams import SystemStream
from headrace.language.statements.overflow import Overflow
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint

INTERVAL: Final = 1.0
"""Seconds between two epochs, at least, that rows of these streams alone cause."""
_ALL: Final = 2**62
"""An epoch takes all rows: who adds them is the thread that would take them, and must not wait."""


class Pace:
    """When the streams of a run may cause an epoch: together at most one a second.

    Args:
        clock: seconds that pass.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = 0.0

    def is_due(self) -> bool:
        """Whether it is a second since rows of any of the streams were taken last."""
        return self._clock() >= self._due

    def taken(self) -> None:
        """Rows of one of them have been taken."""
        self._due = self._clock() + INTERVAL


class SystemFeed:
    """Rows about epochs.

    Args:
        kind: which of the streams.
        stream: its columns.
        folder: where rows wait for the tasks; one that all tasks can reach.
        pace: when rows may cause an epoch, the same for all of these streams of a run.
    """

    def __init__(
        self,
        kind: SystemStream,
        stream: LiveStream,
        folder: Path,
        pace: Pace,
    ) -> None:
        self.kind = kind
        self._pace = pace
        self._rows = PushFeed(kind.full_name, stream, folder, _ALL, _ALL, Overflow.BLOCK, lambda: None)

    def note(self, rows: pa.Table) -> None:
        """Add rows, for the next epoch."""
        if rows.num_rows:
            self._rows.put(rows, None, None)

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Nothing to begin."""

    def read(self, columns: Sequence[str]) -> None:
        """Its rows have all columns."""

    def widen(self, stream: LiveStream) -> bool:
        """Its columns are always the same."""
        return True

    def ready(self) -> bool:
        """Whether rows wait and may cause an epoch: a second after the last ones of any stream were taken."""
        return self._rows.ready() and self._pace.is_due()

    def come(self) -> int:
        """How much has come so far."""
        return self._rows.come()

    def has_taken(self, come: int) -> bool:
        """Whether epochs have taken as much."""
        return self._rows.has_taken(come)

    def caught_up(self) -> bool:
        """Whether no rows wait."""
        return self._rows.caught_up()

    def waiting(self) -> int:
        """How many rows wait."""
        return self._rows.waiting()

    def take(self, point: StreamPoint) -> Intake | None:
        """All rows that wait."""
        taken = self._rows.take(point)
        if taken is not None:
            self._pace.taken()
        return taken

    def settle(self, error: BaseException | None) -> None:
        """What was taken is committed, or lost with its epoch."""
        self._rows.settle(error)

    def trouble(self) -> None:
        """Nothing: it is given what has come."""

    def check(self) -> str | None:
        """Nothing here fails by itself."""
        return None

    def stop(self) -> None:
        """End; what waits is of no use to anybody."""
        self._rows.stop()
