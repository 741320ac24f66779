"""Aggregates over the same groups are sent what they need by one exchange.

What travels to an aggregate is its input in accumulated form, added up by group and interval
(`headrace.operators.aggregates.accumulation`). Aggregates over one input with the same keys differ only in
which sums they need, so one form that has all of them travels, and each takes its own:

    SELECT auction, COUNT(*) ... GROUP BY auction        COUNT(*), MAX(price) by auction
    SELECT auction, MAX(price) ... GROUP BY auction

The operators stay apart, and so does their state: a query that is added or dropped changes what travels, and
nothing that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Aggregate
from headrace.expressions.tree import AggregateCall, Expression, expressions_of
from headrace.lowering.node import Edge, Exchange, Node, Spread
from headrace.operators.aggregates.accumulation import Accumulation


def share_exchanges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, with one exchange for aggregates that can share it."""
    bundles: dict[tuple[object, ...], list[_Bundle]] = {}
    for node in nodes:
        if isinstance(node.plan, Aggregate) and node.reduced_for is not None and len(node.inputs) == 1:
            alike = bundles.setdefault((node.inputs[0].producer, _keys(node.plan)), [])
            if not any(bundle.takes(node) for bundle in alike):
                alike.append(_Bundle(node, node.plan))
    shared = {
        number: bundle.exchange
        for alike in bundles.values()
        for bundle in alike
        if len(bundle.members) > 1
        for number in bundle.members
    }
    return tuple(
        replace(node, inputs=(Edge(node.inputs[0].producer, shared[node.number]),))
        if node.number in shared
        else node
        for node in nodes
    )


class _Bundle:
    """Aggregates whose input travels in one form.

    Args:
        first: the first of them.
        plan: its plan.

    Attributes:
        members: their numbers.
    """

    def __init__(self, first: Node, plan: Aggregate) -> None:
        self.members = [first.number]
        self._plan = plan

    @property
    def exchange(self) -> Exchange:
        """What brings all of them their input."""
        return Exchange(Spread.KEY, _keys(self._plan), self._plan)

    def takes(self, node: Node) -> bool:
        """Take in another aggregate, if its input can travel with that of the others."""
        assert isinstance(node.plan, Aggregate)
        union = union_of(self._plan, node.plan)
        if union is None:
            return False
        self._plan = union
        self.members.append(node.number)
        return True


def union_of(one: Aggregate, other: Aggregate) -> Aggregate | None:
    """An aggregate whose input in accumulated form holds that of both; None if that would not pay.

    A row for which an expression fails is left out of one aggregate and not of the other. And where each
    needs other values, not sums, the rows of both would travel instead of one per group.
    """
    calls = tuple(dict.fromkeys(call for plan in (one, other) for _, call in plan.aggregates))
    if calls != _calls(one) and any(map(_may_fail, calls)):
        return None
    keys = tuple((f"k{place}", key) for place, (_, key) in enumerate(one.keys))
    named = tuple((f"a{place}", call) for place, call in enumerate(calls))
    union = Aggregate(one.input, keys, named)
    form = Accumulation.of(union)
    one_order = form.extremes is not None and len(form.extremes.ends) == 1
    return union if not form.values or one_order else None


def _keys(plan: Aggregate) -> tuple[Expression, ...]:
    return tuple(key for _, key in plan.keys)


def _calls(plan: Aggregate) -> tuple[AggregateCall, ...]:
    return tuple(call for _, call in plan.aggregates)


def _may_fail(call: AggregateCall) -> bool:
    return any(map(can_fail, expressions_of(call)))
