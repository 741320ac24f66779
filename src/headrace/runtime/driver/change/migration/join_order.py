"""The order in which a running query would better join, by the rows that its joins hold now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Join, Plan, inputs_of
from headrace.algebra.properties import names_read, walk
from headrace.elements import decode_rows, integers
from headrace.lowering.identity import identities
from headrace.operators.state.runs import END, TIME, WEIGHT, RunRef
from headrace.optimizer.cost.flow import Flow, FlowSample, flow_of, lasting
from headrace.optimizer.cost.orders import Choice, chosen_order
from headrace.optimizer.joins.join_graph import JoinGraph, JoinOrder
from headrace.optimizer.joins.order_joins import in_orders, join_orders
from headrace.runtime.driver.change.content.relation_sides import AREAS
from headrace.runtime.driver.change.migration.exchange import carried_out, require_at_rest
from headrace.runtime.driver.state import Holding
from headrace.runtime.store.segments import SegmentReader
from headrace.time import ALWAYS, INFINITY

SAMPLE_ROWS: Final = 20_000
"""About so many rows of each input are looked at, the newest."""


@dataclass(frozen=True)
class Reordered:
    """Another order of a query's joins.

    Attributes:
        plan: what the query would be carried out as.
        before, after: the orders, by the names of what is joined.
        gain: how many times fewer rows its joins are expected to take, to yield and to keep.
    """

    plan: Plan
    before: tuple[str, ...]
    after: tuple[str, ...]
    gain: float


def reordered(holding: Holding, name: str) -> Reordered | None:
    """A better order for the joins of a query.

    The present order is kept where another is not clearly better, and where a join of three inputs or more
    has an input of which no row is held.

    Args:
        holding: the queries and their state.
        name: the query's.

    Raises:
        PlanError: an exchange of its plan goes on.
    """
    require_at_rest(holding.queries, name)
    plan = carried_out(holding.queries, name)
    flows = _Flows(holding, plan, holding.queries.state_start_of(name))
    texts: list[tuple[str, str]] = []
    costs: list[Choice] = []

    def chosen(graph: JoinGraph) -> JoinOrder:
        choice = _best(flows, graph)
        if choice is None:
            return graph.order
        costs.append(choice)
        if choice.order != graph.order:
            texts.append((_text(graph, graph.order), _text(graph, choice.order)))
        return choice.order

    other = in_orders(plan, join_orders(plan, chosen))
    if not texts:
        return None
    gain = sum(choice.before for choice in costs) / sum(choice.cost for choice in costs)
    return Reordered(other, tuple(one for one, _ in texts), tuple(one for _, one in texts), gain)


def _best(flows: _Flows, graph: JoinGraph) -> Choice | None:
    """The best order by what is kept of the inputs; None where there is nothing of one."""
    found = [flows.of(part) for part in graph.inputs]
    known = [kept for kept in found if kept is not None]
    if len(known) < len(found):
        return None
    # Rows are kept for about as long as those of the inputs are valid; over such a time the rates count.
    elapsed = max(kept.flow.lifetime for kept in known)
    return chosen_order(graph, [kept.flow_over(elapsed) for kept in known], elapsed)


def _text(graph: JoinGraph, order: JoinOrder) -> str:
    if isinstance(order, int):
        return " and ".join(names_read(graph.inputs[order]))
    return f"({' JOIN '.join(_text(graph, side) for side in order)})"


class _Flows:
    """How the inputs of a plan's joins flow, by what the joins keep of them.

    Args:
        holding: where that is.
        plan: what the query is carried out as.
        start: the epoch from which on it answers.
    """

    def __init__(self, holding: Holding, plan: Plan, start: int) -> None:
        self._holding = holding
        self._reader = SegmentReader(holding.store)
        names = identities(plan, start, holding.queries.merges)
        self._places = {
            id(below): (names[id(part)], side)
            for part in walk(plan)
            if isinstance(part, Join)
            for side, below in zip(AREAS, inputs_of(part), strict=True)
        }

    def of(self, part: Plan) -> _Kept | None:
        """What is kept of one input; None where that is nothing."""
        place = self._places.get(id(part))
        if place is None:
            return None
        batches = [self._load(ref) for ref in self._runs(*place)]
        rows = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
        if not rows:
            return None
        return _kept(part, rows[0])

    def _runs(self, identity: str, side: str) -> list[RunRef]:
        manifests = (
            self._holding.state.get((identity, bucket), {}) for bucket in range(self._holding.buckets)
        )
        return [ref for manifest in manifests for ref in manifest.get(side, ())]

    def _load(self, ref: RunRef) -> pa.RecordBatch:
        return decode_rows(self._reader.read(ref.part))


@dataclass(frozen=True)
class _Kept:
    """What a join keeps of an input.

    Attributes:
        flow: how its newest rows flow; what has always been there does not, and what has no end is valid for
            as long as the others.
        endless: how many rows have no end.
    """

    flow: Flow
    endless: int

    def flow_over(self, elapsed: float) -> Flow:
        """How the input flows while so much time passes (instants), in which endless rows go on."""
        if not self.endless:
            return self.flow
        rate = max(self.flow.rate, self.endless / elapsed)
        return replace(self.flow, rate=rate, lifetime=lasting(self.endless, rate), is_open=True)


def _kept(part: Plan, rows: pa.RecordBatch) -> _Kept:
    instants, ends = integers(rows.column(TIME)), integers(rows.column(END))
    weights = integers(rows.column(WEIGHT))
    good = np.flatnonzero(weights > 0)
    newest = good[np.argsort(instants[good], kind="stable")][-SAMPLE_ROWS:]
    columns = [rows.column(f"p{place}").take(pa.array(newest)) for place in range(len(part.schema))]
    names = [f"p{place}" for place in range(len(columns))]
    sample = FlowSample(pa.RecordBatch.from_arrays(columns, names=names), instants[newest])
    bounded = ends[newest] < INFINITY
    lifetimes = (ends[newest] - instants[newest])[bounded]
    lifetime = float(lifetimes.mean()) if len(lifetimes) else 1.0
    # Rows that have always been there do not come.
    begun = sample.instants[sample.instants > ALWAYS]
    rate = len(begun) / (int(begun[-1] - begun[0]) + 1) if len(begun) else 0.0
    flow = replace(flow_of(sample), rate=rate, lifetime=max(1.0, lifetime))
    return _Kept(flow, max(0, int(weights[ends == INFINITY].sum())))
