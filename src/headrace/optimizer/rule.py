"""What a rewrite rule is, and how one that looks at a single node is applied to a whole plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.algebra.nodes import Plan, inputs_of, with_inputs

Rewrite = Callable[[Plan], Plan]
"""A plan to an equivalent one of the same schema; the same object where nothing changes."""


@dataclass(frozen=True)
class Rule:
    """A named rewrite of whole plans."""

    name: str
    rewrite: Rewrite


def everywhere(rewrite_node: Rewrite) -> Rule:
    """The rule that applies the rewrite of one node, and is called like it, to all nodes, bottom up."""

    def rewrite(plan: Plan) -> Plan:
        known: dict[int, Plan] = {}

        def below(part: Plan) -> Plan:
            # What is used twice is rewritten once, and stays one object.
            if id(part) not in known:
                known[id(part)] = rewrite_node(with_inputs(part, tuple(map(below, inputs_of(part)))))
            return known[id(part)]

        return below(plan)

    return Rule(rewrite_node.__name__, rewrite)
