"""What operators that run would say beyond their heartbeats now, for queries that are added."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from headrace.algebra.nodes import Early, Stateful
from headrace.algebra.properties import is_stateful
from headrace.elements import Batch, concat, decode_rows
from headrace.errors import PlanError
from headrace.lowering.graph import Graph
from headrace.lowering.identity import shape
from headrace.lowering.node import Node
from headrace.operators.contract import OperatorProgress
from headrace.operators.early import unreported
from headrace.operators.state.runs import RunRef
from headrace.runtime.driver.state import Holding
from headrace.runtime.store.segments import SegmentReader, Store
from headrace.runtime.tasks.level import loaded_operator
from headrace.runtime.tasks.messages import Manifest


def beyond(before: Holding, after: Graph, query: str, plan: Early) -> Batch:
    """What an operator that runs has to say beyond its heartbeat.

    Args:
        before: the queries that run, and their state.
        after: the graph with the new query.
        query: the new query.
        plan: a part of it.

    Raises:
        PlanError: the operator is new.
    """
    part = plan.input
    assert is_stateful(part)
    known = {node.identity for node in before.queries.graph.nodes}
    below = after.below(after.node_of(dict(after.outputs)[query]))
    node = next(after.nodes[number] for number in sorted(below) if after.nodes[number].shape == shape(part))
    if node.identity not in known:
        raise PlanError("an operator that is new would have to say what is not final yet")
    horizons = after.reaches(*before.reached(after))[plan.horizon]
    heartbeats = before.heartbeats(after)
    producers = [edge.producer for edge in node.inputs]
    progress = OperatorProgress(
        tuple(heartbeats[producer] for producer in producers),
        tuple(horizons[producer] for producer in producers),
    )
    manifests = (before.state.get((node.identity, bucket), {}) for bucket in range(before.buckets))
    return said_beyond(node, part, manifests, progress, before.store)


def said_beyond(
    node: Node, part: Stateful, manifests: Iterable[Manifest], progress: OperatorProgress, store: Store
) -> Batch:
    """What an operator has to say beyond its heartbeat.

    Args:
        node: the operator's node.
        part: what it carries out.
        manifests: its state, by buckets.
        progress: the heartbeats of its inputs, and their horizons.
        store: where the state is.
    """
    reader = SegmentReader(store)

    def load(ref: RunRef) -> pa.RecordBatch:
        return decode_rows(reader.read(ref.part))

    operators = (loaded_operator(node, part, manifest, unreported, load) for manifest in manifests)
    return concat(part.schema, [operator.advance(progress) for operator in operators])
