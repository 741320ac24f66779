"""Which operators of a query wait for others, by what it says of HEARTBEATS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from headrace.algebra.nodes import Join, Plan
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.engine.planning.samples import looked_at
from headrace.engine.shown.status import Status
from headrace.language.statements.statements import Heartbeats
from headrace.lowering.costs import selectivities
from headrace.lowering.early import strong
from headrace.lowering.graph import Graph
from headrace.lowering.holds import holds_of
from headrace.lowering.identity import identity
from headrace.lowering.lower import Holds, lower
from headrace.lowering.memory import remembering_all
from headrace.lowering.outer_joins import expand

_MULTIPLIES: Final = 2.0
"""What a join yields for each row that it takes, where nobody knows."""


def identity_of(plan: Plan, heartbeats: Heartbeats) -> str:
    """What a durable store knows a query by, at whatever level of consistency it is.

    The state of its operators depends on whether they wait.
    """
    known = identity(expand(remembering_all(strong(plan))))
    return known if heartbeats is Heartbeats.OPERATOR else f"{known} {heartbeats.value}"


def earlier_identity_of(plan: Plan) -> str | None:
    """What an earlier Headrace knew a query by that remembers its streams for less than they allow.

    It was another one for each length. None for other queries.
    """
    found = strong(plan)
    return None if remembering_all(found) is found else identity(expand(found))


def chosen_holds(
    defined: Definitions, plan: Plan, heartbeats: Heartbeats, status: Callable[[], Status | None]
) -> Holds:
    """Which operators of a query wait for others.

    What operators yield is what those that do the same have counted, else what is expected from samples; and
    of a join of which neither is known, that it multiplies rows.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
        heartbeats: what the query says of them.
        status: gives that of the run that goes on or was the last; None before the first.
    """
    graph = lower({RESULT: plan})
    counted = cache(lambda: _counted(status()))
    expected = cache(lambda: _expected(defined, graph))

    def selectivity(number: int) -> float:
        node = graph.nodes[number]
        if node.shape in counted():
            return counted()[node.shape]
        return expected().get(number, _MULTIPLIES if isinstance(node.plan, Join) else 1.0)

    return holds_of(graph, heartbeats, selectivity)


def _expected(defined: Definitions, graph: Graph) -> Mapping[int, float]:
    """What operators are expected to yield for each row that they take; of none where nothing can be seen."""
    found = looked_at(defined, graph)
    return {} if found is None else selectivities(graph, found)


def _counted(status: Status | None) -> dict[str, float]:
    """What operators that run yield for each row that they take, by their shapes."""
    if status is None:
        return {}
    # Of several that do the same, one that does not wait counts, and else that which has taken the most rows.
    by_rows = sorted(status.operators, key=lambda operator: (not operator.waits_for, operator.rows_in))
    return {
        status.graph.nodes[operator.number].shape: operator.selectivity
        for operator in by_rows
        if operator.selectivity is not None
    }
