"""Exchanges of plans in a run: what begins and ends one, and what a store keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from headrace.algebra.arrival import Past
from headrace.algebra.nodes import Early, Plan
from headrace.errors import PlanError
from headrace.lowering.adoption import Adopted, adoptions, require_same_places
from headrace.lowering.early import alone
from headrace.lowering.memory import is_strong
from headrace.optimizer.migration import Migration
from headrace.runtime.driver.change.content.whole_sides import begun_sides, takeover_with_sides
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import MIN_INSTANT, format_instant


@dataclass(frozen=True)
class Begun:
    """An exchange that is about to begin.

    Attributes:
        queries: those that are answered from then on.
        adopted: what goes on with the state of what.
        given: what operators of the new plan begin with.
    """

    queries: QuerySet
    adopted: Adopted
    given: Mapping[StateKey, Manifest]


def begun(holding: Holding, name: str, new: Plan, *, is_another: bool = False) -> Begun:
    """The beginning of the exchange of a query's plan.

    Args:
        holding: the queries that are answered, and their state.
        name: whose plan is exchanged.
        new: the plan that takes over.
        is_another: whether it means something else, so that it is what the query is from then on.

    Raises:
        PlanError: the plan cannot be exchanged, and why.
    """
    queries = holding.queries
    require_at_rest(queries, name)
    old = carried_out(queries, name)
    carried = _by_itself(new)
    other = Migration(old, carried, MIN_INSTANT, is_another=True) if is_another else None
    at = max(takeover_with_sides(holding, name, old, other), MIN_INSTANT)
    # Each exchange has operators of its own: what equal ones have said already depends on when they began.
    taken = {known.at for known in queries.migrations.values()}
    at = next(instant for instant in count(at) if instant not in taken)
    migration = Migration(old, carried, at, is_another)
    adopted = adoptions(migration, queries.state_start_of(name), queries.merges)
    if is_another:
        queries = queries.having(name, plan=new)
    both, alone = queries.replacing({name: migration}), queries.replacing({name: migration.new})
    given = begun_sides(holding, name, migration, both.graph)
    if holding.buckets > 1:
        require_same_places(adopted.begin, holding.queries.graph, both.graph)
        require_same_places(adopted.end, both.graph, alone.graph)
    return Begun(both, adopted.begin, given)


def require_at_rest(queries: QuerySet, name: str) -> None:
    """See that a query's plan can be exchanged.

    No exchange of it goes on, none of its operators waits, and all that it has said is final.

    Raises:
        PlanError: it cannot.
    """
    called = queries.name_of(name)
    if queries.holds.get(name):
        raise PlanError(
            f"operators of {called} wait for others, by what it says of HEARTBEATS",
            hint="drop the query, and create it without HEARTBEATS",
        )
    if isinstance(queries.plans[name], Early):
        raise PlanError(
            f"{called} has said what is not final yet, by what it says of CONSISTENCY",
            hint=f"ALTER QUERY {called} SET CONSISTENCY STRONG, and then REOPTIMIZE it",
        )
    if not (is_strong(queries.plans[name]) and is_strong(carried_out(queries, name))):
        raise PlanError(
            f"{called} leaves out rows that are in time for its streams, by what it says of CONSISTENCY",
            hint="drop the query, and create it again: its plan is then chosen anew",
        )
    require_no_exchange(queries, name)


def require_no_exchange(queries: QuerySet, name: str) -> None:
    """See that no exchange of a query's plan goes on.

    Raises:
        PlanError: one does.
    """
    if name in queries.migrations:
        at, called = (
            format_instant(queries.migrations[name].at, queries.plans[name].domain),
            queries.name_of(name),
        )
        raise PlanError(
            f"the plan of {called} is being exchanged already, for one that takes over at {at}",
            hint=f"wait until the heartbeat of {called} has passed {at}, where the new one takes over",
        )


def carried_out(queries: QuerySet, name: str) -> Plan:
    """What a query is carried out as now."""
    return queries.carried_out.get(name) or _by_itself(queries.plans[name])


def _by_itself(plan: Plan) -> Plan:
    """What a plan is carried out as where nothing else is shared than equal plans."""
    return alone(plan)[0]


def ended(
    queries: QuerySet, heartbeats: Mapping[str, int], newest: Mapping[str, int], pasts: Mapping[str, Past]
) -> tuple[QuerySet, Adopted] | None:
    """The queries when new plans that have taken over run alone, and what goes on with the state of what.

    Args:
        queries: those that are answered.
        heartbeats: of the inputs (instants).
        newest: their largest timestamps (instants).
        pasts: what streams had brought before, as far as queries look back to that.

    Returns:
        None where no new plan runs alone from now on.
    """
    done = queries.ended_migrations(heartbeats, newest, pasts)
    if not done:
        return None
    known = {node.identity for node in queries.graph.nodes}
    adopted: dict[str, str] = {}
    over: dict[str, Plan] = {}
    for name, migration in done.items():
        found = adoptions(migration, queries.state_start_of(name), queries.merges).end
        # An operator that another query has may have said what lies ahead in other pieces; so this one waits.
        if found.keys().isdisjoint(known | adopted.keys()):
            adopted |= found
            over[name] = migration.new
    return (queries.replacing(over), adopted) if over else None


def with_adopted(state: Mapping[StateKey, Manifest], adopted: Adopted) -> dict[StateKey, Manifest]:
    """All state, that of some operators under the names of others too.

    Args:
        state: all state.
        adopted: what goes on with the state of what.
    """
    heirs: dict[str, list[str]] = {}
    for heir, other in adopted.items():
        heirs.setdefault(other, []).append(heir)
    found = dict(state)
    for (identity, bucket), manifest in state.items():
        for heir in heirs.get(identity, ()):
            found[heir, bucket] = manifest
    return found
