"""Queries that do without rows that are in time for their streams."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.algebra.memory import Memory
from headrace.algebra.nodes import Early, Plan, Remember, Source, inputs_of, with_inputs
from headrace.algebra.properties import walk
from headrace.lowering.leaving_out import without_nodes


def remembering(plan: Plan, memories: Iterable[Memory]) -> Plan:
    """The plan over streams that are remembered for less than they allow.

    Args:
        plan: a query's, optimized.
        memories: for how long streams are remembered, each at most once.
    """
    lengths = {memory.stream: memory for memory in memories}
    known: dict[int, Plan] = {}

    def remembered(part: Plan) -> Plan:
        # What is used twice stays one object.
        if id(part) not in known:
            if isinstance(part, Source) and part.name in lengths:
                _, length, unit, floor = lengths[part.name]
                known[id(part)] = Remember(part, length, unit, floor)
            else:
                known[id(part)] = with_inputs(part, tuple(map(remembered, inputs_of(part))))
        return known[id(part)]

    return remembered(plan) if lengths else plan


def remembering_all(plan: Plan) -> Plan:
    """The plan over the same streams, remembered for as long as they allow.

    Args:
        plan: a query's, optimized, at any level of consistency.
    """
    return without_nodes(plan, Remember) if any(isinstance(part, Remember) for part in walk(plan)) else plan


def memories_of(plan: Plan) -> dict[str, Memory]:
    """For how long a plan remembers its streams, by their names; without those of which it takes all rows."""
    found = (part.memory for part in walk(plan) if isinstance(part, Remember))
    return {memory.stream: memory for memory in found}


def is_strong(plan: Plan) -> bool:
    """Whether a plan takes all rows that are in time for its streams, and says only what is final."""
    return not isinstance(plan, Early) and not any(isinstance(part, Remember) for part in walk(plan))
