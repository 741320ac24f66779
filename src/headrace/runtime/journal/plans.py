"""Plans as JSON: what queries are carried out as, where that is not their own plan alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, cast

import pyarrow as pa

from headrace.algebra import frames, horizon, kinds, nodes
from headrace.algebra.arrival import Unit
from headrace.algebra.by_object import ByObject
from headrace.algebra.nodes import Plan, inputs_of
from headrace.algebra.properties import parameter_names, parameters_of, walk
from headrace.dataclass_parts import field_names, parts_of
from headrace.expressions import tree
from headrace.expressions.user import UserAggregate, UserFunction
from headrace.schema import Field, Schema, sql_type, type_named
from headrace.time import Duration, TimeDomain
from headrace.value_graph import ValueGraph

Packed = Mapping[str, Any]
"""Plans of queries: `nodes` is a list of all their nodes, each once, `queries` has places in it by name."""

User = UserFunction | UserAggregate

_CLASSES: Final[dict[str, type[Any]]] = {
    known.__name__: known
    for known in (
        *(nodes.Source, nodes.Relation, nodes.Filter, nodes.Project, nodes.Sample, nodes.Unnest, nodes.Union),
        *(
            nodes.Shed,
            nodes.LargestWeight,
            nodes.Draw,
            nodes.SemanticDrop,
            ValueGraph,
            nodes.LimitedJoin,
            nodes.RememberedRows,
            nodes.BoundedRowWindow,
        ),
        *(nodes.RefreshedRelation, nodes.EventSource, nodes.Finalize),
        *(nodes.SetOperation, nodes.Aggregate, nodes.Distinct, nodes.BloomFilter, nodes.Join, nodes.TopK),
        *(
            nodes.TimeWindow,
            nodes.Lifetime,
            nodes.Match,
            nodes.NestedAggregate,
            nodes.LiveRow,
            nodes.RelationIndex,
        ),
        *(nodes.WindowBounds, nodes.RowWindow, nodes.SessionWindow, nodes.Over, nodes.Granularity),
        *(nodes.WindowEvents, nodes.GapFill),
        *(nodes.Clip, nodes.Split, nodes.Coalesce, nodes.Istream, nodes.Dstream, nodes.Rstream, nodes.Early),
        *(nodes.Remember, nodes.SessionAggregate, nodes.ApproximateAggregate),
        *(tree.Column, tree.Literal, tree.Literals, tree.Call, tree.Cast, tree.Case, tree.SortKey),
        *(tree.AggregateCall, tree.Within),
        *(frames.RangeFrame, frames.RowsFrame, horizon.Horizon, Duration, Field, Schema),
    )
}
"""What plans are made of, after outer and semi-joins have become other nodes."""

_ENUMS: Final[dict[str, type[Enum]]] = {
    known.__name__: known
    for known in (
        *(kinds.JoinKind, kinds.SetKind, kinds.BloomKind, kinds.Ranking, kinds.Filling),
        *(TimeDomain, Unit, tree.Side),
    )
}


def packed_plans(plans: Mapping[str, Plan]) -> Packed:
    """Plans as JSON has them, with what they have in common once."""
    packing = _Packing()
    queries = {name: packing.add(plan) for name, plan in plans.items()}
    return {"nodes": packing.nodes, "queries": queries} if queries else {}


def unpacked_plans(content: Packed, users: Mapping[tuple[str, str], User]) -> dict[str, Plan]:
    """Plans from their JSON.

    Args:
        content: as `packed_plans` has made it, or empty.
        users: the functions and aggregates of users that the plans may call, by name and version.

    Raises:
        KeyError: a part is missing, or a function.
        ValueError: there is no such type or kind of node.
    """
    made: list[Plan] = []
    for kind, inputs, parameters in content.get("nodes", ()):
        below = [made[place] for place in inputs]
        first = (tuple(below),) if kind == "Union" else below
        values = (_unpacked(value, users) for value in parameters)
        # By name, since what a class adds to another one's fields cannot be given by place.
        named = zip(parameter_names(_CLASSES[kind]), values, strict=False)
        made.append(cast(Plan, _CLASSES[kind](*first, **dict(named))))
    return {name: made[place] for name, place in content.get("queries", {}).items()}


def users_in(plans: Iterable[Plan]) -> dict[tuple[str, str], User]:
    """The functions and aggregates of users that plans call, by name and version."""
    found: dict[tuple[str, str], User] = {}
    for plan in plans:
        for node in walk(plan):
            _note_users(parameters_of(node), found)
    return found


def _note_users(value: object, found: dict[tuple[str, str], User]) -> None:
    match value:
        case UserFunction() | UserAggregate():
            found[value.name, value.version] = value
        case _:
            for part in parts_of(value):
                _note_users(part, found)


class _Packing:
    """Packs plan after plan."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self._places: dict[int, tuple[Plan, int]] = {}

    def add(self, plan: Plan) -> int:
        """The place of a plan's node among the nodes, which is added with all below it unless it is there."""
        if id(plan) not in self._places:
            inputs = [self.add(below) for below in inputs_of(plan)]
            self.nodes.append([type(plan).__name__, inputs, _parameters(plan)])
            # The plan is kept, so that no other can get its id.
            self._places[id(plan)] = plan, len(self.nodes) - 1
        return self._places[id(plan)][1]


def _packed(value: object) -> Any:
    """A part of a node: what JSON has stays, all else is a list of what it is and what is in it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return ["float", repr(value)]
        case tuple():
            return ["tuple", *map(_packed, value)]
        case Enum():
            return [type(value).__name__, value.name]
        case Decimal():
            return ["Decimal", str(value)]
        case datetime() | date():
            return [type(value).__name__, value.isoformat()]
        case pa.DataType():
            return ["type", sql_type(value)]
        case UserFunction() | UserAggregate():
            return ["user", value.name, value.version]
        case _:
            assert is_dataclass(value)
            assert type(value).__name__ in _CLASSES, value
            names = field_names(type(value))
            return [type(value).__name__, *(_packed(getattr(value, name)) for name in names)]


def _unpacked(value: Any, users: Mapping[tuple[str, str], User]) -> Any:
    match value:
        case ["float", text]:
            return float(text)
        case ["tuple", *parts]:
            return tuple(_unpacked(part, users) for part in parts)
        case ["Decimal", text]:
            return Decimal(text)
        case ["datetime", text]:
            return datetime.fromisoformat(text)
        case ["date", text]:
            return date.fromisoformat(text)
        case ["type", text]:
            return type_named(text)
        case ["user", name, version]:
            return users[name, version]
        case [kind, *parts]:
            if kind in _ENUMS:
                return _ENUMS[kind][parts[0]]
            return _CLASSES[kind](*(_unpacked(part, users) for part in parts))
        case _:
            return value


def _packed_parameters(plan: Plan) -> list[Any]:
    return [_packed(part) for part in parameters_of(plan)]


_parameters: Final = ByObject(_packed_parameters, 100_000)
"""The parameters of a node: a change packs the plans of all queries, most of which are as before."""
