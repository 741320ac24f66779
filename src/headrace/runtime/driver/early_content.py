"""What operators that run would say beyond their heartbeats now, for queries that are added."""

from __future__ import annotations

from headrace.algebra.nodes import Early
from headrace.algebra.properties import is_stateful
from headrace.elements import Batch, concat, decode_rows
from headrace.errors import PlanError
from headrace.lowering.graph import Graph
from headrace.lowering.lower import shape
from headrace.operators.contract import Progress
from headrace.operators.early import unreported
from headrace.runtime.driver.merging import Holding
from headrace.runtime.store.segments import SegmentReader
from headrace.runtime.tasks.level import loaded_operator


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
    progress = Progress(
        tuple(heartbeats[producer] for producer in producers),
        tuple(horizons[producer] for producer in producers),
    )
    reader = SegmentReader(before.store)
    found = []
    for bucket in range(before.buckets):
        manifest = before.state.get((node.identity, bucket), {})
        operator = loaded_operator(
            node, part, manifest, unreported, lambda ref: decode_rows(reader.read(ref.part))
        )
        found.append(operator.advance(progress))
    return concat(plan.schema, found)
