"""In which order a query joins what it reads, by what is seen of its inputs when it is defined."""

from __future__ import annotations

from functools import partial

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import walk
from headrace.engine.analysis import RESULT
from headrace.engine.definitions import Definitions
from headrace.engine.samples import FEW_ROWS, Sampled, calls_user, sampled
from headrace.errors import UserError
from headrace.lowering.costs import expectations
from headrace.lowering.lower import lower
from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.orders import best_order
from headrace.optimizer.join_graph import JoinGraph, Order, Orders
from headrace.optimizer.order_joins import join_orders


def chosen_orders(defined: Definitions, plan: Plan) -> Orders:
    """The orders in which the joins of a plan are expected to take, yield and keep the fewest rows.

    It is the plan's own where nothing can be seen of an input: of a stream that never ends or is timed by
    arrival, or one that cannot be read; and where the plan calls a function of the user's, which is called
    for rows of a run only.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
    """
    if not (present := join_orders(plan, _present)) or calls_user(plan):
        return present
    try:
        look = sampled(defined, walk(plan), FEW_ROWS, None)
    except UserError:
        return present
    return join_orders(plan, partial(_best, look))


def _present(graph: JoinGraph) -> Order:
    return graph.order


def _best(look: Sampled, graph: JoinGraph) -> Order:
    flows = [_flow(look, plan) for plan in graph.inputs]
    return best_order(graph, flows, look.elapsed)


def _flow(look: Sampled, plan: Plan) -> Flow:
    """How the result of a plan is expected to flow."""
    graph = lower({RESULT: plan})
    ((_, number),) = graph.outputs
    return expectations(graph, look.samples, look.sizes, look.elapsed)[number].flow
