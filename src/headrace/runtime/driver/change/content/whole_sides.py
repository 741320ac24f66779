"""Sides of joins that both plans of an exchange read whole: the new plan goes on with what the old one keeps.

What a join keeps of a side is the same for every join by the same keys, whatever comes from the other side,
but for what the other side's heartbeat has passed. All that comes from the new plan's other sides lies behind
that, since it is clipped. The runs stay where they are, whoever shares them.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.nodes import Join, Plan, inputs_of
from headrace.algebra.properties import names_read, walk
from headrace.errors import PlanError
from headrace.lowering.graph import Graph
from headrace.lowering.identity import identities
from headrace.optimizer.migration import Migration, box_of, takeover, takeover_of, whole_sides
from headrace.runtime.driver.change.content.relation_sides import AREAS
from headrace.runtime.driver.state import Holding
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import INFINITY


@dataclass(frozen=True)
class _Whole:
    """A side that is read whole.

    Attributes:
        join: the identity of its join.
        port: which side.
        key: what has to be equal for two sides to keep the same.
        other: the number of the node that yields the other side.
        reads: what the side is made of.
    """

    join: str
    port: int
    key: tuple[object, ...]
    other: int
    reads: tuple[str, ...]


def takeover_with_sides(holding: Holding, name: str, old: Plan, other: Migration | None = None) -> int:
    """The first instant at which a new plan can take over, with what is kept of sides that are read whole.

    Args:
        holding: the queries and their state.
        name: whose plan is exchanged.
        old: what it is carried out as.
        other: the exchange for a plan that means something else, at any instant; None for one with the same
            content.

    Raises:
        PlanError: there is none, and why.
    """
    latest = {point: seen.time.latest for point, seen in holding.points.items()}
    at = takeover(old, latest) if other is None else takeover_of(other, latest)
    box = box_of(old) if other is None else other.boxes[0]
    graph = holding.queries.graph
    heartbeats = holding.heartbeats(graph)
    for side in _sides(holding, name, old, box, graph):
        heartbeat = heartbeats[side.other]
        if heartbeat == INFINITY:
            raise PlanError(
                f"all that is joined with {_named(side)} has ended, so that nothing is left to do"
            )
        at = max(at, heartbeat)
    return at


def begun_sides(holding: Holding, name: str, migration: Migration, both: Graph) -> dict[StateKey, Manifest]:
    """What the joins of the new plan begin with.

    Args:
        holding: the queries before the exchange, and their state.
        name: whose plan is exchanged.
        migration: the exchange.
        both: the graph while both plans run.

    Raises:
        PlanError: the old plan does not keep what is needed, or keeps it by other keys.
    """
    graph = holding.queries.graph
    known = {side.key: side for side in _sides(holding, name, migration.old, migration.boxes[0], graph)}
    found: dict[StateKey, Manifest] = {}
    for side in _sides(holding, name, migration.plan, migration.parts[1], both):
        older = known.get(side.key)
        if older is None:
            raise PlanError(
                f"rows of {_named(side)} may have no end, and no join that runs keeps them by the keys that "
                "the new plan would join them by",
                hint="drop the query, and create it anew",
            )
        for bucket in range(holding.buckets):
            manifest = holding.state.get((older.join, bucket), {})
            found[side.join, bucket] = {AREAS[side.port]: manifest.get(AREAS[older.port], ())}
    return found


def _sides(holding: Holding, name: str, plan: Plan, box: Plan, graph: Graph) -> list[_Whole]:
    """The sides that are read whole by the joins of a box of a plan, which is in a graph."""
    names = identities(plan, holding.queries.state_start_of(name), holding.queries.merges)
    nodes = {node.identity: node for node in graph.nodes}
    whole = whole_sides(box)
    found = []
    for join in walk(box):
        if isinstance(join, Join) and id(join) in whole:
            port, node = whole[id(join)], nodes[names[id(join)]]
            edge, other = node.inputs[port], node.inputs[1 - port]
            keys = tuple(pair[port] for pair in join.equalities)
            # By its keys a row is in one bucket; without any it is in some bucket, or in all.
            key = (graph.nodes[edge.producer].identity, keys or port)
            reads = names_read(inputs_of(join)[port])
            found.append(_Whole(node.identity, port, key, other.producer, reads))
    return found


def _named(side: _Whole) -> str:
    return " and ".join(side.reads)
