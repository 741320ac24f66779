"""Whether a run has the time for a query that would come, and what would need less of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from headrace.algebra.nodes import Join, Plan, Shed, TimeWindow
from headrace.algebra.properties import is_stateful, names_read, walk
from headrace.algebra.tunings.loss import Loss
from headrace.algebra.tunings.tunings import Tuning, movable_in
from headrace.engine.catalog.definitions import RESULT
from headrace.heartbeats.bounded import Arrivals
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.node import Node
from headrace.optimizer.cost.machine import MACHINE
from headrace.optimizer.cost.work import NodeCounts, storing, work_of
from headrace.runtime.driver.facts.capacity import HEADROOM, Box, Headroom, above, needs, room
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.findings import Shedding, ShedShare
from headrace.runtime.driver.shedder.policy import LATE, LEAST, shares_at
from headrace.runtime.driver.shedder.recent import boxes_of
from headrace.runtime.driver.shedder.values_seen import graph_of
from headrace.steps import WHOLE, share_text
from headrace.time import INFINITY, MICROSECONDS

_ROWS: Final = 1_000_000.0
"""For so many rows the constants of the machine are asked."""
_LESS: Final = 0.5
"""The part of a window that is proposed."""


@dataclass(frozen=True, eq=False)
class _Present:
    """A run that goes on.

    Attributes:
        run: what is to be seen of it.
        found: what its shedder has found; it was looked at for long enough.
        gone: the identity of the query that is to be replaced; None without one.
    """

    run: PublishedRun
    found: Shedding
    gone: str | None

    @property
    def needed(self) -> float:
        """The part of its time that it needs, without what it needs only for the query that goes."""
        return max(0.0, (self.found.needed or 0.0) - self.freed)

    @cached_property
    def freed(self) -> float:
        """The part of its time that it needs only for the query that is to be replaced."""
        if self.gone is None:
            return 0.0
        graph = self.run.queries.graph
        each = self.needs(graph, boxes_of(graph, self.run.statistics, self.run.queries.tunings))
        own = [users == (self.gone,) for users in graph.users]
        return float(each[np.array(own, dtype=np.bool_)].sum())

    def shares(self, plan: Plan) -> tuple[ShedShare, ...]:
        """The shares of the queries that stay, and of one that comes."""
        if self.gone is None:
            return self.found.shares
        plans = [one for name, one in self.run.queries.plans.items() if name != self.gone]
        stay = {tuning for one in (*plans, plan) for tuning in movable_in(one)}
        return tuple(one for one in self.found.shares if one.tuning in stay)

    def boxes(self, graph: Graph, *, windows: float = 1.0) -> tuple[Box, ...]:
        """The operators of a query's graph, as the run has measured theirs or as constants say.

        What lets rows through by a condition is taken to let all of them through, where nothing is known.

        Args:
            graph: the query's.
            windows: the part of the windows that is left.
        """
        queries = self.run.queries
        measured = boxes_of(queries.graph, self.run.statistics, queries.tunings)
        known = {node.shape: box for node, box in zip(queries.graph.nodes, measured, strict=True)}
        found = []
        for node in graph.nodes:
            inputs, box = tuple(edge.producer for edge in node.inputs), known.get(node.shape)
            yields = 1.0 if box is None else box.selectivity
            yields *= windows if isinstance(node.plan, Join) else 1.0
            if box is not None and not is_stateful(node.plan):
                # What keeps nothing is carried out once for all queries.
                cost = 0.0
            elif box is not None and windows == 1:
                cost = box.cost
            else:
                cost = self._expected(node, yields, windows)
            found.append(Box(inputs, cost, yields))
        return tuple(found)

    def _expected(self, node: Node, yields: float, windows: float) -> float:
        """The processor time of a row by the constants of EXPLAIN COST (seconds)."""
        if not node.inputs:
            return 0.0
        each = MACHINE.seconds(work_of(node.plan, NodeCounts(_ROWS, _ROWS * yields, 0.0, 0.0))) / _ROWS
        rates = sum(self.found.rates.get(name, 0.0) for name in _streams(node.plan))
        if not is_stateful(node.plan) or not rates:
            return each
        # What is kept is looked at once in an epoch; under load there are as few as the bound lets there be.
        kept = windows * self._kept(node.plan)
        epochs = 1 / (LATE * self.found.bound / MICROSECONDS["SECOND"])
        counts = NodeCounts(0.0, 0.0, kept, epochs)
        return each + MACHINE.seconds((*work_of(node.plan, counts), storing(counts))) / rates

    def _kept(self, plan: Plan) -> float:
        """The rows in the windows below a node, if rows come as they have come so far."""
        found = 0.0
        for node in walk(plan):
            if isinstance(node, TimeWindow) and node.size.length != INFINITY:
                for name in _streams(node):
                    seen = self.run.totals.arrivals.get(name, Arrivals())
                    found += node.size.length * seen.rows / max(1, seen.latest - seen.earliest + 1)
        return found

    def needs(self, graph: Graph, boxes: tuple[Box, ...]) -> np.ndarray:
        """float64[n]: the part of the run's time that each operator needs."""
        rates = [0.0 if node.reads is None else self.found.rates.get(node.reads, 0.0) for node in graph.nodes]
        return needs(boxes, np.array(rates))


