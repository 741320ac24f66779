"""What a run did, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.run import Run
from headrace.runtime.tasks.profile import Profile


@dataclass(frozen=True)
class StreamSummary:
    """What a run read of a stream: rows used, rows that came late, rows that could not be read."""

    name: str
    rows: int
    late: int
    rejected: int


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes:
        rows: input rows of all streams, the late and the rejected ones included.
        seconds: from the first epoch's start to the last one's end.
        late, dead_letters: rows below their stream's heartbeat, and all rows that were set apart.
        state_rows_peak, state_bytes_peak: the most state held after an epoch.
        growing: queries whose state grows for as long as they run.
        emitted: elements yielded per query, corrections included.
        failed: queries that ended early, with the reason and a hint or None.
        profile: where the time went; of this process's epochs only.
    """

    rows: int
    seconds: float
    epochs: int
    late: int
    dead_letters: int
    streams: tuple[StreamSummary, ...]
    state_rows_peak: int
    state_bytes_peak: int
    growing: tuple[str, ...]
    emitted: Mapping[str, int]
    failed: tuple[tuple[str, str, str | None], ...]
    profile: Profile


def summarise(run: Run) -> Summary:
    """What a run has done so far."""
    totals = run.totals
    streams = tuple(
        StreamSummary(name, seen.rows, seen.late, seen.rejected) for name, seen in totals.arrivals.items()
    )
    everything = sum(totals.arrivals.values(), Arrivals())
    return Summary(
        rows=everything.rows + everything.late + everything.rejected,
        seconds=totals.seconds,
        epochs=totals.epochs,
        late=everything.late,
        dead_letters=totals.dead_letters,
        streams=streams,
        state_rows_peak=totals.state_rows_peak,
        state_bytes_peak=totals.state_bytes_peak,
        growing=run.growing,
        emitted=MappingProxyType(dict(totals.emitted)),
        failed=tuple((name, message, hint) for name, (message, hint) in run.failed.items()),
        profile=run.profile,
    )
