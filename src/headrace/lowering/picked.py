"""Groups of an aggregate for many queries, of which each query picks one by its constant."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

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
    TimeWindow,
    WindowBounds,
)
from headrace.expressions.tree import Call, Column, Literal


class Groups(NamedTuple):
    """Rows for the constants of many queries.

    Attributes:
        plan: what yields them.
        place: the column that has the constant.
        asked: what finds the rows of each query for the aggregate; see `asked_in`.
    """

    plan: Plan
    place: int
    asked: Filter | Match


def picked(plan: Plan) -> tuple[Groups, Literal] | None:
    """The groups of which a filter picks one, and the constant by which it does; None for other nodes."""
    match plan:
        case Filter(
            input=below, predicate=Call(function="=", arguments=(Column(index=index), Literal() as constant))
        ):
            groups = _groups(below)
            return None if groups is None or groups.place != index else (groups, constant)
        case _:
            return None


def _groups(plan: Plan) -> Groups | None:
    """What a plan yields for many queries, if it does."""
    match plan:
        case Early(input=below):
            found = _groups(below)
            return None if found is None else found._replace(plan=plan)
        case Aggregate(input=below, keys=keys):
            asked = asked_in(below)
            return None if asked is None else Groups(plan, len(keys) - 1, asked)
        case Istream(input=below) | Dstream(input=below):
            found = _kept(below)
            return None if found is None else found._replace(plan=plan)
        case _:
            return None


def _kept(plan: Plan) -> Groups | None:
    """The groups below projections and filters, if their constant is still the last column."""
    match plan:
        case Filter(input=below) | WindowBounds(input=below):
            return _kept(below)
        case Project(input=below, items=(*_, (_, Column(index=index)))):
            found = _groups(below) or _kept(below)
            is_last = found is not None and found.place == index
            return found._replace(place=len(plan.items) - 1) if found is not None and is_last else None
        case _:
            return None


def asked_in(plan: Plan) -> Filter | Match | None:
    """What finds the rows of each query for an aggregate, if one node does for many.

    That is a filter with an empty list of constants, or what matches the predicate of one query.
    """
    plan = below_values(plan)
    while isinstance(plan, TimeWindow | Clip | Project):
        plan = plan.input
    return plan if isinstance(plan, Match) or is_unfilled(plan) else None


def below_values(plan: Plan) -> Plan:
    """The input of groups without aggregates, which are the values that some are of; else the plan."""
    while isinstance(plan, Early) or (isinstance(plan, Aggregate) and not plan.aggregates):
        plan = plan.input
    return plan


def is_unfilled(plan: Plan) -> TypeGuard[Filter]:
    """Whether a node is a filter whose list of constants is still empty."""
    match plan:
        case Filter(predicate=Call(function="IN", arguments=(_,))):
            return True
        case _:
            return False
