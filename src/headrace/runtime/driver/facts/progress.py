"""How far a run has come, for whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.runtime.journal.held_state import held
from headrace.runtime.journal.records import Totals
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import TimeDomain


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        epoch: epochs committed.
        rows: read so far.
        total_rows: an estimate of all; None where a stream never ends.
        seconds: that the epochs took, those of earlier runs on the same store included.
        heartbeat: the smallest heartbeat of all streams (an instant of `domain`).
        buffered: rows of state held after the epoch.
    """

    epoch: int
    rows: int
    total_rows: int | None
    seconds: float
    heartbeat: int
    domain: TimeDomain
    buffered: int

    @property
    def share(self) -> float | None:
        """How much of the rows has been read, from 0 to 1; None where that is not known."""
        if self.total_rows is None:
            return None
        return self.rows / self.total_rows if self.total_rows else 1.0

    @property
    def remaining(self) -> float | None:
        """In how many seconds the rest is read, if it takes as long as what was; None where nobody knows."""
        share = self.share
        return self.seconds * (1 - share) / share if share else None


def progress_of(
    totals: Totals,
    left: int | None,
    heartbeat: int,
    domain: TimeDomain,
    state: Mapping[StateKey, Manifest],
) -> Progress:
    """How far a run has come, from what it keeps count of.

    Args:
        totals: its counters.
        left: about how many rows it has still to read; None where a stream never ends.
        heartbeat, domain: the smallest heartbeat of its streams, and what that counts.
        state: all state.
    """
    rows = sum(seen.everything for seen in totals.arrivals.values())
    return Progress(
        epoch=totals.epochs,
        rows=rows,
        total_rows=None if left is None else rows + left,
        seconds=totals.seconds,
        heartbeat=heartbeat,
        domain=domain,
        buffered=held(state).sizes.rows,
    )
