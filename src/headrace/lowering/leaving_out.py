"""Plans without nodes of a kind that change no content, only what is said of it when."""

from __future__ import annotations

from headrace.algebra.nodes import Early, Plan, Remember, inputs_of, with_inputs


def without_nodes(plan: Plan, kind: type[Early] | type[Remember]) -> Plan:
    """The plan with the inputs of all nodes of a kind in their places; what is used twice stays one object.

    Args:
        plan: a query's.
        kind: the nodes to leave out.
    """
    known: dict[int, Plan] = {}

    def without(part: Plan) -> Plan:
        if id(part) not in known:
            below = tuple(map(without, inputs_of(part)))
            known[id(part)] = below[0] if isinstance(part, kind) else with_inputs(part, below)
        return known[id(part)]

    return without(plan)
