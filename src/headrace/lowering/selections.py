"""Queries that select rows of one input: one operator finds the queries of a row.

Thousands of queries such as these differ in what they compare with which constants:

    SELECT ts, price FROM bid WHERE price > 1000
    SELECT ts, price FROM bid WHERE price BETWEEN 5 AND 9

Asked one by one, each would look at every row. Together they are one `Match`, whose predicates are data: it
yields each row with the numbers of the queries that select it, and each query gets those rows as a part of
one result (`headrace.lowering.graph.Group`). This is PSoup's query index (VLDB 2002, section 4).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from headrace.algebra.by_object import ByObject
from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import (
    Clip,
    Filter,
    Granularity,
    Match,
    Plan,
    Project,
    Rstream,
    Source,
    Split,
    TimeWindow,
    with_inputs,
)
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import parameters_of
from headrace.expressions.tree import Expression
from headrace.lowering.groups import with_last
from headrace.operators.match import is_indexed
from headrace.schema import unique_names

FEWEST: Final = 16
"""So many queries of a shape are selected together; fewer are asked one by one, which takes less time."""

_PLANS: Final = 20_000
"""So many plans are remembered with what they select: those of the queries that a change leaves alone."""


@dataclass(frozen=True)
class Hashed:
    """Something with its hash, which takes a while to compute for what consists of many parts."""

    value: Hashable
    hashed: int

    @classmethod
    def of(cls, value: Hashable) -> Hashed:
        """Something with its hash."""
        return cls(value, hash(value))

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True)
class Selection:
    """A query that selects rows of a stream, and does with each what others do as well.

    Attributes:
        input: the stream.
        predicate: what is asked of a row.
        above: the nodes above that, from the lowest.
        shape: equal for queries that differ in the predicate alone.
        key: equal for queries with equal predicates.
    """

    input: Plan
    predicate: Expression
    above: tuple[Plan, ...]
    shape: Hashed
    key: Hashed


@dataclass(frozen=True, eq=False)
class Selections:
    """Queries of one shape.

    Attributes:
        match: finds the rows of all of them.
        plan: what they yield, with the number of a predicate as last column.
        shape: what they have in common, besides the match.
        members: the number of each query's predicate.
    """

    match: Match
    plan: Plan
    shape: Hashed
    members: Mapping[str, int]


def selections(queries: Mapping[str, Plan]) -> tuple[Selections, ...]:
    """Those queries that are found together by the rows that they select.

    Args:
        queries: optimized plans by name.
    """
    shapes: dict[Hashed, dict[str, Selection]] = {}
    for name, plan in queries.items():
        found = _known(plan)
        if found is not None:
            shapes.setdefault(found.shape, {})[name] = found
    return tuple(_together(members) for members in shapes.values() if len(members) >= FEWEST)


def selection_of(plan: Plan) -> Selection | None:
    """What a query selects; None if it does something else, or if it may fail for a row.

    A row that fails is reported as that of the queries which see it fail, so those are asked one by one.

    Args:
        plan: the query's, optimized.
    """
    above: list[Plan] = []
    while isinstance(plan, Project | Filter | TimeWindow | Clip | Granularity | Split | Rstream):
        if isinstance(plan, Filter) and isinstance(plan.input, Source):
            return _selected(plan, tuple(reversed(above)))
        if _may_fail(plan):
            return None
        above.append(plan)
        plan = plan.input
    return None


def _selected(lowest: Filter, above: tuple[Plan, ...]) -> Selection | None:
    predicate = lowest.predicate
    if can_fail(predicate) or not any(is_indexed(part) for part in conjuncts(predicate)):
        return None
    shape = (lowest.input, tuple((type(node), parameters_of(node)) for node in above))
    return Selection(lowest.input, predicate, above, _same(Hashed.of(shape)), Hashed.of(predicate))


@lru_cache(1_000)
def _same(shape: Hashed) -> Hashed:
    """One object for all shapes that are equal, since to compare them takes longer than to see that."""
    return shape


def _may_fail(plan: Plan) -> bool:
    match plan:
        case Project(items=items):
            return any(can_fail(part) for _, part in items)
        case Filter(predicate=predicate):
            return can_fail(predicate)
        case _:
            return False


def _together(members: Mapping[str, Selection]) -> Selections:
    numbers: dict[Hashed, int] = {}
    found = {name: numbers.setdefault(one.key, len(numbers)) for name, one in members.items()}
    distinct = dict(zip(found.values(), (one.predicate for one in members.values()), strict=True))
    one = next(iter(members.values()))
    *_, number = unique_names([*one.input.schema.names, "query"])
    match = Match(one.input, tuple(distinct.items()), number)
    plan: Plan = match
    for node in one.above:
        plan = _over(plan, node)
    return Selections(match, plan, one.shape, found)


def _over(below: Plan, node: Plan) -> Plan:
    """A node over the rows of all queries, whose last column stays the last."""
    if isinstance(node, Project):
        return with_last(below, node.items, len(below.schema) - 1)
    return with_inputs(node, (below,))


_known: Final = ByObject(selection_of, _PLANS)
