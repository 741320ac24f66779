"""Which operators of a query speak up to its horizon: those that otherwise wait for their heartbeat."""

from __future__ import annotations

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Early, Join, Plan, inputs_of, with_inputs
from headrace.algebra.properties import is_stateful
from headrace.lowering.outer_joins import expand


def early(plan: Plan, horizon: Horizon) -> Plan:
    """The plan with the same content at every instant, said up to a horizon.

    What keeps no state, and a join, never waits: it passes corrections on.

    Args:
        plan: a query's, optimized.
        horizon: up to where it speaks.
    """
    known: dict[int, Plan] = {}

    def spoken(part: Plan) -> Plan:
        if id(part) not in known:
            same = with_inputs(part, tuple(map(spoken, inputs_of(part))))
            waits = is_stateful(same) and not isinstance(same, Join)
            known[id(part)] = Early(same, horizon) if waits else same
        return known[id(part)]

    return spoken(expand(plan))


def horizon_of(plan: Plan) -> Horizon | None:
    """The horizon of a query's plan; None if it speaks up to its heartbeat."""
    ahead, seen = [plan], set[int]()
    while ahead:
        part = ahead.pop()
        if isinstance(part, Early):
            return part.horizon
        if id(part) not in seen:
            seen.add(id(part))
            ahead.extend(inputs_of(part))
    return None
