"""The load of a run in the last seconds: what came, what was taken, and how much of its time it was busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from headrace.algebra.nodes import Plan, SemanticDrop, Shed
from headrace.algebra.tunings.tunings import Tuning, Tunings, size_of, tuning_of
from headrace.elements import Float64Array
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.capacity import Box, from_streams, needs, rates_in
from headrace.runtime.driver.facts.looks import RecentLooks
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.shedder.policy import LATE
from headrace.runtime.driver.shedder.values_seen import values_seen
from headrace.steps import WHOLE

_FEW: Final = 3
"""So many smaller epochs, and as many larger ones, tell what is the same for each."""
_SPREAD: Final = 1.2
"""So many times as much is in the larger ones, for that."""

_AT_MOST: Final = 0.9
"""An epoch takes no more than this part of its time whatever its rows, if that was not told of itself."""


@dataclass(frozen=True, eq=False)
class MeasuredLoad:
    """The load of a run, as it was in the last seconds.

    Attributes:
        needed: the part of its time that a run needs for what comes; above 1 it falls behind.
        behind: for how long rows wait that have come (seconds); None where that is not known.
        costs: for each share, and each threshold, the part of its time that the run would need for its
            rows if all were kept.
        rates: the rows that come of each stream (per second).
    """

    needed: float
    behind: float | None
    costs: Mapping[Tuning, float]
    rates: Mapping[str, float]


@dataclass
class RecentLoad(RecentLooks):
    """Looks at a run after its commits, since shares have changed.

    Attributes:
        epoch_time: what each epoch takes whatever its rows, as was told last (seconds).
    """

    epoch_time: float = 0.0

    def load(self, run: PublishedRun, bound: float) -> MeasuredLoad | None:
        """The load of a run; None before it was looked at for as long as rows may wait.

        Args:
            run: the run, as it was noted last.
            bound: for how long rows may wait (seconds).
        """
        if not self.looks or self.passed < bound:
            return None
        last, rates = self.looks[-1], self.rates()
        waiting = {name: last.waiting.get(name) for name in last.taken if name in last.waiting}
        boxes = boxes_of(run.queries.graph, run.statistics, run.queries.tunings)
        graph = run.queries.graph
        known = {name: float(rows or 0) for name, rows in waiting.items()}
        coming, left = (needs(boxes, from_streams(graph, rows)) for rows in (rates, known))
        work, took = self._epochs(graph, boxes)
        each, factor = 0.0, float(took.sum() / work.sum()) if work.sum() else 0.0
        behind = factor * float(left.sum())
        told = _epoch_times(work, took)
        self.epoch_time = self.epoch_time if told is None else told[0]
        if behind <= LATE * bound and work.sum():
            # Epochs may be larger before rows wait for too long, which needs less time for each of them.
            each, factor = told or _with_epoch_time(self.epoch_time, work, took)
        needed = factor * float(coming.sum()) + each / (LATE * bound)
        coming_rows = from_streams(graph, rates)
        costs = {tuning: factor * cost for tuning, cost in costs_of(graph, boxes, coming_rows).items()}
        return MeasuredLoad(needed, None if None in waiting.values() else behind, costs, rates)

    def _epochs(self, graph: Graph, boxes: Sequence[Box]) -> tuple[Float64Array, Float64Array]:
        """Two float64[n]: what the operators of each epoch needed, and what it took (seconds)."""
        work, took = [], []
        for before, then in pairwise(self.looks):
            rows = {name: float(count - before.taken.get(name, count)) for name, count in then.taken.items()}
            work.append(float(needs(boxes, from_streams(graph, rows)).sum()))
            took.append(then.busy - before.busy)
        return np.array(work), np.array(took)


def _epoch_times(work: Float64Array, took: Float64Array) -> tuple[float, float] | None:
    """The time that each epoch takes, whatever its rows, and that for a second of its operators.

    Operators may work side by side; reading and writing take time besides. What is the same for each epoch
    says nothing of how many rows can be answered, since there are fewer and larger epochs under load. It is
    told from the rest by a line through the means of the smaller and of the larger epochs (Wald, *Annals of
    Mathematical Statistics* 11, 1940).

    Args:
        work: float64[n], what the operators of each epoch needed (seconds).
        took: float64[n], what it took (seconds).

    Returns:
        None where there are few of them, or all are alike, so that nothing can be told.
    """
    order = np.argsort(work, kind="stable")
    small, large = order[: len(order) // 2], order[len(order) // 2 :]
    if not work.sum() or len(small) < _FEW or work[large].mean() < _SPREAD * work[small].mean():
        return None
    wider = float(work[large].mean() - work[small].mean())
    slope = float(took[large].mean() - took[small].mean()) / wider
    factor = min(max(0.0, slope), float(took.sum()) / float(work.sum()))
    return float(took.mean()) - factor * float(work.mean()), factor


def _with_epoch_time(each: float, work: Float64Array, took: Float64Array) -> tuple[float, float]:
    """The same by what each epoch took when that was told last, as far as these took so long.

    Under a small load all epochs are alike, of a row or two; what is known of the load before tells then that
    there is room.
    """
    each = min(each, _AT_MOST * float(took.min()))
    return each, (float(took.sum()) - len(took) * each) / float(work.sum())


def boxes_of(graph: Graph, statistics: Statistics, tunings: Tunings) -> tuple[Box, ...]:
    """The operators of a graph as what they were measured to take and yield.

    What is left out of streams is known, and not measured: so a new share counts at once, and of a new
    threshold what it leaves of the rows that came lately.

    Args:
        graph: the graph.
        statistics: what was counted of its operators, in its order.
        tunings: the shares that have changed.
    """
    found, seen = [], values_seen(graph, statistics)
    for node, (_, taken, given, _, _, _, seconds) in zip(
        graph.nodes, statistics.operators.recent.tolist(), strict=True
    ):
        kept = given / taken if taken else 1.0
        if (tuning := _lost_by(node.plan)) is not None:
            number = size_of(tuning, tunings)
            kept = (seen[tuning].share(number) if tuning in seen else number) / WHOLE
        inputs = tuple(edge.producer for edge in node.inputs)
        found.append(Box(inputs, seconds / taken if taken else 0.0, kept))
    return tuple(found)


def costs_of(graph: Graph, boxes: Sequence[Box], rates: Float64Array) -> dict[Tuning, float]:
    """The processor time for rows that may be left out, if all of them are kept, by what leaves them out.

    That is what would be saved if none were: an operator that reads other rows as well goes on with these.

    Args:
        graph: the graph.
        boxes: its operators.
        rates: float64[n], the rows that come to each of them from outside (per second).

    Returns:
        Seconds for each second.
    """
    begun: dict[Tuning, list[int]] = {}
    for node in graph.nodes:
        if (tuning := _lost_by(node.plan)) is not None:
            begun.setdefault(tuning, []).append(node.number)
    coming, found = rates_in(boxes, rates), {}
    for tuning, places in begun.items():
        # As if nothing else came: each box needs so much more with these rows.
        cut, alone = list(boxes), np.zeros(len(boxes))
        alone[places] = coming[places]
        for place in places:
            cut[place] = Box((), 0.0, 1.0)
        found[tuning] = float(needs(cut, alone).sum())
    return found


def _lost_by(plan: Plan) -> Tuning | None:
    """The tuning of a node that leaves out rows; None of others."""
    return tuning_of(plan) if isinstance(plan, Shed | SemanticDrop) else None
