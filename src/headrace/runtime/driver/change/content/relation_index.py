"""What relations keep that are given by endless changes, handed to the queries that are added.

The rows of such a relation are the content of one operator, which all queries read. A query that is added
reads that operator too. What is new above it is given the rows that are there as if they had all come with
one epoch, each at the instant of its last change; changes that wait above the heartbeat come to it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Early, Plan, RelationIndex
from headrace.algebra.properties import is_stateful, is_stateless, sources_of
from headrace.elements import Batch, BoolArray, concat, decode_rows, empty, encode
from headrace.errors import ExecutionError, UserError
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.node import Node
from headrace.operators.contract import OperatorProgress
from headrace.operators.create import create_operator
from headrace.operators.early import Reach, beyond, unreported
from headrace.operators.state.runs import RunRef
from headrace.operators.stateless import apply
from headrace.operators.windows.rows import RowWindowOperator
from headrace.runtime.driver.change.content.at_once import AtOnce
from headrace.runtime.driver.change.content.early_content import said_beyond
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.results.carried import held_from
from headrace.runtime.store.segments import SegmentReader, SegmentWriter
from headrace.runtime.tasks.level import loaded_operator
from headrace.runtime.tasks.messages import Manifest, ResultRef, StateKey
from headrace.runtime.tasks.results import GroupedResult
from headrace.time import BEGINNING


@dataclass(frozen=True)
class Given:
    """What queries begin with that read relations which are there.

    Attributes:
        results: per query what it yields at once.
        state: what its new operators hold.
    """

    results: Mapping[str, Batch]
    state: Mapping[StateKey, Manifest]


def with_indices(queries: QuerySet, before: Holding, epoch: int) -> QuerySet:
    """Let new queries read what relations that run already keep.

    Args:
        queries: those from a change of the plan on.
        before: those before it, with what is there of them.
        epoch: that of the change, at which new queries start.
    """
    older: dict[str, int] = {}
    for node in _indices(before.queries.graph.nodes):
        older[node.shape] = min(node.start, older.get(node.shape, node.start))
    return queries.merged(
        [
            Merge(node.shape, epoch, older[node.shape])
            for node in _indices(queries.graph.nodes)
            if node.start == epoch and node.shape in older
        ]
    )


def _indices(nodes: Iterable[Node]) -> list[Node]:
    """Those nodes that are what a relation keeps; not where they wait for others."""
    return [node for node in nodes if isinstance(node.plan, RelationIndex) and not node.held]


def _below(graph: Graph, query: str) -> frozenset[int]:
    return graph.below(graph.node_of(dict(graph.outputs)[query]))


def given_to(
    queries: QuerySet, before: Holding, begun: Mapping[StateKey, Manifest], epoch: int, file: str
) -> Given:
    """Compute what new queries begin with above relations that run already.

    Args:
        queries: those from a change of the plan on, as `with_indices` has them.
        before: those before it, with what is there of them.
        begun: state that new operators have already.
        epoch: that of the change.
        file: the name of the file to write, below the folder for state.

    Raises:
        UserError: an expression or an aggregate fails for a row that is there.
    """
    graph = queries.graph
    known = {node.identity for node in before.queries.graph.nodes}
    indices = {node.number: node for node in _indices(graph.nodes) if node.identity in known}
    new = (name for name in queries.live if queries.began_in(name, epoch))
    above = sorted(name for name in new if not _below(graph, name).isdisjoint(indices))
    if not above:
        return Given({}, {})
    writer = SegmentWriter(before.store, f"segments/{file}")
    content = _Content(graph, before, begun, indices, writer)
    outputs = dict(graph.outputs)
    try:
        results = {name: content.of(graph.node_of(outputs[name])) for name in above}
    except ExecutionError as error:
        reason = f"the query fails for rows that are in the relation: {error.message}"
        raise UserError(reason, hint=error.hint) from None
    writer.close()
    # What goes on after a pause answers from an instant on.
    resumed = {name: queries.warm[name].answers_from for name in above if name in queries.warm}
    results |= {name: held_from(results[name], since) for name, since in resumed.items()}
    return Given(results, content.state)


class _Content:
    """What nodes yield at once, each computed once; nothing where no relation is below that is there."""

    def __init__(
        self,
        graph: Graph,
        before: Holding,
        begun: Mapping[StateKey, Manifest],
        indices: Mapping[int, Node],
        writer: SegmentWriter,
    ) -> None:
        self._graph = graph
        self._before = before
        self._begun = begun
        early = [node for node in graph.nodes if isinstance(node.plan, Early) and node.plan.corrects]
        looked_at = {graph.nodes[node.inputs[0].producer].identity for node in early}
        self._at_once = AtOnce(graph, before.buckets, before.store, writer, _refuse, looked_at)
        self._there = frozenset(indices)
        self._found = {number: _rows_of(node, before) for number, node in indices.items()}
        after, newest, pasts = before.reached(graph)
        told = {source.name for node in indices.values() for source in sources_of(node.plan)}
        points = after | dict.fromkeys(told, BEGINNING), after
        news = newest | dict.fromkeys(told, BEGINNING), newest
        self._heartbeats = tuple(map(graph.heartbeats, points, news, (pasts, pasts)))
        self._limits = tuple(map(graph.limits, points, news, (pasts, pasts)))
        self._horizons = graph.reaches(after, newest, pasts)

    @property
    def state(self) -> Mapping[StateKey, Manifest]:
        """What the operators hold that have run."""
        return self._at_once.state

    def of(self, number: int) -> Batch:
        """What a node yields."""
        if number not in self._found:
            node = self._graph.nodes[number]
            is_above = not self._there.isdisjoint(self._graph.below(number))
            self._found[number] = self._computed(node) if is_above else empty(node.plan.schema)
        return self._found[number]

    def _computed(self, node: Node) -> Batch:
        inputs = [self.of(edge.producer) for edge in node.inputs]
        plan: Plan = node.plan
        if isinstance(plan, Early) and plan.corrects:
            return concat(plan.schema, [*inputs, self._beyond(node, plan.horizon)])
        if is_stateless(plan):
            return concat(plan.schema, [apply(plan, batch, _refuse) for batch in inputs])
        assert is_stateful(plan)
        limits = [limits[node.number] for limits in self._limits]
        before, after = (
            tuple(min(heartbeats[edge.producer], limit) for edge in node.inputs)
            for heartbeats, limit in zip(self._heartbeats, limits, strict=True)
        )
        return self._at_once.operated(
            node, plan, inputs, OperatorProgress(before, after), self._begun, limits[1]
        )

    def _beyond(self, node: Node, horizon: Horizon) -> Batch:
        """What the operator below a node that speaks early has to say beyond its heartbeat."""
        operator = self._graph.nodes[node.inputs[0].producer]
        assert is_stateful(operator.plan)
        keys = [(operator.identity, bucket) for bucket in range(self._before.buckets)]
        heartbeats, horizons = (
            tuple(reached[edge.producer] for edge in operator.inputs)
            for reached in (self._heartbeats[1], self._horizons[horizon])
        )
        if operator.number in self._there:
            manifests = (self._before.state.get(key, {}) for key in keys)
            progress = OperatorProgress(heartbeats, horizons)
            return said_beyond(operator, operator.plan, manifests, progress, self._before.store)
        make = partial(create_operator, operator.plan, operator.reduced_for is not None, unreported)
        runs = self._at_once.runs
        parts = [beyond(make, Reach(runs[key], heartbeats, horizons)) for key in keys]
        return concat(node.plan.schema, parts)


def _rows_of(node: Node, holding: Holding) -> Batch:
    """The rows that a relation keeps."""
    assert isinstance(node.plan, RelationIndex)
    reader = SegmentReader(holding.store)

    def load(ref: RunRef) -> pa.RecordBatch:
        return decode_rows(reader.read(ref.part))

    found = []
    for bucket in range(holding.buckets):
        manifest = holding.state.get((node.identity, bucket), {})
        operator = loaded_operator(node, node.plan, manifest, unreported, load)
        assert isinstance(operator, RowWindowOperator)
        found.append(operator.content())
    return concat(node.plan.schema, found)


def _refuse(_: Batch, failed: BoolArray, reason: str) -> None:
    raise UserError(
        f"an expression of the query fails for a row that is in the relation: {reason}",
        hint="filter such rows out",
    )


def written(
    graph: Graph, results: Mapping[str, Batch], writer: SegmentWriter
) -> dict[str, tuple[ResultRef, ...]]:
    """Write what queries begin with; where it is, per query.

    Args:
        graph: with the queries.
        results: what each query's node yields at once.
        writer: where results are written to.
    """
    found = {}
    outputs = dict(graph.outputs)
    for name, batch in results.items():
        output = outputs[name]
        if output >= len(graph.nodes):
            group = graph.groups[output - len(graph.nodes)]
            found[name] = tuple(GroupedResult(batch, {output: group.constant}).write(writer))
        elif len(batch):
            found[name] = (ResultRef(output, writer.add(encode(batch)), len(batch), int(batch.ts.max())),)
    writer.close()
    return {name: refs for name, refs in found.items() if refs}
