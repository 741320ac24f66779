"""Which operators of a query are to wait for others besides their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from headrace.algebra.nodes import Source
from headrace.algebra.properties import is_stateful
from headrace.heartbeats.labels import LabelledOperator, Waits, common_waits, memory_aware_waits
from headrace.language.statements.statements import Heartbeats
from headrace.lowering.graph import Graph
from headrace.lowering.lower import NO_HOLDS, Holds


def holds_of(graph: Graph, heartbeats: Heartbeats, selectivity: Callable[[int], float]) -> Holds:
    """Which operators of a query wait, and for which.

    What keeps no state cannot wait. To wait for others that read the same streams would be of no use.

    Args:
        graph: of the query alone.
        heartbeats: how far its operators run.
        selectivity: how many rows an operator yields for each that it takes, by its number. Only asked where
            it matters.
    """
    match heartbeats:
        case Heartbeats.OPERATOR:
            return NO_HOLDS
        case Heartbeats.COMMON:
            waits = common_waits(_labelled(graph, lambda _: 1.0))
        case Heartbeats.MEMORY:
            waits = memory_aware_waits(_labelled(graph, selectivity))
        case _:
            assert_never(heartbeats)
    return dict(_held(graph, waits))


def _labelled(graph: Graph, selectivity: Callable[[int], float]) -> dict[int, LabelledOperator[int]]:
    outputs = {graph.node_of(output) for _, output in graph.outputs}
    return {
        node.number: LabelledOperator(
            tuple(edge.producer for edge in node.inputs),
            frozenset([node.plan.name]) if isinstance(node.plan, Source) else frozenset(),
            selectivity(node.number) if node.inputs and node.number not in outputs else 0.0,
        )
        for node in graph.nodes
    }


def _held(graph: Graph, waits: Waits[int]) -> dict[str, tuple[str, ...]]:
    found = {}
    for node in graph.nodes:
        own = set(graph.streams_of([node.number]))
        others = [other for other in sorted(waits[node.number]) if not own >= {*graph.streams_of([other])}]
        if others and is_stateful(node.plan):
            found[node.shape] = tuple(graph.nodes[other].shape for other in others)
    return found
