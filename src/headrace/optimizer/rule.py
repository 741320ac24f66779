"""What a rewrite rule is, and how one that looks at a single node is applied to a whole plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.algebra.nodes import Plan, inputs_of, with_inputs

Rewrite = Callable[[Plan], Plan]
"""A plan to an equivalent one of the same schema; the same object where nothing changes."""


@dataclass(frozen=True)
class Rule:
    """A named rewrite of whole plans.

    Attributes:
        name: what EXPLAIN calls it.
        rewrite: the rewrite.
        applies: whether it changes a plan of these nodes. Most rules change nothing of most plans, and to
            ask the nodes is much cheaper than to rewrite.
    """

    name: str
    rewrite: Rewrite
    applies: Callable[[Iterable[Plan]], bool]


def everywhere(rewrite_node: Rewrite) -> Rule:
    """The rule that applies the rewrite of one node, and is called like it, to all nodes, bottom up."""

    def applies(nodes: Iterable[Plan]) -> bool:
        return any(rewrite_node(node) is not node for node in nodes)

    def rewrite(plan: Plan) -> Plan:
        known: dict[int, Plan] = {}

        def below(part: Plan) -> Plan:
            # What is used twice is rewritten once, and stays one object.
            if id(part) not in known:
                known[id(part)] = rewrite_node(with_inputs(part, tuple(map(below, inputs_of(part)))))
            return known[id(part)]

        return below(plan)

    return Rule(rewrite_node.__name__, rewrite, applies)
