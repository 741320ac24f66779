"""What the nodes of a graph are expected to yield and to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.algebra.nodes import Relation, Source
from headrace.lowering.graph import Graph
from headrace.optimizer.cost.expected import Expectation, expected
from headrace.optimizer.cost.flow import Sample, flow_of


def selectivities(graph: Graph, found: Sequence[Expectation]) -> dict[int, float]:
    """How many rows each node is expected to yield for each that it takes, of those that take any.

    Args:
        graph: the query graph.
        found: what is expected of its nodes.
    """
    taken = {node.number: sum(found[edge.producer].flow.rate for edge in node.inputs) for node in graph.nodes}
    return {number: found[number].flow.rate / rate for number, rate in taken.items() if rate}


def expectations(
    graph: Graph, samples: Mapping[str, Sample], sizes: Mapping[str, int], elapsed: float
) -> tuple[Expectation, ...]:
    """What is expected of every node.

    Args:
        graph: the query graph.
        samples: per stream or relation some of its rows, with at least the columns that the graph reads.
        sizes: per relation how many rows it has, which are taken to be valid all the time.
        elapsed: after so long (instants): what is kept for ever is as large as it is then.
    """
    found: list[Expectation] = []
    for node in graph.nodes:
        if isinstance(node.plan, Source | Relation):
            sample = samples[node.plan.name]
            read = sample.rows.select(list(node.plan.schema.names))
            flow = flow_of(replace(sample, rows=read))
            if isinstance(node.plan, Relation):
                lifetime = 1.0 if node.plan.is_chronon else elapsed
                flow = replace(
                    flow,
                    rate=sizes[node.plan.name] / elapsed,
                    lifetime=lifetime,
                    is_open=not node.plan.is_chronon,
                )
            found.append(Expectation(flow))
        else:
            inputs = [found[edge.producer].flow for edge in node.inputs]
            found.append(expected(node.plan, inputs, elapsed))
    return tuple(found)


def total(graph: Graph, found: Sequence[Expectation], elapsed: float) -> float:
    """The rows that the operators are expected to take and to yield, all together, and to keep at an instant.

    Args:
        graph: the query graph.
        found: what is expected of every node.
        elapsed: for how long (instants).
    """
    everything = 0.0
    for node, expectation in zip(graph.nodes, found, strict=True):
        if node.inputs:
            rates = [expectation.flow.rate, *(found[edge.producer].flow.rate for edge in node.inputs)]
            everything += expectation.state + elapsed * sum(rates)
    return everything
