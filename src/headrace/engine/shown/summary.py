"""What a run did, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from headrace.algebra.letters import stream_of_letters
from headrace.algebra.system_streams import system_stream
from headrace.engine.shown.display import html_of_rows
from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.tasks.profile import Profile
from headrace.runtime.writing.texts import count
from headrace.time import TimeDomain, format_instant, format_length

_SEVERAL: Final = 2
"""From so many late rows on it is looked for the one that made them late."""


@dataclass(frozen=True)
class Leap:
    """The row of a stream that moved its heartbeat so that most of the late rows came late.

    Attributes:
        timestamp: that of the row, as text.
        late: how many rows came late because of it.
    """

    timestamp: str
    late: int


@dataclass(frozen=True)
class StreamSummary:
    """What a run read of a stream.

    Attributes:
        name: the stream.
        rows: the rows that were used.
        late: the rows that came too late for the stream's DISORDER.
        rejected: the rows that could not be read.
        needed_disorder: the smallest DISORDER that would have taken the late rows too, as text such as
            `8 MINUTES`; None if no row was late, or the stream has been dropped.
        leap: the row that made at least half of the late rows late, if those are several.
    """

    name: str
    rows: int
    late: int
    rejected: int
    needed_disorder: str | None
    leap: Leap | None

    @property
    def share_apart(self) -> float:
        """The share of its rows that could not take part, from 0 to 1."""
        apart = self.late + self.rejected
        return apart / (self.rows + apart) if apart else 0.0

    @property
    def set_apart(self) -> str | None:
        """The rows that could not take part, and what would have let the late ones; None if all took part."""
        if not self.late and not self.rejected:
            return None
        line = f"{self.name}: {count(self.late, 'late row')}, {self.rejected:,} rejected"
        if self.needed_disorder is None:
            return line
        return f"{line}; with DISORDER {self.needed_disorder} none would be late"


@dataclass(frozen=True)
class LaneSummary:
    """Queries that are behind others together.

    Attributes:
        queries: their names.
        rows: how many rows they have yet to take.
    """

    queries: tuple[str, ...]
    rows: int

    def __str__(self) -> str:
        waiting = f"{count(self.rows, 'row')} {'waits' if self.rows == 1 else 'wait'}"
        return f"{', '.join(self.queries)}: behind, {waiting if self.rows else 'no row waits'}"


@dataclass(frozen=True, repr=False)
class Summary:
    """What a run did.

    Attributes:
        rows: input rows of all streams, the late and the rejected ones included.
        seconds: from the first epoch's start to the last one's end.
        late, dead_letters: rows that came too late for their stream's DISORDER; all rows that were set apart.
        state_rows_peak, state_bytes_peak: the most state held after an epoch.
        growing: queries whose state grows for as long as they run.
        emitted: elements yielded per query, corrections included.
        failed: queries that ended early, with the reason and a hint or None.
        profile: where the time went; of this process's epochs only.
        lanes: the queries that are behind others.
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
    lanes: tuple[LaneSummary, ...] = ()

    def __repr__(self) -> str:
        return f"<Summary: {self}>"

    def __str__(self) -> str:
        parts = [
            f"{count(self.rows, 'row')} in {self.seconds:.2f} s",
            count(self.epochs, "epoch"),
            f"state at most {count(self.state_rows_peak, 'row')}",
        ]
        if self.late:
            parts.append(f"{self.late:,} late")
        if self.dead_letters:
            parts.append(count(self.dead_letters, "dead letter"))
        parts += [str(lane) for lane in self.lanes if lane.rows]
        parts += [f"{name} failed: {message}" for name, message, _ in self.failed]
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        rows = [
            (part.name, f"{part.rows:,}", f"{part.late:,}", f"{part.rejected:,}", part.needed_disorder or "")
            for part in self.streams
        ]
        return html_of_rows(("stream", "rows", "late", "rejected", "needed disorder"), rows, str(self))


def summarise(run: Run, domains: Mapping[str, TimeDomain]) -> Summary:
    """What a run has done so far.

    Args:
        run: the run.
        domains: what the instants of each stream count.
    """
    totals, queries = run.totals, run.reading.queries
    emitted = dict.fromkeys(queries.plans, 0) | dict(totals.emitted)
    return Summary(
        # Dead letters have been counted among the rows of the stream that they come from, and what the run
        # says of itself nobody has brought.
        rows=sum(
            seen.everything
            for name, seen in totals.arrivals.items()
            if stream_of_letters(name) is None and system_stream(name) is None
        ),
        seconds=totals.seconds,
        epochs=totals.epochs,
        late=sum(seen.late for seen in totals.arrivals.values()),
        dead_letters=totals.dead_letters,
        streams=tuple(_of_stream(name, seen, run, domains) for name, seen in totals.arrivals.items()),
        state_rows_peak=totals.state_rows_peak,
        state_bytes_peak=totals.state_bytes_peak,
        growing=tuple(map(queries.name_of, queries.growing)),
        emitted=MappingProxyType({queries.name_of(query): count for query, count in emitted.items()}),
        failed=tuple((queries.name_of(query), *reason) for query, reason in queries.failed.items()),
        profile=run.profile,
        lanes=tuple(
            LaneSummary(tuple(map(queries.name_of, queries.lanes[one.lane])), one.rows)
            for one in run.backlogs()
        ),
    )


def _of_stream(name: str, seen: Arrivals, run: Run, domains: Mapping[str, TimeDomain]) -> StreamSummary:
    domain, stream = domains.get(name), run.streams.get(name)
    needed = format_length(seen.drop, domain) if seen.late and domain is not None else None
    leap = None
    # Where each value has a bound of its own, one row makes those of its value late, and no others.
    if domain is not None and stream is not None and stream.timing.per is None:
        leap = _leap(seen, domain, stream.timing.disorder)
    return StreamSummary(name, seen.rows, seen.late, seen.rejected, needed, leap)


def _leap(seen: Arrivals, domain: TimeDomain, disorder: int | None) -> Leap | None:
    """The row that made most rows late: its timestamp less the disorder is their heartbeat."""
    if disorder is None or seen.late < _SEVERAL or 2 * seen.below < seen.late:
        return None
    return Leap(format_instant(seen.limit + disorder, domain), seen.below)
