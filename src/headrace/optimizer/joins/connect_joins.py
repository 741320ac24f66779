"""Never all pairs where a condition connects."""

from __future__ import annotations

from headrace.algebra.nodes import Plan
from headrace.optimizer.joins.join_graph import JoinedPart, JoinGraph, crossings, join_graph, may_be_ordered


def connect_joins(plan: Plan) -> Plan:
    """Join each input with what it is connected to, where that makes fewer joins of all pairs.

    Before: `SELECT * FROM r, t, s WHERE r.a = s.a AND s.b = t.b`, which begins with all pairs of `r` and `t`
    After: `SELECT r.*, t.*, s.* FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b`

    Inner joins commute and associate at every instant (thesis, lemma 10.2). Otherwise inputs stay in the
    order of FROM. Conditions may fail on other pairs: there may be more or fewer dead letters.
    """
    if not may_be_ordered(plan) or not (before := crossings(plan)):
        return plan
    graph = join_graph(plan)
    if len(graph.inputs) < 3:
        return plan
    found = min((_joined(graph, first) for first in range(len(graph.inputs))), key=_crossings)
    return plan if _crossings(found) >= before else graph.planned(found.order, plan.names)


def _crossings(part: JoinedPart) -> int:
    return crossings(part.plan)


def _joined(graph: JoinGraph, first: int) -> JoinedPart:
    """From an input on always the first that is connected to those before it; else the first that is left."""
    joined = graph.part(first)
    left = [graph.part(place) for place in range(len(graph.inputs)) if place != first]
    while left:
        after = [graph.joined(joined, one) for one in left]
        place = next((place for place, one in enumerate(after) if one.is_connected), 0)
        joined = after[place]
        left.pop(place)
    return joined
