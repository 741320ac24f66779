"""The order of joins that is expected to cost least, by dynamic programming over connected subsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.algebra.nodes import Join
from headrace.limits import checked
from headrace.optimizer.cost.expected import expected
from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.machine import MACHINE
from headrace.optimizer.cost.work import NodeCounts, Work, WorkKind, epochs_of, sending, storing, work_of
from headrace.optimizer.joins.join_graph import JoinedPart, JoinGraph, JoinOrder

MAX_INPUTS: Final = 10
"""Of so many inputs all orders are looked at: 59,049 joins of one subset with another."""

_MARGIN: Final = 0.9
"""Another order is chosen if it costs less than this part of the one that the query has."""


@dataclass(frozen=True, eq=False)
class JoinCandidate:
    """The best way found to join some inputs.

    Attributes:
        part: the inputs, joined.
        flow: how the result flows.
        cost: the processor time that its joins take (seconds).
    """

    part: JoinedPart
    flow: Flow
    cost: float


@dataclass(frozen=True)
class Choice:
    """In which order to join.

    Attributes:
        order: the order.
        cost: the rows that joins in this order take, yield and keep.
        before: the same of the order that was there.
    """

    order: JoinOrder
    cost: float
    before: float


def best_order(graph: JoinGraph, flows: Sequence[Flow], elapsed: float) -> JoinOrder:
    """The order in which joins take the least processor time; the graph's own if none is much better.

    Args:
        graph: the joins.
        flows: how its inputs flow.
        elapsed: for how long (instants).
    """
    return chosen_order(graph, flows, elapsed).order


def chosen_order(graph: JoinGraph, flows: Sequence[Flow], elapsed: float) -> Choice:
    """The same, with what it costs.

    Joins of all pairs are not looked at: where some inputs are connected to others by no equality, and where
    there are more than `MAX_INPUTS`, the order stays.
    """
    present = _costed(graph, graph.order, flows, elapsed).cost
    inputs = len(flows)
    if inputs > MAX_INPUTS:
        return Choice(graph.order, present, present)
    best = {1 << place: JoinCandidate(graph.part(place), flows[place], 0.0) for place in range(inputs)}
    for subset in checked(sorted(range(1 << inputs), key=int.bit_count)):
        pairs = [(best[some], best[rest]) for some, rest in _splits(subset) if some in best and rest in best]
        found = _cheapest(graph, pairs, elapsed)
        if found is not None:
            best[subset] = found
    whole = best.get((1 << inputs) - 1)
    if whole is None or whole.cost >= _MARGIN * present:
        return Choice(graph.order, present, present)
    return Choice(whole.part.order, whole.cost, present)


def _splits(subset: int) -> Iterator[tuple[int, int]]:
    """The ways to cut a set into two, the one with the first input first."""
    first = subset & -subset
    some = (subset - 1) & subset
    while some:
        if some & first:
            yield some, subset ^ some
        some = (some - 1) & subset


def _cheapest(
    graph: JoinGraph, pairs: Sequence[tuple[JoinCandidate, JoinCandidate]], elapsed: float
) -> JoinCandidate | None:
    """The cheapest of the joins by an equality; None without any."""
    for left, right in sorted(pairs, key=lambda pair: _cost_of_inputs(pair, elapsed)):
        # Whatever the order, the result is the same.
        if graph.joined(left.part, right.part).is_connected:
            return _joined(graph, left, right, elapsed)
    return None


def _cost_of_inputs(pair: tuple[JoinCandidate, JoinCandidate], elapsed: float) -> float:
    """What it takes to make two inputs, to bring them to their join and to keep them there (seconds)."""
    kept = sum(side.flow.live for side in pair if side.flow.lifetime > 1)
    rows = sum(side.flow.rate * elapsed for side in pair)
    counts = NodeCounts(rows, 0.0, kept, epochs_of(rows))
    join = Work(WorkKind.JOIN, rows, kept=kept * counts.epochs, epochs=counts.epochs)
    sent = (
        work
        for side in pair
        for work in sending(side.part.plan.schema, side.flow.rate * elapsed, False, counts.epochs)
    )
    return sum(side.cost for side in pair) + MACHINE.seconds((join, storing(counts), *sent))


def _joined(graph: JoinGraph, left: JoinCandidate, right: JoinCandidate, elapsed: float) -> JoinCandidate:
    part = graph.joined(left.part, right.part)
    assert isinstance(part.plan, Join)
    flow = expected(part.plan, (left.flow, right.flow), elapsed).flow
    yielding = MACHINE.seconds(work_of(part.plan, NodeCounts(0.0, flow.rate * elapsed, 0.0, 0.0)))
    return JoinCandidate(part, flow, _cost_of_inputs((left, right), elapsed) + yielding)


def _costed(graph: JoinGraph, order: JoinOrder, flows: Sequence[Flow], elapsed: float) -> JoinCandidate:
    """What an order costs."""
    if isinstance(order, int):
        return JoinCandidate(graph.part(order), flows[order], 0.0)
    left, right = (_costed(graph, side, flows, elapsed) for side in order)
    return _joined(graph, left, right, elapsed)
