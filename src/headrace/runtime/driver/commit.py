"""What an epoch's commit says: from the state before it, and what its tasks report or its change asks for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from headrace.algebra.arrival import NO_PAST, Past
from headrace.algebra.changes import Changes
from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Early
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import Estimate, follow
from headrace.heartbeats.estimated_skew import after_epoch
from headrace.heartbeats.share import Lateness
from headrace.heartbeats.state import State, StreamState
from headrace.lowering.behind import lane_of
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.row_sizes import sizes_after
from headrace.runtime.driver.facts.working_set import worked_with
from headrace.runtime.driver.kept.letters import LetterKeeper
from headrace.runtime.driver.kept.rows import RowKeeper
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import EpochOutcome, RunState
from headrace.runtime.driver.stored_queries import records_for_store
from headrace.runtime.intake.streams import Incoming, Intake, Streams
from headrace.runtime.journal.by_query import ByQuery
from headrace.runtime.journal.described_query import Paused
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.held_state import held
from headrace.runtime.journal.records import (
    Commit,
    EpochResults,
    StreamPoint,
    Totals,
    is_checkpoint,
    segments_of,
)
from headrace.runtime.journal.retention import waits_of
from headrace.runtime.tasks.messages import (
    EpochWork,
    Manifest,
    ResultRef,
    StateKey,
    TaskReport,
    ValuesPoint,
    kept_parts,
)
from headrace.time import INFINITY


def commit_of_epoch(
    before: RunState,
    work: EpochWork,
    streams: Streams,
    intakes: Mapping[str, Intake],
    ended: Mapping[str, Reason],
    reports: Sequence[TaskReport],
    keep: Callable[[EpochResults], tuple[EpochResults, int]],
    letters: LetterKeeper,
    rows: RowKeeper,
    started: float,
) -> EpochOutcome:
    """What an epoch that ran commits.

    Args:
        before: what the run knew.
        work: the epoch.
        streams: those that some query reads.
        intakes: what the epoch took of them.
        ended: queries that failed before it and were left out of it.
        reports: of its tasks; none failed.
        keep: makes of the results of this epoch those that it commits, with what older ones leave behind, and
            says which is the oldest epoch whose results are kept.
        letters: keeps dead letters with their columns.
        rows: keeps rows that were accepted.
        started: when it began (`time.perf_counter()`).
    """
    arrivals = work.joined(report.arrivals for report in reports)
    after = _time_after(work, arrivals, reports)
    heartbeats = work.time.heartbeats(after)
    times = dict(zip(work.time.names, after.streams(work.time.rules.granule), strict=True))
    queries = before.queries.with_failures({**ended, **failures(work.graph, reports)})
    changed = {key: value for report in reports for key, value in report.state.items()}
    state = held(before.state).changed(changed)
    checkpoint = is_checkpoint(work.epoch) or queries is not before.queries
    if queries is not before.queries:
        # A delta cannot say that state is gone; this record holds what the other queries need.
        state = held(queries.state_of(state))
    estimates = estimates_after(before.points, streams, arrivals, reports, work.clock)
    values = {name: point for report in reports for name, point in report.values.items()}
    skews = skews_after(before.points, streams, work, arrivals, times)
    points = points_after(before.points, streams, intakes, times, estimates, values, skews)
    points = letters.after(streams, points, intakes, reports)
    points = rows.after(streams, before.points, points, intakes, reports)
    pasts = work.pasts_after(arrivals)
    points = {name: replace(point, past=pasts.get(name, NO_PAST)) for name, point in points.items()}
    said = results_of(
        work, reports, heartbeats, work.time.newest(after), pasts, queries.failed, before.results
    )
    results, oldest = keep(with_paused(said, queries.paused, before.results))
    commit = Commit(
        epoch=work.epoch,
        streams=points if checkpoint else _news(points, intakes),
        state=state if checkpoint else changed,
        checkpoint=checkpoint,
        retained=oldest,
        results=results,
        failed=queries.failed,
        totals=counted(before, work, reports, state, time.perf_counter() - started),
        plan=described(before.description, before.buckets, queries, points) if checkpoint else None,
    )
    written = segments_of(changed, points) | {
        part.segment for report in reports for part in kept_parts(report)
    }
    return EpochOutcome(commit, queries, points, state, frozenset(written))


def _time_after(work: EpochWork, arrivals: Mapping[str, Arrivals], reports: Sequence[TaskReport]) -> State:
    """The time of the streams after an epoch, with what its tasks counted by position."""
    places = {name: place for place, name in enumerate(work.time.names)}
    by_position = {places[name]: one for report in reports for name, one in report.counted.items()}
    tallies = {places[name]: one for report in reports for name, one in report.tallies.items()}
    return work.time.after(arrivals).counted_on(by_position).tallied_on(tallies)


def results_of(
    work: EpochWork,
    reports: Sequence[TaskReport],
    heartbeats: Mapping[str, int],
    newest: Mapping[str, int],
    pasts: Mapping[str, Past],
    failed: Collection[str],
    before: Sequence[EpochResults],
) -> EpochResults:
    """What readers see; a query that failed has no heartbeat, since what it yielded is not an answer.

    Args:
        work: the epoch.
        reports: of its tasks.
        heartbeats: of the inputs after it (instants).
        newest: of the streams, the largest timestamp that came (instant).
        pasts: what the streams had brought before, of those that matter.
        failed: the queries that have failed.
        before: the results that are kept of the epochs before it.
    """
    refs: dict[int, list[ResultRef]] = {}
    for report in reports:
        for ref in report.results:
            refs.setdefault(ref.node, []).append(ref)
    letters = tuple(part.dead_letters for part in reports if part.dead_letters is not None)
    graph, said = work.graph, work.graph.heartbeats(heartbeats, newest, pasts)
    return EpochResults(
        epoch=work.epoch,
        heartbeats=ByQuery(graph.answering, said, failed),
        results={
            name: tuple(found)
            for output, found in refs.items()
            for name in graph.names_of[output]
            if name not in failed
        },
        dead_letters=letters,
        users=dict(enumerate(graph.users)) if letters else {},
        since=waits_of(graph.answering.keys() - failed, before, work.epoch),
        clock=work.clock,
        horizons=horizons_of(graph, failed, graph.reaches(heartbeats, newest, pasts)),
        departures=_departures(work.graph, reports),
    )


def _departures(graph: Graph, reports: Sequence[TaskReport]) -> dict[str, int]:
    """The rows in time for their streams that queries have left out."""
    found = Counter[str]()
    for report in reports:
        for memory, rows in report.departed.items():
            found.update(dict.fromkeys(graph.memories[memory], rows))
    return dict(+found)


def horizons_of(
    graph: Graph, without: Collection[str], reaches: Mapping[Horizon, tuple[int, ...]]
) -> dict[str, int]:
    """Up to where those queries speak that do not wait (instants).

    Args:
        graph: answers the queries.
        without: those that are left out.
        reaches: per horizon up to where each node speaks.
    """
    if not reaches:
        return {}
    nodes = {name: graph.nodes[number] for name, number in graph.answers if name not in without}
    return {
        name: reaches[node.plan.horizon][node.number]
        for name, node in nodes.items()
        if isinstance(node.plan, Early)
    }


def failures(graph: Graph, reports: Sequence[TaskReport]) -> dict[str, Reason]:
    """The queries that depend on a node that failed, each with what failed first on its way."""
    failed = sorted((one for report in reports for one in report.failures), key=lambda one: one.node)
    found: dict[str, Reason] = {}
    for one in failed:
        for name in graph.users[one.node]:
            found.setdefault(name, (one.message, one.hint))
    return found


def points_after(
    points: Mapping[str, StreamPoint],
    streams: Mapping[str, Incoming],
    intakes: Mapping[str, Intake],
    times: Mapping[str, StreamState],
    estimates: Mapping[str, Estimate | None],
    values: Mapping[str, ValuesPoint],
    skews: Mapping[str, Mapping[str, Estimate]],
) -> dict[str, StreamPoint]:
    """How far each stream has been read after an epoch.

    Args:
        points: how far before it.
        streams: those that some query reads.
        intakes: what the epoch took of them.
        times: how far the time of each of them has come after it.
        estimates: of their disorder after it, of those that estimate it.
        values: how far the values have come that have bounds of their own, of the streams that brought any.
        skews: how far they are behind others after it, of those that estimate it.
    """
    found = {
        **points,
        **{
            name: replace(points[name], time=time, estimate=estimates.get(name), skews=skews.get(name, {}))
            for name, time in times.items()
        },
    }
    for name, take in intakes.items():
        producers, mark = {**points[name].producers, **take.producers}, streams[name].mark(take.position)
        found[name] = replace(
            found[name],
            position=take.position,
            producers=producers,
            dropped=points[name].dropped + take.dropped,
            arrived=points[name].arrived + (take.end - take.start if _are_ordered(streams[name]) else 0),
            mark=mark,
            values=values.get(name, points[name].values),
            content=take.content or points[name].content,
            files={**points[name].files, **take.files},
        )
    return found


def _are_ordered(stream: Incoming) -> bool:
    """Whether the order in which rows come says which of them counts."""
    return isinstance(stream.changes, Changes)


def skews_after(
    points: Mapping[str, StreamPoint],
    streams: Streams,
    work: EpochWork,
    arrivals: Mapping[str, Arrivals],
    times: Mapping[str, StreamState],
) -> Mapping[str, Mapping[str, Estimate]]:
    """The estimates of how far streams are behind others after an epoch, of those that estimate it.

    Args:
        points: how far each stream had been read before it.
        streams: those that some query reads.
        work: the epoch.
        arrivals: what arrived on them.
        times: how far the time of each of them has come after it.
    """
    return after_epoch(
        {name: stream.timing for name, stream in streams.items()},
        {name: points[name].skews for name in streams},
        arrivals,
        times,
        dict(zip(work.time.names, work.time.clocks.caught_up.tolist(), strict=True)),
        work.clock,
    )


def estimates_after(
    points: Mapping[str, StreamPoint],
    streams: Streams,
    arrivals: Mapping[str, Arrivals],
    reports: Sequence[TaskReport],
    clock: int,
) -> dict[str, Estimate | None]:
    """The estimates of the streams' disorder after an epoch, of those that estimate it.

    Args:
        points: how far each stream had been read before it.
        streams: those that some query reads.
        arrivals: what arrived on them.
        reports: of the epoch's tasks.
        clock: its reading of the clock (microseconds since 1970).
    """
    found: dict[str, Estimate | None] = {}
    for name, stream in streams.items():
        if (rule := stream.timing.estimated) is not None:
            lateness = Lateness()
            for report in reports:
                lateness = lateness.beside(report.lateness.get(name, Lateness()))
            before, seen = points[name].estimate, arrivals.get(name, Arrivals())
            found[name] = follow(rule, before, seen, lateness, clock)
    return found


def _news(points: Mapping[str, StreamPoint], intakes: Mapping[str, Intake]) -> dict[str, StreamPoint]:
    """Points after an epoch with the producers and files that it has read: there may be very many others."""
    nothing = Intake(0)
    taken = {name: intakes.get(name, nothing) for name in points}
    return {
        name: replace(point, producers=taken[name].producers, files=taken[name].files)
        for name, point in points.items()
    }


def described(
    description: Description, buckets: int, queries: QuerySet, points: Iterable[str]
) -> Description:
    """What a store is for after a commit.

    Args:
        description: what the run is.
        buckets: how many buckets its state is spread over.
        queries: those that are answered, with their starts.
        points: the streams whose reading position the store knows.
    """
    known = {queries.inputs.get(name, name) for name in points}
    return replace(
        description,
        buckets=buckets,
        queries=records_for_store(queries, description.answered),
        merges=queries.merges,
        names=queries.names,
        tunings=queries.tunings,
        streams={name: text for name, text in description.streams.items() if name in known},
        shared=queries.packed,
        exchanges=queries.packed_exchanges,
        operators=queries.titles,
    )


def counted(
    before: RunState,
    work: EpochWork,
    reports: Sequence[TaskReport],
    state: Mapping[StateKey, Manifest],
    seconds: float,
) -> Totals:
    """The counters after an epoch.

    Args:
        before: what the run knew before it.
        work: the epoch.
        reports: of its tasks.
        state: all state after it.
        seconds: the time it took.
    """
    totals = before.totals
    emitted = dict(totals.emitted)
    yielded = Counter[int]()
    for report in reports:
        yielded.update(report.emitted)
    for output, rows in yielded.items():
        for name in work.graph.names_of.get(output, ()):
            emitted[name] = emitted.get(name, 0) + rows
    sizes = held(state).sizes
    arrivals, taken = dict(totals.arrivals), 0
    for name, seen in work.joined(report.arrivals for report in reports).items():
        taken += seen.everything
        if lane_of(name) is not None:
            # They have been counted as they came.
            continue
        known = arrivals.get(name, Arrivals())
        # How far values are behind each other is no disorder where each has a bound of its own.
        apart = name in work.relations or work.streams[name].timing.per is not None
        arrivals[name] = known.beside(seen) if apart else known.then(seen)
    letters = sum(part.dead_letters.rows for part in reports if part.dead_letters is not None)
    working, working_row = worked_with(totals, work.graph, reports, taken)
    return Totals(
        epochs=work.epoch,
        seconds=totals.seconds + seconds,
        arrivals=arrivals,
        emitted=emitted,
        dead_letters=totals.dead_letters + letters,
        state_rows_peak=max(totals.state_rows_peak, sizes.rows),
        state_bytes_peak=max(totals.state_bytes_peak, sizes.size),
        departures=dict(Counter(totals.departures) + Counter(_departures(work.graph, reports))),
        working=working,
        working_row=working_row,
        sizes=sizes_after(totals, work.graph, reports, work.clock - before.clock),
    )


def with_paused(
    results: EpochResults,
    paused: Mapping[str, Paused],
    before: Sequence[EpochResults],
    ended: Mapping[str, tuple[ResultRef, ...]] = MappingProxyType({}),
) -> EpochResults:
    """What readers see of an epoch, paused queries included.

    Args:
        results: what they see of the others.
        paused: the queries that are paused.
        before: the results that are kept of the epochs before it.
        ended: what takes back what was said, of those that this epoch pauses.
    """
    if not paused:
        return results
    carried = before[-1].carried if before else {}
    return replace(
        results,
        heartbeats={**results.heartbeats, **{name: one.heartbeat for name, one in paused.items()}},
        results={**results.results, **ended},
        # Nothing is left that a later epoch could release: this one releases all that was held back.
        since={**results.since, **dict.fromkeys(paused, results.epoch)},
        horizons={**results.horizons, **dict.fromkeys(ended, INFINITY)},
        carried={**results.carried, **{name: carried[name] for name in paused if name in carried}},
    )
