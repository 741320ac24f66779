"""Which operators of a query speak up to its horizon: those that otherwise wait for their heartbeat."""

from __future__ import annotations

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Early, Plan, inputs_of, with_inputs
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
            said = Early(same, horizon)
            known[id(part)] = said if said.corrects else same
        return known[id(part)]

    found = spoken(expand(plan))
    return found if isinstance(found, Early) else Early(found, horizon)


def horizon_of(plan: Plan) -> Horizon | None:
    """The horizon of a query's plan; None if it speaks up to its heartbeat."""
    return plan.horizon if isinstance(plan, Early) else None
