"""Relations that a query which is added need not read again: joins take over what others keep of them.

What a join keeps of a relation is the same for every join by the same keys, whatever comes from the other
side, and does not change once the relation is read. So a new join begins with the runs of an older one, and
its relation counts as read. The runs stay where they are, whoever shares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.algebra.nodes import Join, Plan, RefreshedRelation, Relation
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.node import Node
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import INFINITY

AREAS: Final = ("left", "right")
"""The names of a join's areas, by port."""


@dataclass(frozen=True)
class _Side:
    """The side of a join on which only relations are.

    Attributes:
        join: the join's node.
        port: the side.
        root: the node whose output the side keeps.
        key: what has to be equal for two sides to keep the same.
        heartbeat: of the other side (instant), which says what is forgotten.
    """

    join: Node
    port: int
    root: Node
    key: tuple[object, ...]
    heartbeat: int


def without_reading(
    queries: QuerySet, before: Holding, epoch: int
) -> tuple[QuerySet, dict[StateKey, Manifest]]:
    """Let new joins take over what older ones keep of relations that are read.

    Args:
        queries: those from a change of the plan on.
        before: those before it, with what is there of them.
        epoch: that of the change, at which new queries start.

    Returns:
        The queries, and the state with which operators begin.
    """
    new, old = queries.graph, before.queries.graph
    if not any(isinstance(node.plan, Relation) and node.start == epoch for node in new.nodes):
        return queries, {}
    known: dict[tuple[object, ...], list[_Side]] = {}
    ends = before.heartbeats(old)
    for side in _sides(old, ends):
        if ends[side.root.number] == INFINITY:
            known.setdefault(side.key, []).append(side)
    heartbeats = before.heartbeats(new)
    found: dict[tuple[int, int], tuple[_Side, _Side]] = {}
    for side in _sides(new, heartbeats):
        # What the other side's heartbeat has passed is forgotten.
        older = next((one for one in known.get(side.key, ()) if one.heartbeat <= side.heartbeat), None)
        if older is not None and side.join.start == side.root.start == epoch:
            found[side.join.number, side.port] = side, older
    _leave_whole(new, found, epoch)
    merges = {(own.root.shape, epoch): older.root.start for own, older in found.values()}
    begun: dict[StateKey, Manifest] = {}
    for own, older in found.values():
        for bucket in range(before.buckets):
            runs = before.state.get((older.join.identity, bucket), {}).get(AREAS[older.port], ())
            begun[own.join.identity, bucket] = {AREAS[own.port]: runs}
    return queries.merged([Merge(shape, start, into) for (shape, start), into in merges.items()]), begun


def _sides(graph: Graph, heartbeats: tuple[int, ...]) -> Iterator[_Side]:
    """The sides of joins on which only relations are, where there is more on the other one."""
    alone = _of_relations(graph)
    for node in graph.nodes:
        if isinstance(node.plan, Join):
            for port, edge in enumerate(node.inputs):
                other = node.inputs[1 - port].producer
                if alone[edge.producer] and not alone[other]:
                    root = graph.nodes[edge.producer]
                    keys = tuple(pair[port] for pair in node.plan.equalities)
                    # By its keys a row is in one bucket, whether it travels there or is there already.
                    place = None if keys else (edge.exchange, root.spread_by)
                    yield _Side(node, port, root, (root.shape, keys, place), heartbeats[other])


def _of_relations(graph: Graph) -> list[bool]:
    """For each node whether all that is below it are relations."""
    found: list[bool] = []
    for node in graph.nodes:
        below = [found[edge.producer] for edge in node.inputs]
        found.append(all(below) if below else _is_settled(node.plan))
    return found


def _is_settled(plan: Plan) -> bool:
    """Whether a leaf is a relation that does not change once it is read."""
    return isinstance(plan, Relation) and not isinstance(plan, RefreshedRelation)


def _leave_whole(graph: Graph, found: dict[tuple[int, int], tuple[_Side, _Side]], epoch: int) -> None:
    """Leave out the sides over relations that are read all the same, since others need their rows."""
    alone = _of_relations(graph)
    leaves = {
        node.number: frozenset(
            leaf
            for leaf in graph.below(node.number)
            if isinstance(graph.nodes[leaf].plan, Relation) and graph.nodes[leaf].start == epoch
        )
        for node in graph.nodes
        if alone[node.number]
    }
    read = frozenset[int]().union(*(leaves[number] for number in graph.result_nodes if alone[number]))
    needed = {
        (node.number, port): leaves[edge.producer]
        for node in graph.nodes
        if not alone[node.number]
        for port, edge in enumerate(node.inputs)
        if alone[edge.producer]
    }
    while True:
        more = {place for place, below in needed.items() if place not in found or below & read}
        after = read.union(*(needed[place] for place in more))
        for place in more & found.keys():
            del found[place]
        if after == read:
            return
        read = after
