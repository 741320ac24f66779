"""Exchanges of plans in a run: what begins and ends one, and what a store keeps of it."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.nodes import Plan
from headrace.errors import PlanError
from headrace.lowering.adoption import Adopted, adoptions, require_same_places
from headrace.lowering.constants import constants_as_data
from headrace.lowering.outer_joins import expand
from headrace.optimizer.migration import Migration, takeover
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import MIN_INSTANT


def begun(
    queries: QuerySet, name: str, new: Plan, points: Mapping[str, StreamPoint], buckets: int
) -> tuple[QuerySet, Adopted]:
    """The queries when the plan of one is being exchanged, and what goes on with the state of what.

    Args:
        queries: those that are answered.
        name: whose plan is exchanged.
        new: the plan that takes over.
        points: how far each input has been read.
        buckets: how many buckets state is spread over.

    Raises:
        PlanError: the plan cannot be exchanged, and why.
    """
    old = queries.carried_out.get(name) or _carried_out(queries.plans[name])
    if name in queries.migrations:
        raise PlanError(
            f"the plan of {name} is being exchanged already",
            hint="wait until the new one has taken over: SHOW QUERIES says when",
        )
    latest = {point: seen.time.latest for point, seen in points.items()}
    migration = Migration(old, _carried_out(new), max(takeover(old, latest), MIN_INSTANT))
    adopted = adoptions(migration, queries.state_start_of(name), queries.merges)
    both, alone = queries.replacing({name: migration}), queries.replacing({name: migration.new})
    if buckets > 1:
        require_same_places(adopted.begin, queries.graph, both.graph)
        require_same_places(adopted.end, both.graph, alone.graph)
    return both, adopted.begin


def _carried_out(plan: Plan) -> Plan:
    """What a plan is carried out as by itself."""
    return constants_as_data(expand(plan))[0]


def ended(queries: QuerySet, heartbeats: Mapping[str, int]) -> tuple[QuerySet, Adopted] | None:
    """The queries when new plans that have taken over run alone, and what goes on with the state of what.

    Args:
        queries: those that are answered.
        heartbeats: of the inputs (instants).

    Returns:
        None where no new plan has taken over.
    """
    over = queries.ended_migrations(heartbeats)
    if not over:
        return None
    adopted: dict[str, str] = {}
    for name, migration in over.items():
        adopted |= adoptions(migration, queries.state_start_of(name), queries.merges).end
    return queries.replacing({name: migration.new for name, migration in over.items()}), adopted


def with_adopted(
    state: Mapping[StateKey, Manifest], queries: QuerySet, adopted: Adopted
) -> dict[StateKey, Manifest]:
    """All state, that of some operators under the names of others too.

    An operator that was there before keeps its own, which says the same.

    Args:
        state: all state.
        queries: those that were answered so far.
        adopted: what goes on with the state of what.
    """
    known = {node.identity for node in queries.graph.nodes}
    heirs: dict[str, list[str]] = {}
    for heir, other in adopted.items():
        if heir not in known:
            heirs.setdefault(other, []).append(heir)
    found = dict(state)
    for (identity, bucket), manifest in state.items():
        for heir in heirs.get(identity, ()):
            found[heir, bucket] = manifest
    return found
