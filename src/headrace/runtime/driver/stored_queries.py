"""The queries of a run as its store has them, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import Plan
from headrace.lowering.early import at_horizon, horizon_of, strong
from headrace.lowering.lower import Holds
from headrace.lowering.memory import memories_of, remembering, remembering_all
from headrace.runtime.driver.query_record import AnsweredQuery, QueryRecord, Reason
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.described_query import DescribedQuery, PausedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.exchanges import unpacked_exchanges, unpacked_last
from headrace.runtime.journal.plans import unpacked_plans, users_in


def stored_queries(
    plans: Mapping[str, Plan],
    present: Description,
    failed: Mapping[str, Reason],
    holds: Mapping[str, Holds] = MappingProxyType({}),
) -> QuerySet:
    """The queries that a store has.

    Args:
        plans: optimized plans by query; those that the store does not have are left out, and others are at
            the level of consistency that they have there.
        present: what the store is for.
        failed: the queries that have ended early, with the reason.
        holds: which of their operators wait for others.
    """
    known = {
        name: plan if name in failed else _as_it_runs(plan, present.answered[name])
        for name, plan in plans.items()
        if name in present.answered
    }
    shared = unpacked_plans(present.shared, users_in(known.values()))
    replaced = unpacked_exchanges(present.exchanges, known)
    exchanged = unpacked_last(present.exchanges, known)
    records: dict[str, QueryRecord] = {}
    for name, plan in known.items():
        one = present.answered[name]
        records[name] = AnsweredQuery(
            plan,
            start=one.start,
            failed=failed.get(name),
            shared=shared.get(name),
            replaced=replaced.get(name),
            warm=one.warm,
            holds=holds.get(name),
            exchanged=exchanged.get(name),
            level=one.level,
            gaps=one.gaps,
            sized_from=one.sized_from,
            lane=one.lane,
        )
    records |= {name: one for name, one in present.queries.items() if isinstance(one, PausedQuery)}
    return QuerySet(records, present.merges, present.names, present.tunings)


def _as_it_runs(plan: Plan, one: DescribedQuery) -> Plan:
    """A query's plan at the level of consistency that it has in a store."""
    known = strong(plan)
    if one.memories is not None:
        known = remembering(remembering_all(known), one.memories)
    return at_horizon(known, one.horizon)


def records_for_store(
    queries: QuerySet, known: Mapping[str, DescribedQuery]
) -> dict[str, DescribedQuery | PausedQuery]:
    """The records of queries for a store.

    Args:
        queries: the queries.
        known: what does not follow from how a query runs, of those that are answered.
    """
    found: dict[str, DescribedQuery | PausedQuery] = {}
    for name, one in queries.records.items():
        if isinstance(one, PausedQuery):
            found[name] = one
        elif name in known:
            found[name] = replace(
                known[name],
                start=one.start,
                warm=one.warm,
                horizon=horizon_of(one.plan),
                memories=_memories(one.plan),
                level=one.level,
                gaps=one.gaps,
                sized_from=one.sized_from,
                lane=one.lane,
            )
    return found


def _memories_of(plan: Plan) -> tuple[Memory, ...]:
    return tuple(memories_of(plan).values())


_memories: Final = ByObject(_memories_of, REMEMBERED)
