"""Joins in the order that was chosen for them."""

from __future__ import annotations

from collections.abc import Callable

from headrace.algebra.nodes import Plan, inputs_of, with_inputs
from headrace.optimizer.joins.join_graph import (
    JoinGraph,
    JoinOrder,
    Orders,
    inputs_named,
    is_joined,
    join_graph,
    may_be_ordered,
)

ChooseOrder = Callable[[JoinGraph], JoinOrder]
"""In which order to join, for joins of three inputs or more."""


def join_orders(plan: Plan, choose: ChooseOrder) -> Orders:
    """The orders that are chosen for the joins of a plan, by which `in_orders` makes it join."""
    orders: list[JoinOrder] = []

    def noted(graph: JoinGraph) -> JoinOrder:
        orders.append(choose(graph))
        return orders[-1]

    order_joins(plan, noted)
    return tuple(orders)


def in_orders(plan: Plan, orders: Orders) -> Plan:
    """The plan that joins in given orders; where there is none for a join, or of other inputs, it stays."""
    ahead = iter(orders)

    def given(graph: JoinGraph) -> JoinOrder:
        order = next(ahead, graph.order)
        fits = sorted(inputs_named(order)) == list(range(len(graph.inputs)))
        return order if fits else graph.order

    return order_joins(plan, given)


def order_joins(plan: Plan, choose: ChooseOrder) -> Plan:
    """Join in another order, where one is chosen.

    Before: `SELECT r.x FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b`
    After: `SELECT r.x FROM s JOIN t ON s.b = t.b JOIN r ON r.a = s.a`, if few rows of s have a partner in t

    Inner joins commute and associate at every instant (thesis, lemma 10.2). Conditions may fail on other
    pairs: there may be more or fewer dead letters. This is not one of the rules that look for what is always
    better, since it takes numbers to know which order is.

    Args:
        plan: what no other rule changes any more.
        choose: called for each join of three inputs or more, those further up first.
    """
    known: dict[int, Plan] = {}

    def below(part: Plan) -> Plan:
        if id(part) not in known:
            known[id(part)] = rewritten(part)
        return known[id(part)]

    def rewritten(part: Plan) -> Plan:
        if not may_be_ordered(part):
            return with_inputs(part, tuple(map(below, inputs_of(part))))
        graph = join_graph(part)
        if len(graph.inputs) > 2:
            order = choose(graph)
            if order != graph.order:
                part = graph.planned(order, part.names)
        return inside(part)

    def inside(part: Plan) -> Plan:
        """A part of joins upon each other, or one of their inputs."""
        return with_inputs(part, tuple(map(inside, inputs_of(part)))) if is_joined(part) else below(part)

    return below(plan)
