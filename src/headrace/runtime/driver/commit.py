"""What the reports of an epoch's tasks add up to."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from headrace.lowering.graph import Graph
from headrace.runtime.driver.query_set import QuerySet, Reason
from headrace.runtime.intake.streams import BoundedStream, Intake, LiveStream
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.records import EpochResults, StreamPoint, Totals
from headrace.runtime.journal.retention import since_of
from headrace.runtime.tasks.messages import (
    EpochWork,
    Manifest,
    ResultRef,
    StateKey,
    TaskReport,
    merge_arrivals,
)


def results_of(
    work: EpochWork,
    reports: Sequence[TaskReport],
    heartbeats: tuple[int, ...],
    failed: Container[str],
    before: Sequence[EpochResults],
) -> EpochResults:
    """What readers see; a query that failed has no heartbeat, since what it yielded is no answer.

    Args:
        work: the epoch.
        reports: of its tasks.
        heartbeats: of every node's output after it (instants).
        failed: the queries that have failed.
        before: the results that are kept of the epochs before it.
    """
    refs: dict[int, list[ResultRef]] = {}
    for report in reports:
        for ref in report.results:
            refs.setdefault(ref.node, []).append(ref)
    letters = tuple(part.dead_letters for part in reports if part.dead_letters is not None)
    going_on = [(name, node) for name, node in work.graph.outputs if name not in failed]
    return EpochResults(
        epoch=work.epoch,
        heartbeats={name: heartbeats[node] for name, node in going_on},
        results={name: tuple(refs.get(node, ())) for name, node in work.graph.outputs},
        dead_letters=letters,
        users=dict(enumerate(work.graph.users)) if letters else {},
        since={name: since_of(name, before, work.epoch) for name, _ in going_on},
    )


def results_of_change(
    epoch: int, queries: QuerySet, heartbeats: tuple[int, ...], before: Sequence[EpochResults]
) -> EpochResults:
    """What readers see of an epoch that changes the plan: the heartbeats, at which new queries begin.

    Args:
        epoch: its number.
        queries: those from then on.
        heartbeats: of every node's output (instants).
        before: the results that are kept of the epochs before it.
    """
    since = {
        name: epoch if queries.start_of(name) == epoch else since_of(name, before, epoch)
        for name, _ in queries.graph.outputs
    }
    return EpochResults(
        epoch=epoch,
        heartbeats={name: heartbeats[node] for name, node in queries.graph.outputs},
        results={},
        dead_letters=(),
        users={},
        since=since,
    )


def failures(graph: Graph, reports: Sequence[TaskReport]) -> dict[str, Reason]:
    """The queries that depend on a node that failed."""
    return {
        name: (message, hint)
        for report in reports
        for node, message, hint in report.failures
        for name in graph.users[node]
    }


def points_after(
    points: Mapping[str, StreamPoint],
    streams: Mapping[str, BoundedStream | LiveStream],
    intakes: Mapping[str, Intake],
    heartbeats: Mapping[str, int],
) -> dict[str, StreamPoint]:
    """How far each stream has been read after an epoch.

    Args:
        points: how far before it.
        streams: those that some query reads.
        intakes: what the epoch took of them.
        heartbeats: theirs after it (instants).
    """
    taken = {
        name: StreamPoint(
            take.position,
            heartbeats[name],
            {**points[name].producers, **take.producers},
            streams[name].mark(take.position),
        )
        for name, take in intakes.items()
    }
    return {**points, **taken}


def described(
    description: Description, buckets: int, queries: QuerySet, points: Container[str]
) -> Description:
    """What a store is for after a commit.

    Args:
        description: what the run is.
        buckets: how many buckets its state is spread over.
        queries: those that are answered, with their starts.
        points: the streams of which the store knows how far they have been read.
    """
    return replace(
        description,
        buckets=buckets,
        starts={name: queries.start_of(name) for name in queries.plans},
        streams={name: text for name, text in description.streams.items() if name in points},
    )


def counted(
    totals: Totals,
    work: EpochWork,
    reports: Sequence[TaskReport],
    state: Mapping[StateKey, Manifest],
    seconds: float,
) -> Totals:
    """The counters after an epoch.

    Args:
        totals: those before it.
        work: the epoch.
        reports: of its tasks.
        state: all state after it.
        seconds: the time it took.
    """
    emitted = dict(totals.emitted)
    for name, node in work.graph.outputs:
        emitted[name] = emitted.get(name, 0) + sum(part.emitted.get(node, 0) for part in reports)
    runs = [run for manifest in state.values() for area in manifest.values() for run in area]
    letters = sum(part.dead_letters.rows for part in reports if part.dead_letters is not None)
    return Totals(
        epochs=work.epoch,
        seconds=totals.seconds + seconds,
        arrivals=merge_arrivals([dict(totals.arrivals), *(report.arrivals for report in reports)]),
        emitted=emitted,
        dead_letters=totals.dead_letters + letters,
        state_rows_peak=max(totals.state_rows_peak, sum(run.rows for run in runs)),
        state_bytes_peak=max(totals.state_bytes_peak, sum(run.part.length for run in runs)),
    )
