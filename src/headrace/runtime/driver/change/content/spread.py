"""What operators get of elements that this process computes, as if they came with an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.elements import Batch, concat
from headrace.lowering.graph import Graph
from headrace.lowering.node import Edge, Node, Spread
from headrace.operators.before_exchange import part_for, reduction_for
from headrace.operators.contract import Report
from headrace.runtime.tasks.channels import Channel

_NO_CHANNEL: Final = -1
"""The number of an exchange of which nothing is sent."""


def arrived(
    graph: Graph, node: Node, edge: Edge, parts: Mapping[int, Batch], buckets: int, report: Report
) -> Mapping[int, Batch]:
    """What each bucket of a node gets of one input, in the form in which the node reads it.

    Args:
        graph: with the node.
        node: whose input it is.
        edge: from where it comes.
        parts: the elements by the bucket that yields them; where an exchange follows any bucket will do.
        buckets: how many buckets state is spread over.
        report: receives the elements for which an expression fails.
    """
    exchange, reduced_for = edge.exchange, node.reduced_for
    if not parts:
        return {}
    if exchange is None:
        if reduced_for is None:
            return parts
        reduction = reduction_for(reduced_for)
        return {bucket: reduction.reduce(part, report) for bucket, part in parts.items()}
    producer = graph.nodes[edge.producer]
    channel = Channel(_NO_CHANNEL, producer, exchange)
    travelling = channel.prepare(concat(producer.plan.schema, [*parts.values()]), report)
    if exchange.spread is Spread.COPY:
        return dict.fromkeys(range(buckets), travelling)
    found = channel.by_bucket(travelling, buckets, report)
    if reduced_for is None:
        return dict(found)
    return {bucket: part_for(node.plan, reduced_for, part) for bucket, part in found}
