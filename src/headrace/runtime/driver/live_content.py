"""What operators that are new hold and yield at first, computed from what holds of the answers below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import Early, Plan, Stateful, inputs_of
from headrace.algebra.properties import is_stateful, is_stateless
from headrace.elements import Batch, concat
from headrace.errors import PlanError
from headrace.lowering.graph import Edge, Graph, Node, Spread
from headrace.lowering.lower import shape
from headrace.operators.before_exchange import part_for, reduction_for
from headrace.operators.contract import Progress, Report
from headrace.operators.state.keys import hash_rows, normalise
from headrace.operators.state.runs import RunRef
from headrace.operators.stateless import apply
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.channels import Channel, parts_by_bucket
from headrace.runtime.tasks.level import loaded_operator, store_state
from headrace.runtime.tasks.messages import Manifest, StateKey

_NO_CHANNEL: Final = -1
"""The number of an exchange of which nothing is sent."""


class LiveContent:
    """A part of a query above the answers of others, computed at once, in this process.

    An operator whose content at an instant depends on its inputs' contents at that instant alone needs no
    more of them than what they say of the instants to come. It is given that as if it came with an epoch.

    Args:
        answers: the answers below, each with its elements from an instant on.
        since: that instant.
        graph: with the query.
        query: its name.
        known: the identities of the operators that run already; they hold what they hold.
        heartbeats: of the nodes of the graph (instants).
        buckets: how many buckets state is spread over.
        writer: where state is written to.
        report: receives the elements for which an expression fails.
        beyond: what an operator that runs says beyond its heartbeat.

    Attributes:
        state: what the new operators hold.
    """

    def __init__(
        self,
        answers: Iterable[tuple[Plan, Batch]],
        since: int,
        graph: Graph,
        query: str,
        known: frozenset[str],
        heartbeats: Sequence[int],
        buckets: int,
        writer: SegmentWriter,
        report: Report,
        beyond: Callable[[Early], Batch],
    ) -> None:
        self._found = {id(plan): batch for plan, batch in answers}
        self._since = since
        self._graph = graph
        self._nodes = _nodes_of(graph, query)
        self._known = known
        self._heartbeats = heartbeats
        self._buckets = buckets
        self._writer = writer
        self._report = report
        self._beyond = beyond
        self.state: dict[StateKey, Manifest] = {}

    def of(self, plan: Plan) -> Batch:
        """The elements that a part of the query yields, from the instant on.

        Raises:
            PlanError: some operator of it runs already, or is carried out as another one.
            ExecutionError: an aggregate fails.
        """
        if id(plan) not in self._found:
            if isinstance(plan, Early) and plan.corrects:
                self._found[id(plan)] = concat(plan.schema, [self.of(plan.input), self._beyond(plan)])
            elif is_stateless(plan):
                parts = [apply(plan, self.of(below), self._report) for below in inputs_of(plan)]
                self._found[id(plan)] = concat(plan.schema, parts)
            else:
                assert is_stateful(plan)
                self._found[id(plan)] = self._operated(plan)
        return self._found[id(plan)]

    def _operated(self, plan: Stateful) -> Batch:
        node = self._nodes.get(shape(plan))
        if node is None or node.identity in self._known:
            raise PlanError("an operator above the answer that it reads is part of a query that runs")
        below = inputs_of(plan)
        if len(below) < len(node.inputs):
            # An aggregation that reads the inputs of a union one by one.
            below = inputs_of(below[0])
        inputs = [
            self._spread(node, edge, self.of(part)) for edge, part in zip(node.inputs, below, strict=True)
        ]
        after = tuple(self._heartbeats[edge.producer] for edge in node.inputs)
        progress = Progress((self._since,) * len(after), after)
        yielded = []
        for bucket in range(self._buckets):
            operator = loaded_operator(node, plan, {}, self._report, _load_nothing)
            for port, parts in enumerate(inputs):
                if bucket in parts:
                    operator.process(port, parts[bucket])
            yielded.append(operator.advance(progress))
            self.state[node.identity, bucket] = store_state(operator, self._writer)
        return concat(plan.schema, yielded)

    def _spread(self, node: Node, edge: Edge, batch: Batch) -> Mapping[int, Batch]:
        """What each bucket of an operator gets of one input, in the form in which it reads it."""
        producer, exchange = self._graph.nodes[edge.producer], edge.exchange
        reduced_for = node.reduced_for
        if exchange is None:
            parts = self._where_it_is(producer, batch)
            if reduced_for is None:
                return dict(parts)
            reduction = reduction_for(reduced_for)
            return {bucket: reduction.reduce(part, self._report) for bucket, part in parts}
        channel = Channel(_NO_CHANNEL, producer, exchange)
        travelling = channel.prepare(batch, self._report)
        if exchange.spread is Spread.COPY:
            return dict.fromkeys(range(self._buckets), travelling)
        parts = channel.by_bucket(travelling, self._buckets, self._report)
        if reduced_for is None:
            return dict(parts)
        return {bucket: part_for(node.plan, reduced_for, part) for bucket, part in parts}

    def _where_it_is(self, producer: Node, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """The elements of a node in the buckets in which it yields them."""
        columns = min(producer.spread_by, default=())
        keys = [normalise(batch.payload.column(place)) for place in columns]
        return parts_by_bucket(batch, hash_rows(keys, len(batch)), self._buckets)


def _nodes_of(graph: Graph, query: str) -> dict[str, Node]:
    """The operators of a query by their shapes; all have one start."""
    output = graph.node_of(dict(graph.outputs)[query])
    return {graph.nodes[number].shape: graph.nodes[number] for number in graph.below(output)}


def _load_nothing(_: RunRef) -> pa.RecordBatch:
    raise AssertionError("a new operator has no state to load")
