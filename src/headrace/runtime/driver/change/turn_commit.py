"""What the commit of a change of the plan says: from what a run knew, and what the change comes to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.algebra.arrival import NO_PAST, Moment
from headrace.lowering.graph import Graph
from headrace.runtime.driver.change.migration.exchange import with_adopted
from headrace.runtime.driver.change.turn import Turn
from headrace.runtime.driver.commit import described, horizons_of, with_paused
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import EpochOutcome, RunState
from headrace.runtime.intake.streams import (
    BoundedRelation,
    BoundedStream,
    Incoming,
    LetterStream,
    LiveStream,
    Streams,
)
from headrace.runtime.journal.by_query import ByQuery
from headrace.runtime.journal.records import Commit, EpochResults, StreamPoint
from headrace.runtime.journal.retention import waits_of


def commit_of_turn(before: RunState, turn: Turn, started: float) -> EpochOutcome:
    """What a change of the plan commits: an epoch without input.

    Args:
        before: what the run knew.
        turn: what the change comes to.
        started: when the change began (`time.perf_counter()`).
    """
    before = replace(before, state={**before.state, **turn.given})
    if turn.joining is None:
        return _committed(before, turn, started)
    return turn.joining.said_by(_committed(turn.joining.known_to(before), turn, started))


def _committed(before: RunState, turn: Turn, started: float) -> EpochOutcome:
    queries, streams = turn.queries, turn.streams
    epoch = before.totals.epochs + 1
    new = {name: _begun(streams.get(name), epoch) for name in queries.columns}
    waiting = {one.name for one in turn.description.catalog or () if one.kind == "STREAM"}
    points = new | {
        name: point
        for name, point in before.points.items()
        if name in new
        or (name in streams and not isinstance(streams[name], BoundedRelation | LetterStream))
        # One that could not be declared so far is read on where it was.
        or (name not in streams and name in waiting)
    }
    points = {name: _without_untaken(name, point, queries, streams) for name, point in points.items()}
    points = _looking_back(queries.graph, {**points, **turn.points}, before.clock)
    results = _results_of(epoch, queries, points, before.results)
    results = replace(results, results=turn.begins, clock=before.clock)
    results = with_paused(results, queries.paused, before.results, turn.ended)
    state = queries.state_of(with_adopted(before.state, turn.adopted))
    totals = replace(
        before.totals,
        epochs=epoch,
        seconds=before.totals.seconds + time.perf_counter() - started,
        arrivals={
            name: seen if name in points else seen.apart() for name, seen in before.totals.arrivals.items()
        },
        emitted={name: count for name, count in before.totals.emitted.items() if name in queries.plans},
        departures={
            name: count
            for name, count in before.totals.departures.items()
            if name in queries.plans and queries.start_of(name) < epoch
        },
    )
    commit = Commit(
        epoch=epoch,
        streams=points,
        state=state,
        checkpoint=True,
        # Sinks may not have said yet what they need; the next epoch lets go of what is too old.
        retained=(before.results or [results])[0].epoch,
        results=results,
        failed=queries.failed,
        totals=totals,
        plan=described(turn.description, before.buckets, queries, points),
    )
    return EpochOutcome(commit, queries, points, state)


def _begun(stream: Incoming | None, epoch: int) -> StreamPoint:
    """Where an input begins that is read from a change of the plan on: dead letters with those to come."""
    return StreamPoint(epoch if isinstance(stream, LetterStream) else 0)


def _without_untaken(name: str, point: StreamPoint, queries: QuerySet, streams: Streams) -> StreamPoint:
    """A point without rows that were kept for lanes alone, where none reads the stream any more."""
    stream = streams.get(name)
    if not isinstance(stream, BoundedStream | LiveStream) or stream.retain is not None:
        return point
    return point if name in queries.read_behind | queries.keeps else replace(point, retained=None)


def _looking_back(graph: Graph, points: Mapping[str, StreamPoint], clock: int) -> dict[str, StreamPoint]:
    """Points that remember what their streams have brought, from now on, where queries look back to that."""
    found = {}
    for name, point in points.items():
        dials = graph.dials.get(name)
        now = Moment(clock, point.time.rows, point.time.latest)
        found[name] = replace(point, past=NO_PAST if dials is None else point.past.then(now, dials))
    return found


def _results_of(
    epoch: int, queries: QuerySet, points: Mapping[str, StreamPoint], before: Sequence[EpochResults]
) -> EpochResults:
    """What readers see of an epoch that changes the plan: the heartbeats, at which new queries begin.

    Args:
        epoch: its number.
        queries: those from then on.
        points: how far the inputs have come.
        before: the results that are kept of the epochs before it.
    """
    graph = queries.graph
    inputs = {name: points[name].heartbeat for name in queries.columns}
    newest = {name: points[name].time.latest for name in queries.columns}
    pasts = {name: points[name].past for name in graph.dials}
    heartbeats = graph.heartbeats(inputs, newest, pasts)
    waits = waits_of(graph.answering.keys(), before, epoch)
    return EpochResults(
        epoch=epoch,
        heartbeats=ByQuery(graph.answering, heartbeats),
        results={},
        dead_letters=(),
        users={},
        since={name: first for name, first in waits.items() if queries.start_of(name) < epoch},
        carried={
            name: carried
            for name, carried in (before[-1].carried if before else {}).items()
            if name in graph.answering and queries.start_of(name) < epoch
        },
        horizons=horizons_of(graph, (), graph.reaches(inputs, newest, pasts)),
    )
