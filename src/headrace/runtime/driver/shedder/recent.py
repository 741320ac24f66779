"""The load of a run in the last seconds: what came, what was taken, and how much of its time it was busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headrace.algebra.nodes import Shed
from headrace.algebra.tunings.tunings import Tuning, Tunings, size_of, tuning_of
from headrace.elements import Float64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.shedder.capacity import Box, above, needs
from headrace.steps import WHOLE
from headrace.time import MICROSECONDS

_LOOKS = 2
"""So many bounds are looked back."""

RowsWaiting = Mapping[str, int | None]
"""The rows that wait for an epoch, by stream; None where that is not known."""


class _Look(NamedTuple):
    """A run after a commit.

    Attributes:
        at: when (seconds).
        busy: the seconds that all epochs took.
        taken: the rows of each stream that were taken.
        waiting: those that wait, where that is known.
    """

    at: float
    busy: float
    taken: Mapping[str, int]
    waiting: RowsWaiting


@dataclass(frozen=True, eq=False)
class MeasuredLoad:
    """The load of a run, as it was in the last seconds.

    Attributes:
        needed: the part of its time that a run needs for what comes; above 1 it falls behind.
        behind: for how long rows wait that have come (seconds); None where that is not known.
        costs: for each share the part of its time that the run would need for it if all rows were kept.
        rates: the rows that come of each stream (per second).
    """

    needed: float
    behind: float | None
    costs: Mapping[Tuning, float]
    rates: Mapping[str, float]


@dataclass
class RecentLoad:
    """Looks at a run after its commits.

    Attributes:
        looks: those of the last seconds since shares have changed, and one before them.
    """

    looks: list[_Look] = field(default_factory=list)

    def note(self, run: PublishedRun, waiting: RowsWaiting, bound: float) -> None:
        """Take in what a commit has brought.

        Args:
            run: what is to be seen of the run.
            waiting: the rows that wait for the next epoch.
            bound: for how long rows may wait (seconds).
        """
        at = run.statistics.at / MICROSECONDS["SECOND"]
        arrivals = run.totals.arrivals
        taken = {name: arrivals.get(name, Arrivals()).everything for name in run.streams}
        self.looks.append(_Look(at, run.totals.seconds, taken, dict(waiting)))
        while len(self.looks) > 2 and self.looks[1].at <= at - _LOOKS * bound:
            del self.looks[0]

    def forget(self) -> None:
        """Forget all, since the run does something else from now on."""
        self.looks.clear()

    def load(self, run: PublishedRun, bound: float) -> MeasuredLoad | None:
        """The load of a run; None before it was looked at for as long as rows may wait.

        Args:
            run: the run, as it was noted last.
            bound: for how long rows may wait (seconds).
        """
        if not self.looks or self.looks[-1].at - self.looks[0].at < bound:
            return None
        first, last = self.looks[0], self.looks[-1]
        passed = last.at - first.at
        taken = {name: (rows - first.taken.get(name, rows)) / passed for name, rows in last.taken.items()}
        waiting = {name: last.waiting.get(name) for name in last.taken if name in last.waiting}
        grown = {
            name: (rows - (first.waiting.get(name) or 0)) / passed
            for name, rows in waiting.items()
            if rows is not None
        }
        rates = {name: max(0.0, rate + grown.get(name, 0.0)) for name, rate in taken.items()}
        boxes = boxes_of(run.queries.graph, run.statistics, run.queries.tunings)
        graph, busy = run.queries.graph, (last.busy - first.busy) / passed
        known = {name: float(rows or 0) for name, rows in waiting.items()}
        done, coming, left = (needs(boxes, _from_streams(graph, rows)) for rows in (taken, rates, known))
        if not done.sum():
            return MeasuredLoad(busy, 0.0 if None not in waiting.values() else None, {}, rates)
        # A run takes longer than its operators, which may work side by side.
        factor = busy / float(done.sum())
        behind = None if None in waiting.values() else factor * float(left.sum())
        costs = {
            tuning: min(1.0, factor)
            * float(coming[places].sum())
            * WHOLE
            / size_of(tuning, run.queries.tunings)
            for tuning, places in scaled_by_shares(graph, boxes).items()
        }
        return MeasuredLoad(factor * float(coming.sum()), behind, costs, rates)


def boxes_of(graph: Graph, statistics: Statistics, tunings: Tunings) -> tuple[Box, ...]:
    """The operators of a graph as what they were measured to take and yield.

    What is left out of streams is known, and not measured: so a new share counts at once.

    Args:
        graph: the graph.
        statistics: what was counted of its operators, in its order.
        tunings: the shares that have changed.
    """
    found = []
    for node, (_, taken, given, _, _, seconds) in zip(
        graph.nodes, statistics.operators.recent.tolist(), strict=True
    ):
        kept = given / taken if taken else 1.0
        if isinstance(node.plan, Shed) and (tuning := tuning_of(node.plan)) is not None:
            kept = size_of(tuning, tunings) / WHOLE
        inputs = tuple(edge.producer for edge in node.inputs)
        found.append(Box(inputs, seconds / taken if taken else 0.0, kept))
    return tuple(found)


def scaled_by_shares(graph: Graph, boxes: Sequence[Box]) -> dict[Tuning, list[int]]:
    """For each share the operators to which fewer rows come where less is kept."""
    begun: dict[Tuning, list[int]] = {}
    for node in graph.nodes:
        if isinstance(node.plan, Shed) and (tuning := tuning_of(node.plan)) is not None:
            begun.setdefault(tuning, []).append(node.number)
    return {tuning: list(above(boxes, places)) for tuning, places in begun.items()}


def _from_streams(graph: Graph, rates: Mapping[str, float]) -> Float64Array:
    """float64[n]: the rows that come to each operator from outside."""
    return np.array([0.0 if node.reads is None else rates.get(node.reads, 0.0) for node in graph.nodes])
