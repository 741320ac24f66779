"""Operators that go on with the state of others when one plan is exchanged for another.

Clips do not change what the state of an operator has to say: all that has entered the old plan ends where it
is clipped, and when the old plan is gone, nothing that comes begins before the instant at which the new one
was clipped. But they change the plans below an operator, and with them the name of its state. So the names
of what goes on are looked up side by side; the runs themselves stay where they are, whoever shares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace.algebra.nodes import Clip, Plan, inputs_of
from headrace.algebra.properties import is_stateful
from headrace.errors import PlanError
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.identity import identities
from headrace.optimizer.migration import Migration

Adopted = Mapping[str, str]
"""By the identity of an operator, that of the one whose state it goes on with."""

StateNames = Mapping[int, str]
"""What names the state of each part of a plan, by its `id`."""


@dataclass(frozen=True)
class Adoptions:
    """What goes on with the state of what.

    Attributes:
        begin: when both plans run from then on.
        end: when the new plan runs alone from then on.
    """

    begin: Adopted
    end: Adopted


def adoptions(migration: Migration, start: int, merges: Iterable[Merge]) -> Adoptions:
    """What goes on with the state of what while a query's plan is exchanged.

    Args:
        migration: the exchange of what the query is carried out as.
        start: the epoch from which on the query answers.
        merges: the operators whose state has become that of older ones.
    """
    merges = tuple(merges)
    old, both, new = migration.old, migration.plan, migration.new
    names = [identities(plan, start, merges) for plan in (old, both, new)]
    begin: list[tuple[Plan, Plan]] = []
    end: list[tuple[Plan, Plan]] = []
    # What is above the box is the same in all, node by node.
    while old is not migration.boxes[0]:
        begin.append((old, both))
        end.append((both, new))
        (old,), (both,), (new,) = map(inputs_of, (old, both, new))
    below, above = inputs_of(both)
    begin += _alike(old, below)
    end += _alike(above, new)
    return Adoptions(_renamed(begin, names[0], names[1]), _renamed(end, names[1], names[2]))


def _renamed(pairs: Iterable[tuple[Plan, Plan]], before: StateNames, after: StateNames) -> Adopted:
    """The new names of what holds state, where they are others; what is read whole keeps its own."""
    names = ((after[id(new)], before[id(old)]) for old, new in pairs if is_stateful(new))
    return {new: old for new, old in names if new != old}


def require_same_places(adopted: Adopted, before: Graph, after: Graph) -> None:
    """See that each operator finds the state that it goes on with in its own bucket.

    Raises:
        PlanError: one would get its rows by other keys.
    """
    known = {node.identity: node for node in before.nodes}
    for node in after.nodes:
        other = known.get(adopted.get(node.identity, ""))
        if other is not None and _spread(before, other.number) != _spread(after, node.number):
            raise PlanError(
                f"{type(node.plan).__name__} would get its rows by other keys from the new plan, so that its "
                "state would have to move",
                hint="a run with one bucket can do it; or drop the query and create it anew",
            )


def _spread(graph: Graph, number: int) -> tuple[object, ...]:
    """By which keys the rows of a node's inputs have come to their buckets."""
    found: list[object] = []
    for edge in graph.nodes[number].inputs:
        if edge.exchange is None:
            found.append(_spread_below(graph, edge.producer))
        else:
            found.append((edge.exchange.spread, edge.exchange.keys, edge.exchange.reduced_for is None))
    return tuple(found)


def _spread_below(graph: Graph, number: int) -> object:
    """How the rows are spread that a node passes on where they are; clips leave them there."""
    node = graph.nodes[number]
    if isinstance(node.plan, Clip):
        return _spread_below(graph, node.inputs[0].producer)
    return type(node.plan).__name__, _spread(graph, number)


def _alike(one: Plan, other: Plan) -> Iterator[tuple[Plan, Plan]]:
    """The nodes of two boxes that differ in their clips alone, pair by pair."""
    seen = set[int]()
    ahead = [(one, other)]
    while ahead:
        before, after = ahead.pop()
        if id(after) in seen or isinstance(before, Clip) != isinstance(after, Clip):
            continue
        seen.add(id(after))
        yield before, after
        ahead.extend(zip(inputs_of(before), inputs_of(after), strict=True))
