"""The filter of a query that lets nothing through, where one operator tests the filters of many queries."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.explain import describe
from headrace.algebra.nodes import Filter, Match, Plan, TimeWindow
from headrace.algebra.properties import is_stateful, walk
from headrace.engine.shown.status import Status, instant_text
from headrace.engine.why.finding import Finding
from headrace.runtime.driver.facts.status import QueryStatus


def passing_nothing(status: Status, query: QueryStatus, plan: Plan) -> Iterator[Finding]:
    """What there is to say of a filter that shares an operator with others, which has rows for some of them.

    Nothing is known of single filters there but what the queries have said. Of a query that aggregates that
    is known below its heartbeat, where its windows begin with their rows.

    Args:
        status: of the run.
        query: one of it.
        plan: the query's.
    """
    below = [status.graph.nodes[number] for number in status.graph.below(query.chain[0].node)]
    taken = [status.operators[node.number] for node in below if isinstance(node.plan, Match)]
    filters = [node for node in walk(plan) if isinstance(node, Filter)]
    if query.changes or len(filters) != 1 or not any(operator.rows_in for operator in taken):
        return
    which = "so far"
    if any(map(is_stateful, walk(plan))):
        firsts = (status.operators[node.number].first for node in below if node.reads is not None)
        first = min((one for one in firsts if one is not None), default=None)
        slides = any(node.slide.length > 1 for node in walk(plan) if isinstance(node, TimeWindow))
        if slides or first is None or first >= query.heartbeat:
            return
        which = f"below {instant_text(query.heartbeat, query.domain)}"
    yield Finding(f"no row {which} passes {describe(filters[0])}", "compare the condition with the rows")
