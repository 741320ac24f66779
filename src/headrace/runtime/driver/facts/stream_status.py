"""The status of streams: how far each has been read, and how far it is behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import in_force
from headrace.heartbeats.timing import Follow, Timing
from headrace.lowering.behind import lane_of
from headrace.runtime.driver.clock.timekeeper import values_of
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.status import RowsKept, SkewStatus, SlowestValue, StreamStatus
from headrace.runtime.intake.streams import (
    BoundedRelation,
    Incoming,
    LetterStream,
    LiveStream,
    RereadRelation,
)
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.sources.composed.later import later
from headrace.schema import BIGINT
from headrace.time import INFINITY, MICROSECONDS, TimeDomain


def stream_statuses(
    reading: PublishedRun,
    now: int,
    problems: Mapping[str, str],
    troubles: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[StreamStatus]:
    """How far each stream has been read.

    Args:
        reading: what is to be seen of the run.
        now: the instant of the clock up to which ages count (microseconds since 1970).
        problems: streams that were given up, with the reason.
        troubles: those that cannot be read for now.
    """
    statistics = reading.statistics
    for place, (name, stream) in enumerate(reading.streams.items()):
        if lane_of(name) is not None:
            continue
        point, seen = reading.points[name], reading.totals.arrivals.get(name, Arrivals())
        passed, rows = statistics.streams.recent[place].tolist()
        heartbeat, since = statistics.moved[name]
        yield StreamStatus(
            name=name,
            domain=_domain(name, stream, reading),
            position=point.position,
            share=_share(stream, point),
            rows=seen.rows,
            late=seen.late,
            rejected=seen.rejected,
            dropped=point.dropped,
            rate=rows / passed if passed else None,
            heartbeat=heartbeat,
            latest=seen.latest,
            disorder=in_force(stream.timing, point.estimate).disorder,
            idle_after=stream.timing.idle_after,
            timeout=stream.timing.timeout,
            age=max(0, now - since) / MICROSECONDS["SECOND"],
            problem=problems.get(name),
            estimated=stream.timing.estimated is not None,
            disorder_changes=() if point.estimate is None else point.estimate.changes,
            by_arrival=stream.timing.by_arrival,
            skews=tuple(
                _skew(name, follow, wait, point) for follow in stream.timing.follows for wait in follow.waits
            ),
            slowest=_slowest(stream.timing, point),
            waits=_waits(stream.timing, point),
            idle=heartbeat < INFINITY and name not in problems and _is_idle(stream.timing, point),
            content=point.content,
            retained=_rows_kept(point.retained),
            past=point.past,
            trouble=troubles.get(name),
            behind=stream.timing.behind,
            overdue=seen.overdue,
        )


def _rows_kept(kept: Retained | None) -> RowsKept | None:
    return None if kept is None else RowsKept(kept.rows, kept.size, kept.since)


def _is_idle(timing: Timing, point: StreamPoint) -> bool:
    """Whether a stream had brought nothing for as long as IDLE AFTER says when it was committed last."""
    return timing.idle_after is not None and point.time.clock - point.time.heard >= timing.idle_after


def _waits(timing: Timing, point: StreamPoint) -> int | None:
    """How much longer a stream waits for values that it does not know (microseconds), None if it does not."""
    values = values_of(timing, point)
    if timing.per is None or values is None:
        return None
    left = values.begun + timing.per.wait - point.time.clock
    return left if left > 0 else None


def _slowest(timing: Timing, point: StreamPoint) -> SlowestValue | None:
    """The value that holds a stream back, as far as that was known when it was committed last."""
    values, clock = values_of(timing, point), point.time.clock
    if values is None or _waits(timing, point) is not None:
        return None
    step = bisect_right(values.due, clock, key=lambda step: step[0])
    if not step:
        return None
    found = values.slowest[step - 1]
    return SlowestValue(values.column, found.value, found.latest, values.due[-1][1])


def _skew(name: str, follow: Follow, wait: int, point: StreamPoint) -> SkewStatus:
    others = tuple(other for other in follow.streams if other != name)
    known = point.skews.get(follow.key_after(wait))
    if known is None:
        return SkewStatus(others, None, (), wait)
    return SkewStatus(others, known.disorder, known.changes, wait)


def _share(stream: Incoming, point: StreamPoint) -> float | None:
    """How much of a stream has been read; None of one that has no size."""
    if isinstance(stream, LiveStream | LetterStream | RereadRelation):
        return None
    if point.heartbeat == INFINITY:
        return 1.0
    away = later(stream.source)
    if away is not None and not away.reached():
        return None
    return point.position / max(stream.source.size, 1)


def _domain(name: str, stream: Incoming, reading: PublishedRun) -> TimeDomain:
    if isinstance(stream, RereadRelation):
        leaves = (node.plan.domain for node in reading.queries.graph.nodes if node.reads == name)
        return next(leaves, TimeDomain.TIMESTAMP)
    # The heartbeat of a relation is the beginning or the end of time.
    if isinstance(stream, BoundedRelation) or stream.timing.by_arrival:
        return TimeDomain.TIMESTAMP
    column = stream.schema[stream.schema.names.index(stream.timestamp)]
    return TimeDomain.INTEGER if column.type == BIGINT else TimeDomain.TIMESTAMP
