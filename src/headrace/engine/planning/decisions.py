"""What is decided about how a query runs, by what is seen of its inputs when it is defined."""

from __future__ import annotations

from functools import partial
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import walk
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.engine.planning.few_groups import come_in_bulk, has_few_groups
from headrace.engine.planning.samples import FEW_ROWS, LookAtRun, Sampled, flow_in, sampled, unseen
from headrace.errors import UserError
from headrace.lowering.costs import calls_user, expectations, seconds
from headrace.lowering.lower import lower
from headrace.optimizer import CHOSEN_RULES, optimize
from headrace.optimizer.cost.orders import best_order
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.joins.join_graph import JoinGraph, JoinOrder
from headrace.optimizer.joins.order_joins import join_orders
from headrace.optimizer.rule import Rule
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups

_MARGIN: Final = 0.9
"""A rule is chosen if the plan costs less than this part of what it costs without."""


def decided(defined: Definitions, plan: Plan, look: LookAtRun = unseen) -> Decisions | None:
    """The rules and join orders by which a plan takes the least processor time, or more tasks share it.

    Nothing where nothing can be seen of an input: of a stream that never ends and of which no run has had
    rows, one that is timed by arrival, or one that cannot be read; and where the plan calls a function of the
    user's, which is called for rows of a run only.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
        look: says what the run has seen of streams that never end.

    Returns:
        What was decided; None where there is nothing to decide.
    """
    nodes = list(walk(plan))
    rules = [rule for rule in CHOSEN_RULES if rule.applies(nodes)]
    present = join_orders(plan, _present)
    if not rules and not present:
        return None
    if calls_user(plan):
        return Decisions((), present)
    try:
        rules = [rule for rule in rules if not _spreads(rule) or come_in_bulk(defined, nodes)]
        if not rules and not present:
            return None
        seen = sampled(defined, nodes, FEW_ROWS, None, look)
    except UserError:
        return Decisions((), present)
    chosen: list[str] = []
    for rule in rules:
        other = optimize(rule.rewrite(plan))
        if _pays(seen, rule, plan, other):
            plan = other
            chosen.append(rule.name)
    return Decisions(tuple(chosen), join_orders(plan, partial(_best, seen)))


def _pays(look: Sampled, rule: Rule, plan: Plan, other: Plan) -> bool:
    """Whether a plan is to be replaced by what a rule makes of it."""
    if _spreads(rule):
        return has_few_groups(look, plan)
    return _cost(look, other) < _MARGIN * _cost(look, plan)


def _spreads(rule: Rule) -> bool:
    """Whether a rule is for many tasks, and not for less work."""
    return rule.name == distinct_before_groups.__name__


def _cost(look: Sampled, plan: Plan) -> float:
    """The processor time that the operators of a plan are expected to take (seconds)."""
    graph = lower({RESULT: plan})
    found = expectations(graph, look.samples, look.sizes, look.elapsed)
    return sum(seconds(graph, found, look.elapsed))


def _present(graph: JoinGraph) -> JoinOrder:
    return graph.order


def _best(look: Sampled, graph: JoinGraph) -> JoinOrder:
    flows = [flow_in(look, plan) for plan in graph.inputs]
    return best_order(graph, flows, look.elapsed)
