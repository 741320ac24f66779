"""Groups before partners."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Aggregate, Plan, column
from headrace.algebra.properties import has_one_row
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.tree import AggregateCall, columns_of, expressions_of, transform_call
from headrace.optimizer.joins.join_graph import JoinGraph, is_joined, join_graph, mapped
from headrace.schema import DOUBLE, unique_names

_OF_PARTS: Final = {"MIN": "MIN", "MAX": "MAX", "COUNT": "SUM"}
"""Aggregates that can be computed of parts, each with what puts the results of the parts together."""


def aggregate_before_join(plan: Plan) -> Plan:
    """Aggregate one input of a join before it is joined, and what is left of it afterwards.

    Before: `SELECT b.item, a.seller, MAX(b.price) FROM bid b JOIN auction a ON b.item = a.item GROUP BY 1, 2`
    After: the same with `(SELECT item, MAX(price) AS price FROM bid GROUP BY item) b`

    All rows of such a group have the same partners, since what they are joined by is a key of it (thesis,
    example 10.1). The aggregates read one input only, and are MIN, MAX and COUNT: a sum might overflow for a
    group without partners, and one of floating numbers is not the sum of its parts. It pays where a group's
    result changes less often than rows come. What fails for a row fails for a row without partners as well:
    there may be more dead letters.
    """
    if not isinstance(plan, Aggregate) or not is_joined(plan.input):
        return plan
    graph = join_graph(plan.input)
    calls = [transform_call(call, lambda part: mapped(part, graph.outputs)) for _, call in plan.aggregates]
    place = _only_input_read(graph, calls)
    if place is None or not all(map(_is_of_parts, calls)):
        return plan
    part = graph.part(place)
    read = {index for condition in graph.conditions for index in columns_of(condition)}
    read |= {graph.outputs[index] for _, key in plan.keys for index in columns_of(key)}
    keys = [number for number in part.columns if number in read]
    start = part.columns[0]
    types = {part.plan.schema[number - start].type for number in keys}
    if DOUBLE in types or has_one_row(part.plan, frozenset(number - start for number in keys)):
        # 0 and -0 are in one group, and something else could tell them apart.
        return plan
    return _aggregated(plan, graph, place, keys, calls)


def _only_input_read(graph: JoinGraph, calls: list[AggregateCall]) -> int | None:
    """The input that aggregates read; None if there are several, or none."""
    numbers = {index for call in calls for part in expressions_of(call) for index in columns_of(part)}
    found = [place for place in range(len(graph.inputs)) if numbers & {*graph.part(place).columns}]
    return found[0] if len(found) == 1 else None


def _is_of_parts(call: AggregateCall) -> bool:
    return call.function in _OF_PARTS and not (call.distinct or call.user)


def _aggregated(
    plan: Aggregate, graph: JoinGraph, place: int, keys: list[int], calls: list[AggregateCall]
) -> Plan:
    """The plan with an input of its join aggregated by some of its columns."""
    part = graph.part(place)
    start, width = part.columns[0], len(part.columns)
    names = unique_names(
        [*(part.plan.schema[number - start].name for number in keys), *(name for name, _ in plan.aggregates)]
    )
    own = {number: number - start for number in part.columns}
    groups = Aggregate(
        part.plan,
        tuple(
            (name, column(part.plan, number - start))
            for name, number in zip(names[: len(keys)], keys, strict=True)
        ),
        tuple(
            (name, transform_call(call, lambda one: mapped(one, own)))
            for name, call in zip(names[len(keys) :], calls, strict=True)
        ),
    )
    changed = len(groups.schema) - width
    places = {number: start + position for position, number in enumerate(keys)}
    for number in range(sum(len(below.schema) for below in graph.inputs)):
        if number not in own:
            places[number] = number if number < start else number + changed
    joined = replace(
        graph,
        inputs=(*graph.inputs[:place], groups, *graph.inputs[place + 1 :]),
        conditions=tuple(mapped(condition, places) for condition in graph.conditions),
    ).whole()
    outputs = {index: places[number] for index, number in enumerate(graph.outputs) if number in places}
    first = start + len(keys)
    return Aggregate(
        joined,
        tuple((name, mapped(key, outputs)) for name, key in plan.keys),
        tuple(
            (name, resolve_aggregate(_OF_PARTS[call.function], column(joined, first + position)))
            for position, (name, call) in enumerate(plan.aggregates)
        ),
    )
