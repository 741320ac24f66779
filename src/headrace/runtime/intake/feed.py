"""The source of a live stream: epochs ask it for what has arrived, and confirm what they have committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint


class FittedRows:
    """The rows that an epoch takes of a feed at most: as many as was said, or fewer that fit."""

    _fits: int | None = None

    def fit(self, rows: int | None) -> None:
        """Let an epoch take no more rows than this from the next one on, whatever else is said.

        Args:
            rows: how many fit; any number if None.
        """
        self._fits = rows

    def _at_most(self, rows: int) -> int:
        """As many rows as was said, or as many as fit."""
        return rows if self._fits is None else min(rows, self._fits)


class Feed(Protocol):
    """Where the rows of a live stream come from."""

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Begin, given how far the stream has been committed, and which of its columns are read."""
        ...

    def read(self, columns: Sequence[str]) -> None:
        """Other columns are read from now on."""
        ...

    def widen(self, stream: LiveStream) -> bool:
        """Let the rows have further columns from now on; False where another feed has to take its place."""
        ...

    def ready(self) -> bool:
        """Whether something has come."""
        ...

    def come(self) -> int:
        """How much has come so far, in a unit of the feed's."""
        ...

    def has_taken(self, come: int) -> bool:
        """Whether epochs have taken as much as had come, or are taking it now."""
        ...

    def caught_up(self) -> bool:
        """Whether all that the source has was taken; asked only where time alone moves heartbeats."""
        ...

    def waiting(self) -> int | None:
        """How many rows wait for an epoch; None where that is not known."""
        ...

    def take(self, point: StreamPoint) -> Intake | None:
        """What the next epoch takes, or None."""
        ...

    def settle(self, error: BaseException | None) -> None:
        """What was taken is committed, or the epoch failed."""
        ...

    def trouble(self) -> str | None:
        """What keeps it from finding what has come, while it tries again; None if nothing does."""
        ...

    def check(self) -> str | None:
        """Repair what can be repaired; the reason if the stream has been given up."""
        ...

    def stop(self) -> None:
        """End; nothing will be taken any more."""
        ...
