"""The physical graph as text: levels, operators, and what travels between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from headrace.algebra.bounds import bounded_by, has_unbounded_state
from headrace.algebra.explain import describe
from headrace.algebra.nodes import Aggregate, Distinct, Match, Plan, TopK, column, inputs_of
from headrace.algebra.properties import is_stateful
from headrace.expressions.render import render
from headrace.lowering.behind import declared_plan
from headrace.lowering.graph import Graph
from headrace.lowering.node import Edge, Exchange, Node, Spread


def explain_graph(
    graph: Graph,
    query: str | None = None,
    notes: Mapping[int, str] = MappingProxyType({}),
    name_of: Callable[[str], str] = str,
) -> str:
    """One line per node, by level, with its inputs and whether it keeps state.

    Args:
        graph: the graph.
        query: whose part of it is wanted; all of it if None.
        notes: what follows a node's line, by its number.
        name_of: says what queries are called.

    Example:
        level 0
          #0 Source bid (auction, price)
          #1 TimeWindow RANGE 60 SECONDS  <- #0
        level 1
          #2 Aggregate BY auction: COUNT(*)  <- #1 by hash of auction  [state]
        result <- #2
    """
    outputs = [(name, output) for name, output in graph.outputs if query in (None, name)]
    wanted = frozenset[int]().union(*(graph.below(graph.node_of(output)) for _, output in outputs))
    lines = []
    for level, nodes in enumerate(graph.by_level):
        shown = [node for node in nodes if query is None or node.number in wanted]
        lines += [f"level {level}"] if shown else []
        for node in shown:
            lines.append(f"  {_node(node)}")
            lines += [f"       {notes[node.number]}"] if node.number in notes else []
    lines += [f"{name_of(name)} <- {_output(graph, output)}" for name, output in outputs]
    return "\n".join(lines)


def _output(graph: Graph, output: int) -> str:
    node = graph.node_of(output)
    if output == node:
        return f"#{node}"
    plan = graph.nodes[node].plan
    constant = graph.groups_of[node][output]
    for below in sorted(graph.below(node)):
        if isinstance(match := graph.nodes[below].plan, Match):
            found = next(part for number, part in match.predicates if number == constant.value)
            return f"#{node} of rows with {render(found)}"
    last = column(plan, len(plan.schema) - 1)
    return f"#{node} where {render(last)} = {render(constant)}"


def operator_text(plan: Plan) -> str:
    """The work of an operator, in a line; what a lane reads has the name with which it is declared.

    Args:
        plan: the operator's, with all that is below it.
    """
    return describe(declared_plan(plan))


def _node(node: Node) -> str:
    inputs = ", ".join(_edge(node, port, edge) for port, edge in enumerate(node.inputs))
    text = f"#{node.number} {operator_text(node.plan)}" + (f"  <- {inputs}" if inputs else "")
    if not is_stateful(node.plan):
        return text
    waits = "".join(f", waits for #{other}" for other in node.waits_for)
    unbounded = any(has_unbounded_state(below) for below in inputs_of(node.plan))
    grows = has_unbounded_state(node.plan) and not unbounded
    bounding = bounded_by(node.plan) if grows else None
    growth = " that grows without bound" * grows + (f": {bounding}" if bounding else "")
    return f"{text}  [state{growth}{waits}]"


def _edge(node: Node, port: int, edge: Edge) -> str:
    if edge.exchange is None:
        return f"#{edge.producer}"
    return f"#{edge.producer} {_exchange(edge.exchange)}"


def _exchange(exchange: Exchange) -> str:
    match exchange.spread:
        case Spread.COPY:
            text = "to every bucket"
        case Spread.ROW:
            text = "by hash of the row"
        case Spread.KEY if exchange.keys:
            text = "by hash of " + ", ".join(render(key) for key in exchange.keys)
        case _:
            text = "to one bucket"
    match exchange.reduced_for:
        case Aggregate():
            return f"{text}, added up before"
        case TopK():
            return f"{text}, without what cannot be shown"
        case Distinct():
            return f"{text}, without repetitions"
        case None:
            return text
