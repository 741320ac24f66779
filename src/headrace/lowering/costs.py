"""What the nodes of a graph are expected to yield and to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import Plan, Relation, Source, TimeWindow
from headrace.algebra.properties import is_stateful
from headrace.dataclass_parts import parts_of
from headrace.expressions.user import UserAggregate, UserFunction
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.optimizer.cost.expected import Expectation, expected
from headrace.optimizer.cost.flow import FlowCounts, FlowSample
from headrace.optimizer.cost.machine import MACHINE
from headrace.optimizer.cost.work import (
    EPOCH_ROWS,
    NodeCounts,
    Work,
    epochs_of,
    reading,
    sending,
    storing,
    work_of,
)
from headrace.schema import Field
from headrace.time import INFINITY

_TIMES: Final = 24
"""Bytes of a row of state beside its columns: its interval and how often it is there."""
_VALUE: Final = 8
_TEXT: Final = 24
"""Bytes of a column, as far as that is known before there are rows: of a number, and of a text."""


def row_bytes(graph: Graph, node: Node) -> float:
    """About how many bytes a node keeps for a row, as far as that is known before there are any.

    Args:
        graph: the query graph.
        node: one with inputs, the widest of which counts.
    """
    schemas = (graph.nodes[edge.producer].plan.schema for edge in node.inputs)
    return max(_TIMES + sum(map(_width, schema.fields)) for schema in schemas)


def yielded_bytes(node: Node) -> float:
    """About how many bytes a row takes that a node yields, as far as that is known before there are any."""
    return _TIMES + sum(map(_width, node.plan.schema.fields))


def _width(field: Field) -> int:
    return _VALUE if pa.types.is_primitive(field.type) else _TEXT


def calls_user(part: object, *, aggregates: bool = False) -> bool:
    """Whether an expression in a plan, or in a part of one, is computed by a function of the user's.

    Args:
        part: the plan or the part.
        aggregates: whether aggregates of the user's count as well.
    """
    if isinstance(part, UserFunction) or (aggregates and isinstance(part, UserAggregate)):
        return True
    return any(calls_user(below, aggregates=aggregates) for below in parts_of(part))


_FULL: Final = 2.0
"""What is kept of windows is expected for a time so many times as long as the longest."""


def full_after(plans: Iterable[Plan]) -> float:
    """After how long all windows of some nodes are full, with time to spare (instants)."""
    sizes = (plan.size.length for plan in plans if isinstance(plan, TimeWindow))
    return _FULL * max((size for size in sizes if size != INFINITY), default=1)


def selectivities(graph: Graph, found: Sequence[Expectation]) -> dict[int, float]:
    """How many rows each node is expected to yield for each that it takes, of those that take any.

    Args:
        graph: the query graph.
        found: what is expected of its nodes.
    """
    taken = {node.number: sum(found[edge.producer].flow.rate for edge in node.inputs) for node in graph.nodes}
    return {number: found[number].flow.rate / rate for number, rate in taken.items() if rate}


def expectations(
    graph: Graph,
    samples: Mapping[str, FlowSample | FlowCounts],
    sizes: Mapping[str, int],
    elapsed: float,
) -> tuple[Expectation, ...]:
    """What is expected of every node.

    Args:
        graph: the query graph.
        samples: per stream or relation some of its rows, with at least the columns that the graph reads, or
            what was counted of them.
        sizes: per relation how many rows it has, which are taken to be valid all the time.
        elapsed: after so long (instants): what is kept for ever is as large as it is then.
    """
    found: list[Expectation] = []
    for node in graph.nodes:
        if isinstance(node.plan, Source | Relation):
            flow = samples[node.plan.name].flow(node.plan.schema.names)
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


def sent(graph: Graph, node: Node, rows: Mapping[int, float], epochs: float) -> Iterator[Work]:
    """What it takes to bring a node its input from other tasks.

    Args:
        graph: the query graph.
        node: the node.
        rows: how many rows each node yields.
        epochs: in how many epochs.
    """
    for edge in node.inputs:
        if edge.exchange is not None:
            schema = graph.nodes[edge.producer].plan.schema
            yield from sending(schema, rows[edge.producer], edge.exchange.reduced_for is not None, epochs)


def stored(node: Node, counts: NodeCounts) -> Iterator[Work]:
    """What it takes to load and store the state of a node."""
    if is_stateful(node.plan):
        yield storing(counts)


def seconds(
    graph: Graph, found: Sequence[Expectation], elapsed: float, epoch_rows: int = EPOCH_ROWS
) -> tuple[float, ...]:
    """How much processor time each node is expected to take, its input brought and its state kept.

    Args:
        graph: the query graph.
        found: what is expected of every node.
        elapsed: for how long (instants).
        epoch_rows: so many rows are read in an epoch.
    """
    rows = {node.number: found[node.number].flow.rate * elapsed for node in graph.nodes}
    epochs = epochs_of(sum(rows[node.number] for node in graph.nodes if not node.inputs), epoch_rows)
    taking = []
    for node in graph.nodes:
        taken = sum(rows[edge.producer] for edge in node.inputs)
        kept = _mean_state(node, found, elapsed)
        counts = NodeCounts(taken, rows[node.number], kept, epochs)
        works = reading(node.plan.schema, counts) if not node.inputs else work_of(node.plan, counts)
        taking.append(MACHINE.seconds((*works, *sent(graph, node, rows, epochs), *stored(node, counts))))
    return tuple(taking)


def unit_seconds(graph: Graph, node: Node) -> tuple[float, float, float, float]:
    """The processor time that a node is expected to take for a row that it takes, for one that it yields, for
    one that it keeps through an epoch, and for an epoch (seconds).

    Args:
        graph: the query graph.
        node: the node.
    """

    def at(taken: float, given: float, kept: float, epochs: float) -> float:
        counts = NodeCounts(taken, given, kept, epochs)
        if not node.inputs:
            return MACHINE.seconds(reading(node.plan.schema, counts))
        rows = {edge.producer: taken / len(node.inputs) for edge in node.inputs}
        works = (*work_of(node.plan, counts), *sent(graph, node, rows, epochs), *stored(node, counts))
        return MACHINE.seconds(works)

    epoch = at(0, 0, 0, 1)
    return at(1, 0, 0, 0), at(0, 1, 0, 0), at(0, 0, 1, 1) - epoch, epoch


def _mean_state(node: Node, found: Sequence[Expectation], elapsed: float) -> float:
    """The rows that a node keeps on average: ever more until as much time has passed as rows are valid."""
    flows = [found[number].flow for number in (node.number, *(edge.producer for edge in node.inputs))]
    growing = min(elapsed, max(flow.lifetime for flow in flows))
    return found[node.number].state * (1 - growing / (2 * elapsed))
