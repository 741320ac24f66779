"""Queries that differ in a constant: the constants become data.

An aggregate over the rows with `e = c` is one group of an aggregate by `e`. So all queries of one shape are
one aggregate over the rows for which `e` is any of their constants, and each of them picks its group:

    SELECT COUNT(*) FROM bid [RANGE 60] WHERE MOD(auction, 100) = 7

    SELECT n FROM (SELECT MOD(auction, 100) AS e, COUNT(*) AS n FROM bid [RANGE 60]
                   WHERE MOD(auction, 100) IN (...) GROUP BY MOD(auction, 100)) WHERE e = 7

Where the rows of a group become events, as those of TUMBLE do, this is done for all groups, and each query
picks those of its own behind it.

The rewriting looks at one query at a time, so that the shape, and with it the identity of the state, does not
depend on which other queries there are; only the list of constants does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import (
    Aggregate,
    Clip,
    Dstream,
    Early,
    Filter,
    Istream,
    Match,
    Plan,
    Project,
    Remember,
    Source,
    TimeWindow,
    column,
    inputs_of,
    with_inputs,
)
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.algebra.properties import walk
from headrace.expressions.aggregates.functions import ends_query
from headrace.expressions.tree import Call, Expression, Literal, listed
from headrace.lowering.groups import for_all
from headrace.lowering.picked import is_unfilled, picked
from headrace.schema import BIGINT, BOOLEAN, DATE, STRING, TIMESTAMP

_TYPES: Final = (BIGINT, STRING, DATE, TIMESTAMP)
"""Types for whose values `=` is grouping's equality."""


@dataclass(frozen=True)
class Chosen:
    """The rows that some query of a shape asks for.

    Attributes:
        filter: a filter whose predicate is `e IN ()`, which means the rows with any of the constants; or what
            matches no predicate yet, and means those of all.
        constant: the constant of one query; of a predicate the number.
        predicate: that of the query, if the rows are matched by predicates.
    """

    filter: Filter | Match
    constant: Literal
    predicate: Expression | None = None


def constants_as_data(plan: Plan) -> tuple[Plan, tuple[Chosen, ...]]:
    """The plan with its aggregates over `e = constant` written as groups of an aggregate by `e`.

    Returns:
        The plan, with filters in it whose lists of constants are empty, and the constants it needs in them.
    """
    known: dict[int, Plan] = {}
    chosen: list[Chosen] = []

    def rewritten(part: Plan) -> Plan:
        # What is used twice stays one object, or chains of joins would double with every link.
        if id(part) not in known:
            known[id(part)] = _own_group(part, chosen) or above(part)
        return known[id(part)]

    def above(part: Plan) -> Plan:
        same = with_inputs(part, tuple(map(rewritten, inputs_of(part))))
        if isinstance(part, Early) and isinstance(same, Early) and part.corrects and not same.corrects:
            # The groups are said early, from which the rows are picked.
            return _said_below(same.input, same.horizon)
        return _own_events(same) or same

    found = rewritten(plan)
    if isinstance(plan, Early) and not isinstance(found, Early):
        found = Early(found, plan.horizon)
    return found, tuple(chosen)


def _said_below(plan: Plan, horizon: Horizon) -> Plan:
    """What picks rows of groups, over the groups said early."""
    if isinstance(plan, Aggregate | Istream | Dstream):
        return Early(plan, horizon)
    (below,) = inputs_of(plan)
    return with_inputs(plan, (_said_below(below, horizon),))


def _own_group(plan: Plan, chosen: list[Chosen]) -> Plan | None:
    """An aggregate over `e = constant` as the group of that constant."""
    if not isinstance(plan, Aggregate) or can_end_queries(plan):
        return None
    found = _keyed(plan.input)
    if found is None:
        return None
    below, choice = found
    chosen.append(choice)
    return group_of(plan, below, choice.constant)


def _own_events(plan: Plan) -> Plan | None:
    """The events of one group as those of its constant: different rows, which come and go for themselves."""
    if not isinstance(plan, Istream | Dstream):
        return None
    group = for_all(plan.input)
    if group is None:
        return None
    return _own(replace(plan, input=group[0]), len(group[0].schema) - 1, group[1])


def chosen_in(plan: Plan) -> tuple[Chosen, ...]:
    """The constants that a plan with constants as data needs in its filters whose lists are empty."""
    found = (_chosen_by(part) for part in walk(plan))
    return tuple(choice for choice in found if choice is not None)


def _chosen_by(plan: Plan) -> Chosen | None:
    """What a node asks for that picks one group of an aggregate by `e`."""
    found = picked(plan)
    if found is None:
        return None
    groups, constant = found
    asked = groups.asked
    if isinstance(asked, Match):
        ((_, wanted),) = asked.predicates
        return Chosen(replace(asked, predicates=()), constant, wanted)
    return Chosen(asked, constant)


