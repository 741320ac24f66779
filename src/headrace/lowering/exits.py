"""Where the rows of a stream leave level 0, and which queries can get some without others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.lowering.graph import Graph


@dataclass(frozen=True)
class Exits:
    """Some of the ways out of level 0.

    Attributes:
        channels: the numbers of the exchanges on them.
        readers: the nodes of further levels to which they lead.
        results: the nodes of level 0 that are results.
        nodes: the nodes of level 0 on them.
        reached: all nodes of level 0 that the stream's rows reach.
    """

    channels: frozenset[int]
    readers: frozenset[int]
    results: frozenset[int]
    nodes: frozenset[int]
    reached: frozenset[int]


@dataclass(frozen=True)
class _Exit:
    """One way out of level 0.

    Attributes:
        node: the node of level 0 where it begins.
        reader: the node of a further level that it leads to; None where what leaves is a result.
        users: the queries that get what leaves there.
    """

    node: int
    reader: int | None
    users: frozenset[str]


def exits_for(graph: Graph, stream: str, queries: frozenset[str]) -> Exits:
    """The ways on which a stream's rows reach some queries and no others.

    Args:
        graph: the query graph.
        stream: the stream.
        queries: the queries.
    """
    reached = _reached(graph, stream)
    found = [one for one in _exits(graph, reached) if one.users <= queries]
    readers = frozenset(one.reader for one in found if one.reader is not None)
    used = {
        (edge.producer, edge.exchange)
        for reader in readers
        for edge in graph.nodes[reader].inputs
        if edge.producer in reached
    }
    leading = {one.node for one in found}
    leading |= {panes.node for panes in graph.panes if not used.isdisjoint(panes.members)}
    for node in reversed(graph.by_level[0]):
        if node.number in leading:
            leading.update(edge.producer for edge in node.inputs)
    return Exits(
        frozenset(number for number, channel in enumerate(graph.channels) if channel in used),
        readers,
        frozenset(one.node for one in found if one.reader is None),
        frozenset(leading),
        reached,
    )


def separable(graph: Graph, stream: str, wanted: frozenset[str]) -> frozenset[str]:
    """The largest part of some queries to which rows of a stream can be given without any other getting them.

    A query that shares one of its ways with another gets a row together with it, or not at all.

    Args:
        graph: the query graph.
        stream: the stream.
        wanted: the queries.
    """
    exits = list(_exits(graph, _reached(graph, stream)))
    found = wanted
    while shared := found & {query for one in exits if not one.users <= found for query in one.users}:
        found -= shared
    return found


def _reached(graph: Graph, stream: str) -> frozenset[int]:
    """The nodes of level 0 that rows of a stream reach."""
    found: set[int] = set()
    for node in graph.by_level[0]:
        if node.reads == stream or any(edge.producer in found for edge in node.inputs):
            found.add(node.number)
    return frozenset(found)


def _exits(graph: Graph, reached: frozenset[int]) -> Iterator[_Exit]:
    """The ways on which rows leave level 0."""
    for node in graph.nodes:
        for edge in node.inputs:
            if node.level and edge.producer in reached:
                yield _Exit(edge.producer, node.number, frozenset(graph.users[node.number]))
    results: dict[int, set[str]] = {}
    for query, output in graph.outputs:
        results.setdefault(graph.node_of(output), set()).add(query)
    for number, users in results.items():
        if number in reached:
            yield _Exit(number, None, frozenset(users))
