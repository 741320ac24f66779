"""Queries that may be behind others: they read their streams by other names, at positions of their own.

A stream of a query that is behind is what is kept of that stream. Its operators have state of their own,
since they have seen less, and share it with the queries that have been put behind together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Early, Plan, Relation, Source, inputs_of, with_inputs
from headrace.algebra.properties import names_read
from headrace.algebra.tunings.tunings import Tunings

_BEHIND: Final = " behind "


def input_behind(name: str, lane: int) -> str:
    """The name by which queries of a lane read a stream or a relation; none can be declared with it.

    Args:
        name: that of the stream or the relation.
        lane: the lane, which is the epoch in which it began.
    """
    return f"{name}{_BEHIND}{lane}"


def declared_name(name: str) -> str:
    """The name of the stream or the relation that is read by a name."""
    return name.rpartition(_BEHIND)[0] or name


def lane_of(name: str) -> int | None:
    """The lane whose queries read an input by a name; None where it is that of those in front."""
    declared, _, rest = name.rpartition(_BEHIND)
    return int(rest.partition(" ")[0]) if declared else None


def plan_behind(plan: Plan, lane: int | None) -> Plan:
    """The plan as it is read in a lane: the same object for the same one.

    Args:
        plan: a query's, at any level of consistency.
        lane: the lane; None for the front.
    """
    return plan if lane is None else _behind(lane)(plan)


@lru_cache(1_000)
def _behind(lane: int) -> ByObject[Plan, Plan]:
    return ByObject(lambda plan: _renamed(plan, lambda name: input_behind(name, lane)), REMEMBERED)


def declared_plan(plan: Plan) -> Plan:
    """The plan over what it reads by the names with which that is declared, as people know it."""
    return _declared(plan)


def _renamed(plan: Plan, called: Callable[[str], str]) -> Plan:
    known: dict[int, Plan] = {}

    def renamed(part: Plan) -> Plan:
        # What is used twice stays one object.
        if id(part) not in known:
            known[id(part)] = _leaf_or(part)
        return known[id(part)]

    def _leaf_or(part: Plan) -> Plan:
        if isinstance(part, Source | Relation):
            return replace(part, name=called(part.name))
        found = with_inputs(part, tuple(map(renamed, inputs_of(part))))
        if isinstance(found, Early):
            horizon = found.horizon
            streams, relations = (tuple(map(called, names)) for names in (horizon.streams, horizon.relations))
            found = replace(found, horizon=replace(horizon, streams=streams, relations=relations))
        return found

    return renamed(plan)


def _named_as_declared(plan: Plan) -> Plan:
    in_front = all(lane_of(name) is None for name in names_read(plan))
    return plan if in_front else _renamed(plan, declared_name)


_declared: Final = ByObject(_named_as_declared, REMEMBERED)


def tunings_behind(tunings: Tunings, lanes: Mapping[int, object]) -> Tunings:
    """The sizes of windows within bounds, with those of the windows of lanes, which have the same.

    Args:
        tunings: by what they are of, in front.
        lanes: those that there are.
    """
    found = dict(tunings)
    for lane in lanes:
        for tuning, known in tunings.items():
            names = tuple(sorted(input_behind(name, lane) for name in tuning.streams))
            found[tuning._replace(streams=names)] = known
    return found
