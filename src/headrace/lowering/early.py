"""Which operators of a query speak up to its horizon: those that otherwise wait for their heartbeat."""

from __future__ import annotations

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Clip, Early, Plan, inputs_of, with_inputs
from headrace.lowering.constants import Chosen, constants_as_data
from headrace.lowering.leaving_out import without_nodes
from headrace.lowering.memory import remembering_all
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


def strong(plan: Plan) -> Plan:
    """The plan with the same content that says what is final alone; itself if it does already.

    Args:
        plan: a query's, optimized, at any level of consistency.
    """
    return without_nodes(plan, Early) if isinstance(plan, Early) else plan


def at_horizon(plan: Plan, horizon: Horizon | None) -> Plan:
    """The plan with the same content that speaks up to another horizon.

    Args:
        plan: a query's, optimized, at any level of consistency.
        horizon: up to where it speaks; None for its heartbeat.
    """
    return strong(plan) if horizon is None else early(strong(plan), horizon)


def said_from_on(carried: Plan, begin: int) -> Plan:
    """The plan that says nothing of instants below another one: what is final is not said again.

    Args:
        carried: what a query is carried out as, at any level of consistency.
        begin: that instant.
    """
    return at_horizon(Clip(strong(carried), begin=begin), horizon_of(carried))


def alone(plan: Plan) -> tuple[Plan, tuple[Chosen, ...]]:
    """What a query is carried out as where it shares nothing with others but equal plans.

    Args:
        plan: the query's, optimized, at any level of consistency.

    Returns:
        The plan, and the constants that it needs in its filters; see `constants_as_data`.
    """
    return constants_as_data(expand(plan))


def answers_alike(one: Plan, other: Plan) -> bool:
    """Whether two queries' plans differ at most in how far they speak, and in what they remember."""
    return one == other or expand(remembering_all(strong(one))) == expand(remembering_all(strong(other)))


def horizon_of(plan: Plan) -> Horizon | None:
    """The horizon of a query's plan; None if it speaks up to its heartbeat."""
    return plan.horizon if isinstance(plan, Early) else None
