"""The plans of queries that are added together, written so that they share what they have in common.

`lower` makes one operator of equal plans. Here plans become equal that differ only in which columns are read,
in which aggregates of a group, or in the order of a join's inputs:

    SELECT r.x FROM r [RANGE 10], s [RANGE 10] WHERE r.a = s.a
    SELECT s.y FROM s [RANGE 10], r [RANGE 10] WHERE r.a = s.a

are two projections of one join, which has both columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.nodes import Plan
from headrace.lowering.constants import constants_as_data
from headrace.lowering.outer_joins import expand
from headrace.lowering.sharing.bodies import Bodies
from headrace.lowering.sharing.writing import Writing


def share(queries: Mapping[str, Plan]) -> dict[str, Plan]:
    """What queries are carried out as that have more in common than equal plans.

    Args:
        queries: optimized plans by query name, of queries that start together.

    Returns:
        For each query that shares more than it would by its own plan, another plan with the same answer: with
        its outer joins expanded and its constants as data. Queries that are not named keep theirs.
    """
    bodies = Bodies()
    numbers = {name: bodies.add(constants_as_data(expand(plan))[0]) for name, plan in sorted(queries.items())}
    together = _together(bodies, numbers)
    if not together:
        return {}
    writing = Writing(bodies.bodies, (bodies.reading(numbers[name]) for name in together))
    found = {
        name: writing.plan(bodies.reading(numbers[name]), queries[name].schema.names) for name in together
    }
    assert all(found[name].schema == queries[name].schema for name in together)
    return found


def _together(bodies: Bodies, numbers: Mapping[str, int]) -> list[str]:
    """The queries with operators in common that their plans do not show, and those that share with them.

    An operator with more columns is another operator also to queries that have equal plans of it.
    """
    kept = {number: _stateful_in(bodies, number) for number in set(numbers.values())}
    waiting = {part for found in kept.values() for part in found if len(bodies.bodies[part].readers) > 1}
    seen: set[int] = set()
    chosen: set[int] = set()
    while waiting:
        seen |= waiting
        new = {number for number, found in kept.items() if number not in chosen and found & waiting}
        chosen |= new
        waiting = set[int]().union(*(kept[number] for number in new)) - seen
    return [name for name, number in numbers.items() if number in chosen]


def _stateful_in(bodies: Bodies, number: int) -> set[int]:
    """The bodies with state of which some plan has parts."""
    found = {bodies.reading(part).body for part in bodies.below([number])}
    return {part for part in found if bodies.bodies[part].keeps_state}
