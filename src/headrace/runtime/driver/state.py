"""The state of a run between two epochs, what an epoch adds to it, and what its queries rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.arrival import Past
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.records import (
    Commit,
    EpochResults,
    StreamPoint,
    Totals,
)
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import (
    Manifest,
    StateKey,
)


@dataclass(frozen=True)
class RunState:
    """What a run knows between two epochs.

    Attributes:
        queries: those that are answered.
        points: how far each stream has been read.
        state: the manifests of all state.
        results: those that are kept, in order and without gaps.
        totals: the counters.
        description: what the run is.
        buckets: how many buckets state is spread over.
        clock: the clock's reading for the last epoch.
    """

    queries: QuerySet
    points: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    results: Sequence[EpochResults]
    totals: Totals
    description: Description
    buckets: int
    clock: int


@dataclass(frozen=True)
class EpochOutcome:
    """An epoch that is about to count.

    Attributes:
        commit: its record.
        queries: those that are answered after it.
        points: how far each stream has been read after it.
        state: all state after it.
        written: the segments of state that it wrote.
    """

    commit: Commit
    queries: QuerySet
    points: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    written: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Holding:
    """Some queries, and what is there of them.

    Attributes:
        queries: the queries.
        points: how far what they read has been read.
        state: the manifests of all state.
        buckets: how many buckets it is spread over.
        store: where it is.
    """

    queries: QuerySet
    points: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    buckets: int
    store: Store

    def rows_of(self, node: Node) -> int:
        """How many rows of state a node has."""
        areas = (self.state.get((node.identity, bucket), {}).values() for bucket in range(self.buckets))
        return sum(run.rows for manifest in areas for area in manifest for run in area)

    def point(self, name: str) -> StreamPoint:
        """How far a stream, or what is read of a relation, has been read."""
        return self.points.get(name, StreamPoint(0))

    def heartbeats(self, graph: Graph) -> tuple[int, ...]:
        """The heartbeat of every node of a graph over what has been read (instants)."""
        return graph.heartbeats(*self.reached(graph))

    def reached(self, graph: Graph) -> tuple[dict[str, int], dict[str, int], dict[str, Past]]:
        """The heartbeats of a graph's inputs, their largest timestamps (instants), and what they had had."""
        names = dict.fromkeys(name for name in graph.reading if name is not None)
        points = {name: self.point(name) for name in names}
        return (
            {name: point.heartbeat for name, point in points.items()},
            {name: point.time.latest for name, point in points.items()},
            {name: self.point(name).past for name in graph.dials},
        )
