"""How far a run has come, for whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.runtime.journal.records import Totals
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import TimeDomain


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        epoch: epochs committed; total_rows: an estimate; seconds: since the run began.
        heartbeat: the smallest heartbeat of all streams (an instant of `domain`).
        buffered: rows of state held after the epoch.
    """

    epoch: int
    rows: int
    total_rows: int
    seconds: float
    heartbeat: int
    domain: TimeDomain
    buffered: int


def progress_of(
    totals: Totals,
    total_rows: int,
    heartbeat: int,
    domain: TimeDomain,
    state: Mapping[StateKey, Manifest],
) -> Progress:
    """How far a run has come, from what it keeps count of.

    Args:
        totals: its counters.
        total_rows: about how many rows its bounded streams have.
        heartbeat, domain: the smallest heartbeat of its streams, and what that counts.
        state: all state.
    """
    rows = sum(seen.everything for seen in totals.arrivals.values())
    runs = (run for manifest in state.values() for area in manifest.values() for run in area)
    return Progress(
        epoch=totals.epochs,
        rows=rows,
        total_rows=max(total_rows, rows),
        seconds=totals.seconds,
        heartbeat=heartbeat,
        domain=domain,
        buffered=sum(run.rows for run in runs),
    )
