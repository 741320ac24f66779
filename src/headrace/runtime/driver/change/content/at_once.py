"""Operators that are given all of an input at once, in this process, with a change of the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from headrace.algebra.nodes import Stateful
from headrace.elements import Batch, concat, decode_rows
from headrace.lowering.graph import Graph
from headrace.lowering.node import Edge, Node
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.early import Runs, runs_of
from headrace.operators.state.keys import hash_rows, normalise
from headrace.operators.state.runs import RunRef
from headrace.runtime.driver.change.content.spread import arrived
from headrace.runtime.store.segments import SegmentReader, SegmentWriter, Store
from headrace.runtime.tasks.channels import parts_by_bucket
from headrace.runtime.tasks.level import loaded_operator, store_state
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import INFINITY


class AtOnce:
    """Runs new operators of a graph, bucket by bucket.

    Args:
        graph: with the operators.
        buckets: how many buckets state is spread over.
        store: where state is.
        writer: where state of theirs is written to.
        report: receives the elements for which an expression fails.
        looked_at: the operators whose state is looked at before it can be read from the store.

    Attributes:
        state: what the operators hold that have run.
        runs: the same of those that are looked at.
    """

    def __init__(
        self,
        graph: Graph,
        buckets: int,
        store: Store,
        writer: SegmentWriter,
        report: Report,
        looked_at: Collection[str] = (),
    ) -> None:
        self._graph = graph
        self._reader = SegmentReader(store)
        self._buckets = buckets
        self._writer = writer
        self._report = report
        self._looked_at = looked_at
        self.state: dict[StateKey, Manifest] = {}
        self.runs: dict[StateKey, Runs] = {}

    def operated(
        self,
        node: Node,
        plan: Stateful,
        inputs: Sequence[Batch],
        progress: OperatorProgress,
        begun: Mapping[StateKey, Manifest],
        limit: int = INFINITY,
    ) -> Batch:
        """What an operator yields.

        Args:
            node: the operator's node.
            plan: what it carries out.
            inputs: what it is given, by edge, as its producers yield it.
            progress: the heartbeats before and after.
            begun: state that some operators have already.
            limit: up to where it takes elements if it waits for others (instant).

        Raises:
            ExecutionError: an aggregate fails.
        """
        parts = [self._spread(node, edge, batch) for edge, batch in zip(node.inputs, inputs, strict=True)]
        yielded = []
        for bucket in range(self._buckets):
            key = node.identity, bucket
            operator = loaded_operator(node, plan, begun.get(key, {}), self._report, self._load, limit)
            for port, spread in enumerate(parts):
                if bucket in spread:
                    operator.process(port, spread[bucket])
            yielded.append(operator.advance(progress))
            self.state[key] = store_state(operator, self._writer)
            if node.identity in self._looked_at:
                self.runs[key] = runs_of(operator)
        return concat(plan.schema, yielded)

    def _load(self, ref: RunRef) -> pa.RecordBatch:
        return decode_rows(self._reader.read(ref.part))

    def _spread(self, node: Node, edge: Edge, batch: Batch) -> Mapping[int, Batch]:
        """What each bucket of an operator gets of one input, in the form in which it reads it."""
        parts = {0: batch}
        if edge.exchange is None:
            parts = dict(self._where_it_is(self._graph.nodes[edge.producer], batch))
        return arrived(self._graph, node, edge, parts, self._buckets, self._report)

    def _where_it_is(self, producer: Node, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """The elements of a node in the buckets in which it yields them."""
        columns = min(producer.spread_by, default=())
        keys = [normalise(batch.payload.column(place)) for place in columns]
        return parts_by_bucket(batch, hash_rows(keys, len(batch)), self._buckets)
