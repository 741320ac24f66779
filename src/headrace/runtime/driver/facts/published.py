"""What is to be seen of a run after a commit: published as a whole, and read without waiting for the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import Incoming
from headrace.runtime.journal.records import StreamPoint, Totals
from headrace.runtime.tasks.messages import Manifest, StateKey


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """A run after a commit. Nobody changes what is in here: the run replaces it.

    Attributes:
        queries: those that are answered, and the graph that answers them.
        streams: those that some query reads.
        points: how far each stream has been read.
        state: the manifests of all state.
        totals: the counters.
        statistics: what was counted, in the order of the graph's nodes and outputs.
    """

    queries: QuerySet
    streams: Mapping[str, Incoming]
    points: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    totals: Totals
    statistics: Statistics
