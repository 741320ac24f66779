"""What operators that are new hold and yield at first, computed from what holds of the answers below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from headrace.algebra.nodes import Early, Plan, Stateful, inputs_of
from headrace.algebra.properties import is_stateful, is_stateless
from headrace.elements import Batch, concat
from headrace.errors import PlanError
from headrace.lowering.graph import Graph
from headrace.lowering.identity import shape
from headrace.lowering.node import Node
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.stateless import apply
from headrace.runtime.driver.change.content.at_once import AtOnce

RUNS_ALREADY: Final = "an operator above the answer that it reads is part of a query that runs"
"""Why something cannot begin above an answer."""


class LiveContent:
    """A part of a query above the answers of others, computed at once, in this process.

    An operator whose content at an instant depends on its inputs' contents at that instant alone needs no
    more of them than what they say of the instants to come. It is given that as if it came with an epoch.

    Args:
        answers: the answers below, each with its elements from an instant on.
        since: that instant.
        graph: with the query.
        query: its name.
        running: what an operator has said of the instants from `since` on that runs already and holds what
            it holds; None for one that is new.
        heartbeats: of the nodes of the graph (instants).
        at_once: runs the operators that are new.
        report: receives the elements for which an expression fails.
        beyond: what an operator that runs says beyond its heartbeat.
    """

    def __init__(
        self,
        answers: Iterable[tuple[Plan, Batch]],
        since: int,
        graph: Graph,
        query: str,
        running: Callable[[Node, Stateful], Batch | None],
        heartbeats: Sequence[int],
        at_once: AtOnce,
        report: Report,
        beyond: Callable[[Early], Batch],
    ) -> None:
        self._found = {id(plan): batch for plan, batch in answers}
        self._since = since
        self._nodes = _nodes_of(graph, query)
        self._running = running
        self._heartbeats = heartbeats
        self._at_once = at_once
        self._report = report
        self._beyond = beyond

    def of(self, plan: Plan) -> Batch:
        """The elements that a part of the query yields, from the instant on.

        Raises:
            PlanError: some operator of it runs already, and what it has said is not known; or it is carried
                out as another one.
            ExecutionError: an aggregate fails.
        """
        if id(plan) not in self._found:
            if isinstance(plan, Early) and plan.corrects:
                self._found[id(plan)] = concat(plan.schema, [self.of(plan.input), self._beyond(plan)])
            elif is_stateless(plan):
                parts = [apply(plan, self.of(below), self._report) for below in inputs_of(plan)]
                self._found[id(plan)] = concat(plan.schema, parts)
            else:
                assert is_stateful(plan)
                self._found[id(plan)] = self._operated(plan)
        return self._found[id(plan)]

    def _operated(self, plan: Stateful) -> Batch:
        node = self._nodes.get(shape(plan))
        if node is None:
            raise PlanError(RUNS_ALREADY)
        if (said := self._running(node, plan)) is not None:
            return said
        below = inputs_of(plan)
        if len(below) < len(node.inputs):
            # An aggregation that reads the inputs of a union one by one.
            below = inputs_of(below[0])
        after = tuple(self._heartbeats[edge.producer] for edge in node.inputs)
        progress = OperatorProgress((self._since,) * len(after), after)
        return self._at_once.operated(node, plan, [self.of(part) for part in below], progress, {})


def _nodes_of(graph: Graph, query: str) -> dict[str, Node]:
    """The operators of a query by their shapes; all have one start."""
    output = graph.node_of(dict(graph.outputs)[query])
    return {graph.nodes[number].shape: graph.nodes[number] for number in graph.below(output)}