def room_lines(
    run: PublishedRun,
    found: Shedding | None,
    plan: Plan,
    lossy: Plan | str | None,
    gone: str | None = None,
) -> Iterator[str]:
    """The part of a run's time that a query would need, line by line; nothing before it is measured.

    Args:
        run: what is to be seen of the run.
        found: what its shedder has found.
        plan: the query's, optimized.
        lossy: the same if it bore loss, or why it cannot; None where it says itself what it bears.
        gone: the identity of the query that it replaces; None without one.
    """
    if found is None or found.needed is None:
        return
    present, graph = _Present(run, found, gone), lower({RESULT: plan})
    own = float(present.needs(graph, present.boxes(graph)).sum())
    needed = present.needed + own
    verdict = room(needed, 1.0)
    said = {
        Headroom.ENOUGH: "there is room for it",
        Headroom.LITTLE: "little would be left",
        Headroom.NONE: "rows would have to wait",
    }[verdict]
    now = f"{100 * found.needed:.0f} % are needed now"
    if gone is not None:
        now += f", {100 * min(found.needed, present.freed):.2g} % for what it replaces"
    yield f"it would need up to {100 * own:.2g} % of the run's time, where {now}: {said}"
    if verdict is Headroom.ENOUGH:
        return
    yield from _others(present.shares(plan), needed)
    if isinstance(lossy, str):
        yield f"rows of it cannot be left out: {lossy}"
    elif lossy is not None:
        yield _as_lossy(present, lower({RESULT: lossy}))
    if any(isinstance(node, TimeWindow) and node.size.length != INFINITY for node in walk(plan)):
        less = float(present.needs(graph, present.boxes(graph, windows=_LESS)).sum())
        yield f"half the window would save about {100 * max(0.0, own - less):.2g} % of the run's time"


def _others(known: Sequence[ShedShare], needed: float) -> Iterator[str]:
    """The shares and thresholds that the shedder would choose for the queries that are there."""
    shares = shares_at(needed, 1.0, [one.knob for one in known])
    for one, share in zip(known, shares, strict=True):
        if share < one.share and one.by_values is None:
            yield f"the shedder would keep {share_text(share)} of the rows of {_of(one.tuning)}"
        elif share < one.share:
            told = graph_of(one.tuning).told(one.number(share), "would be")
            yield f"{told} by the shedder of those of {_of(one.tuning)}"


def _of(tuning: Tuning) -> str:
    return f"{', '.join(tuning.streams)} {tuning.loss}"


def _as_lossy(present: _Present, graph: Graph) -> str:
    """Which share of the query's own rows leaves room, if it bore loss."""
    boxes = present.boxes(graph)
    each = present.needs(graph, boxes)
    begun = [node.number for node in graph.nodes if isinstance(node.plan, Shed)]
    scaled = float(each[list(above(boxes, begun))].sum())
    left = HEADROOM - present.needed - float(each.sum()) + scaled
    if not scaled or left < scaled * LEAST / WHOLE:
        return "leaving out rows of it would not do"
    share = min(WHOLE, int(left / scaled * 100) * WHOLE // 100)
    saved = scaled * (WHOLE - share) / WHOLE
    return (
        f"with {Loss().text} and KEEP {share_text(max(share, LEAST))} there would be room: that saves "
        f"{100 * saved:.2g} % of the run's time"
    )


def _streams(plan: Plan) -> Mapping[str, None]:
    """The names of the streams below a node, each once."""
    return dict.fromkeys(names_read(plan))