def filled(chosen: Iterable[Chosen]) -> dict[Filter | Match, Filter | Match]:
    """Each node without constants, and the one with those of all queries on it, in a fixed order."""
    constants: dict[Filter | Match, dict[Literal, Expression | None]] = {}
    for choice in chosen:
        constants.setdefault(choice.filter, {})[choice.constant] = choice.predicate
    return {node: _with_constants(node, wanted) for node, wanted in constants.items()}


def unfilled(plan: Plan) -> Filter | Match | None:
    """A node as `filled` knows it, if it is one whose constants are those of all queries."""
    if isinstance(plan, Match):
        return replace(plan, predicates=())
    return plan if is_unfilled(plan) else None


def _with_constants(node: Filter | Match, constants: Mapping[Literal, Expression | None]) -> Filter | Match:
    if isinstance(node, Match):
        known = ((constant.value, predicate) for constant, predicate in constants.items())
        pairs = [
            (number, predicate)
            for number, predicate in known
            if isinstance(number, int) and predicate is not None
        ]
        return replace(node, predicates=tuple(sorted(pairs, key=lambda pair: pair[0])))
    assert isinstance(node.predicate, Call)
    (tested,) = node.predicate.arguments
    wanted = listed(sorted(constants, key=lambda constant: repr(constant.value)))
    return replace(node, predicate=replace(node.predicate, arguments=(tested, *wanted)))


def can_end_queries(plan: Aggregate) -> bool:
    """Whether an aggregate may fail, which would end all queries that share it."""
    return any(ends_query(call) for _, call in plan.aggregates)


def _keyed(plan: Plan) -> tuple[Plan, Chosen] | None:
    """The input of an aggregate with `e` as a further column, for the rows with any constant."""
    match plan:
        case TimeWindow(input=below) | Clip(input=below):
            found = _keyed(below)
            return None if found is None else (replace(plan, input=found[0]), found[1])
        case Early(input=below, horizon=horizon):
            found = _keyed(below)
            return None if found is None else (Early(found[0], horizon), found[1])
        case Aggregate(input=below, aggregates=()):
            found = _keyed(below)
            return None if found is None else (with_last_key(plan, found[0]), found[1])
        case Project(input=below, items=items):
            found = _keyed(below)
            if found is None:
                return None
            key = column(found[0], len(below.schema))
            return Project(found[0], (*items, (key.name, key))), found[1]
        case Filter(input=below, predicate=predicate) if _reads_a_source(below):
            return _chosen(below, conjuncts(predicate))
        case _:
            return None


def _reads_a_source(plan: Plan) -> bool:
    """Whether there are only filters, projections and windows down to a source."""
    while isinstance(plan, Filter | Project | TimeWindow | Remember):
        plan = plan.input
    return isinstance(plan, Source)


def _chosen(below: Plan, parts: tuple[Expression, ...]) -> tuple[Plan, Chosen] | None:
    found = next((found for found in map(selection, parts) if found is not None), None)
    if found is None:
        return None
    part, expression, constant = found
    rest = conjunction(other for other in parts if other is not part)
    rows = below if rest is None else Filter(below, rest)
    names = below.schema.names
    items = [(name, column(rows, place)) for place, name in enumerate(names)]
    keyed = Project(rows, (*items, (fresh(names), expression)))
    wanted = Filter(keyed, Call("IN", (column(keyed, len(names)),), BOOLEAN))
    return wanted, Chosen(wanted, constant)


def selection(part: Expression) -> tuple[Expression, Expression, Literal] | None:
    """A conjunct of the form `e = constant` or `constant = e`: itself, `e` and the constant."""
    match part:
        case (
            Call(function="=", arguments=(Literal() as constant, other))
            | Call(function="=", arguments=(other, Literal() as constant))
        ):
            if constant.value is not None and constant.type in _TYPES and not isinstance(other, Literal):
                return part, other, constant
    return None


def group_of(plan: Aggregate, below: Plan, constant: Literal) -> Plan:
    """The group of one constant in an aggregate.

    Args:
        plan: the aggregate of the rows of that constant.
        below: the rows of all constants, which are the last column.
        constant: the constant.
    """
    key = column(below, len(below.schema) - 1)
    keys = (*plan.keys, (fresh([name for name, _ in plan.keys]), key))
    groups = replace(plan, input=below, keys=keys)
    return _own(groups, len(plan.keys), constant)


def _own(groups: Plan, place: int, constant: Literal) -> Plan:
    """The rows of one constant, which is in a column, without that column."""
    own = Filter(groups, Call("=", (column(groups, place), constant), BOOLEAN))
    shown = (column(groups, index) for index in range(len(groups.schema)) if index != place)
    return Project(own, tuple((part.name, part) for part in shown))


def with_last_key(plan: Aggregate, below: Plan) -> Aggregate:
    """The groups of an aggregate without aggregates, with the last column of another input as last key."""
    key = column(below, len(below.schema) - 1)
    return replace(plan, input=below, keys=(*plan.keys, (fresh(name for name, _ in plan.keys), key)))


def fresh(names: Iterable[str]) -> str:
    """A column name that is not among the names."""
    taken = set(names)
    return next(name for name in (f"e{place}" for place in range(len(taken) + 1)) if name not in taken)
