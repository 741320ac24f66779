"""Each row once before partners."""

from __future__ import annotations

from headrace.algebra.nodes import Distinct, Plan, column, project
from headrace.algebra.properties import has_one_row
from headrace.expressions.tree import columns_of
from headrace.optimizer.joins.join_graph import JoinGraph, is_joined, join_graph, mapped
from headrace.schema import DOUBLE


def distinct_before_join(plan: Plan) -> Plan:
    """Eliminate duplicates in the inputs of a join whose result has none either.

    Before: `SELECT DISTINCT a.seller, b.bidder FROM bid b JOIN auction a ON b.item = a.item`
    After: the same with `(SELECT DISTINCT bidder, item FROM bid) b` and `(SELECT DISTINCT seller, item FROM
    auction) a`

    What is joined of distinct rows is distinct if it has all their columns (thesis, rule 10.6); otherwise
    duplicates are eliminated once more afterwards. It pays where inputs have many duplicates.
    """
    if not isinstance(plan, Distinct) or not is_joined(plan.input):
        return plan
    graph = join_graph(plan.input)
    read = {index for condition in graph.conditions for index in columns_of(condition)} | {*graph.outputs}
    inputs: list[Plan] = []
    places: dict[int, int] = {}
    for place in range(len(graph.inputs)):
        part = graph.part(place)
        kept = [number for number in part.columns if number in read]
        start = sum(len(below.schema) for below in inputs)
        places |= {number: start + position for position, number in enumerate(kept)}
        inputs.append(_distinct(part.plan, [number - part.columns[0] for number in kept]))
    if not any(isinstance(below, Distinct) for below in inputs):
        return plan
    joined = JoinGraph(
        tuple(inputs),
        tuple(mapped(condition, places) for condition in graph.conditions),
        tuple(places[number] for number in graph.outputs),
        graph.order,
    ).planned(graph.order, plan.schema.names)
    whole = all(isinstance(below, Distinct) for below in inputs) and {*graph.outputs} == places.keys()
    return joined if whole else Distinct(joined)


def _distinct(plan: Plan, kept: list[int]) -> Plan:
    """Some columns of a plan without duplicates; with them where that costs for nothing."""
    narrow = project(plan, tuple((plan.schema[place].name, column(plan, place)) for place in kept))
    everything = frozenset(range(len(kept)))
    types = {field.type for field in narrow.schema}
    # 0 and -0 are the same to DISTINCT, and something else could tell them apart.
    is_done = not kept or DOUBLE in types or has_one_row(narrow, everything)
    return narrow if is_done else Distinct(narrow)
