"""Queries that aggregate rows of one input which predicates select: one aggregate for all of them.

Thousands of queries such as these differ in what they compare with which constants:

    SELECT COUNT(*) FROM bid [RANGE 60] WHERE price > 1000
    SELECT COUNT(*) FROM bid [RANGE 60] WHERE price BETWEEN 5 AND 9

Where the rows have the numbers of the predicates that select them (`headrace.algebra.nodes.Match`), these are
groups of one aggregate by that number, and each query picks its own, as queries do whose constants are data
(`headrace.lowering.constants`). A predicate's number is a digest of it: it names a group in the state.
A query whose predicate has the number of another one is carried out alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.algebra.failure import aggregate_can_fail, can_fail
from headrace.algebra.nodes import (
    Aggregate,
    Clip,
    Filter,
    Match,
    Plan,
    Project,
    Source,
    TimeWindow,
    inputs_of,
    with_inputs,
)
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import walk
from headrace.expressions.tree import Expression, Literal
from headrace.lowering.constants import (
    can_end_queries,
    constants_as_data,
    group_of,
    selection,
    with_last_key,
)
from headrace.lowering.groups import with_last
from headrace.lowering.identity import shape
from headrace.lowering.outer_joins import expand
from headrace.lowering.picked import below_values
from headrace.lowering.selections import FEWEST
from headrace.operators.match import is_indexed
from headrace.schema import BIGINT, unique_names

_DIGITS: Final = 15
"""So many hexadecimal digits of a digest are a predicate's number, which is a BIGINT."""


@dataclass(frozen=True)
class _Matched:
    """A query whose aggregates are groups of aggregates of matched rows.

    Attributes:
        plan: with constants as data.
        shapes: of those aggregates.
        predicates: those of the rows, with their numbers.
    """

    plan: Plan
    shapes: frozenset[str]
    predicates: tuple[tuple[int, Expression], ...]


def matched_groups(queries: Mapping[str, Plan], present: Mapping[str, Plan]) -> dict[str, Plan]:
    """What those queries are carried out as of which many differ in the rows that they aggregate.

    Args:
        queries: optimized plans by name, of queries that start together.
        present: what those that are there already are carried out as; one more of a shape is as they are.
    """
    found = {name: one for name, plan in queries.items() if (one := _matched(plan)) is not None}
    counts = Counter(part for one in found.values() for part in one.shapes)
    if not found:
        return {}
    known = frozenset[str]().union(*map(_shapes_in, present.values()))
    many = known | {part for part, count in counts.items() if count >= FEWEST}
    numbered = dict(pair for plan in present.values() for pair in _predicates_in(plan))
    grouped = {name: one for name, one in found.items() if one.shapes <= many}
    return {name: one.plan for name, one in grouped.items() if _is_named(one, numbered)}


def _is_named(query: _Matched, numbered: dict[int, Expression]) -> bool:
    """Whether no other predicate has the number of one of a query's, whose numbers are then added."""
    pairs = query.predicates
    return all(_is_same(numbered.setdefault(number, predicate), predicate) for number, predicate in pairs)


def _is_same(left: Expression, right: Expression) -> bool:
    # NaN is not equal to itself, but written alike.
    return left == right or repr(left) == repr(right)


def _matched(plan: Plan) -> _Matched | None:
    known: dict[int, Plan] = {}

    def rewritten(part: Plan) -> Plan:
        if id(part) not in known:
            found = _grouped(part)
            known[id(part)] = found or with_inputs(part, tuple(map(rewritten, inputs_of(part))))
        return known[id(part)]

    whole = expand(plan)
    found = rewritten(whole)
    if found is whole:
        return None
    made, _ = constants_as_data(found)
    return _Matched(made, _shapes_in(made), tuple(_predicates_in(made)))


def _predicates_in(plan: Plan) -> Iterator[tuple[int, Expression]]:
    """The predicates of the rows of a plan that are matched, with their numbers."""
    for part in walk(plan):
        if isinstance(part, Match):
            yield from part.predicates


def _shapes_in(plan: Plan) -> frozenset[str]:
    """The shapes of the aggregates of matched rows in a plan."""
    parts = (part for part in walk(plan) if isinstance(part, Aggregate))
    return frozenset(shape(part) for part in parts if isinstance(_lowest(part.input), Match))


def _lowest(plan: Plan) -> Plan:
    plan = below_values(plan)
    while isinstance(plan, TimeWindow | Clip | Project):
        plan = plan.input
    return plan


def _grouped(plan: Plan) -> Plan | None:
    """The group of a predicate's number in an aggregate, instead of an aggregate of the rows it selects."""
    if not isinstance(plan, Aggregate) or can_end_queries(plan) or _may_fail(plan):
        return None
    lowest = _lowest(plan.input)
    if not isinstance(lowest, Filter) or not isinstance(lowest.input, Source):
        return None
    predicate = lowest.predicate
    if can_fail(predicate) or not _has_ranges(predicate):
        return None
    number = _number_of(predicate)
    below = _numbered(plan.input, number)
    return None if below is None else group_of(plan, below, Literal(number, BIGINT))


def _number_of(predicate: Expression) -> int:
    return int(hashlib.sha256(repr(predicate).encode()).hexdigest()[:_DIGITS], 16)


def _may_fail(plan: Aggregate) -> bool:
    calls, keys = (call for _, call in plan.aggregates), (key for _, key in plan.keys)
    return any(map(aggregate_can_fail, calls)) or any(map(can_fail, keys))


def _has_ranges(predicate: Expression) -> bool:
    """Whether something is compared with a constant besides the `=` that makes constants data."""
    parts = conjuncts(predicate)
    data = next((part for part in parts if selection(part) is not None), None)
    return any(part is not data and is_indexed(part) for part in parts)


def _numbered(plan: Plan, number: int) -> Plan | None:
    """The input of an aggregate with the predicate's number as last column, None if a row may fail in it."""
    match plan:
        case Filter(input=below, predicate=predicate):
            *_, name = unique_names([*below.schema.names, "predicate"])
            return Match(below, ((number, predicate),), name)
        case Project(input=below, items=items):
            found = _numbered(below, number)
            if found is None or any(can_fail(item) for _, item in items):
                return None
            return with_last(found, items, len(found.schema) - 1)
        case TimeWindow(input=below) | Clip(input=below):
            found = _numbered(below, number)
            return None if found is None else with_inputs(plan, (found,))
        case Aggregate(input=below, aggregates=()) if not _may_fail(plan):
            found = _numbered(below, number)
            return None if found is None else with_last_key(plan, found)
        case _:
            return None
