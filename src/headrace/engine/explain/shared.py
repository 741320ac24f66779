"""EXPLAIN SHARED: which operators queries have in common, and what was decided about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headrace.algebra.explain import describe
from headrace.algebra.nodes import Filter, Join, Plan
from headrace.algebra.properties import is_stateful, walk
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.planning.samples import looked_at
from headrace.expressions.render import render
from headrace.lowering.explain import explain_graph
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.matched_groups import matched_groups
from headrace.lowering.sharing.share import SharingChoice, share
from headrace.lowering.sharing.weighing import FILTERED
from headrace.time import MICROSECONDS, TimeDomain

MOST_NAMED = 5
"""So many queries are named beside an operator; of more, how many there are."""


def shared_by(defined: Definitions, plans: Mapping[str, Plan]) -> str:
    """The operators of queries that start together, each with its users, and what was decided.

    Args:
        defined: the streams and relations.
        plans: optimized plans by query name.
    """
    shared = share(plans, lambda graph: looked_at(defined, graph))
    others = {name: plan for name, plan in plans.items() if name not in shared.plans}
    graph = lower(plans, shared={**shared.plans, **matched_groups(others, {})})
    apart = sum(_stateful(lower({name: plan})) for name, plan in plans.items())
    return "\n".join(
        [
            users_of(graph),
            *map(_decision, shared.choices),
            f"operators with state: {_stateful(graph):,}, where queries that start together share them; "
            f"{_stateful(lower(plans)):,}, where equal plans alone do; {apart:,}, where none does",
        ]
    )


def users_of(graph: Graph, name_of: Callable[[str], str] = str) -> str:
    """The operators of some queries, each with its users.

    Args:
        graph: the operators.
        name_of: says what queries are called.
    """
    used = {node.number: [*map(name_of, graph.users[node.number])] for node in graph.nodes}
    notes = {number: _users(names, len(graph.outputs)) for number, names in used.items()}
    return explain_graph(graph, None, notes, name_of)


def _stateful(graph: Graph) -> int:
    return sum(is_stateful(node.plan) for node in graph.nodes)


def _users(queries: Sequence[str], everyone: int) -> str:
    if len(queries) == everyone > 1:
        return f"for all {everyone:,} queries"
    named = ", ".join(queries[:MOST_NAMED])
    return f"for {named}" + (f" and {len(queries) - MOST_NAMED:,} more" if len(queries) > MOST_NAMED else "")


def _decision(choice: SharingChoice) -> str:
    """What was decided about a join that is wanted without its filters as well, and why."""
    join = next(node for node in walk(choice.join) if isinstance(node, Join))
    filters = [render(node.predicate) for node in walk(choice.join) if isinstance(node, Filter)]
    where = "above the join without it" if choice.is_shared else "below a join of its own"
    decided = f"{describe(join)}: filtered by {', '.join(filters)} {where}"
    if choice.weighed is None:
        return f"{decided}; nothing is known of its inputs"
    own, looked = choice.weighed.own, choice.weighed.looked_at
    if join.domain is TimeDomain.TIMESTAMP:
        own, looked, per = own * MICROSECONDS["SECOND"], looked * MICROSECONDS["SECOND"], "rows/s"
    else:
        per = "rows per instant"
    return (
        f"{decided}; a join of its own takes and yields {own:,.3g} {per}, a filter above looks at "
        f"{looked:,.3g}, each in {FILTERED:.2g} of the time"
    )
