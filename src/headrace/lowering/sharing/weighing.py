"""Whether a join that filters leave few rows is less work than a filter above the join of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from headrace.algebra.nodes import Join, Plan
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.optimizer.cost.expected import Expectation
from headrace.optimizer.cost.machine import MACHINE
from headrace.optimizer.cost.work import Work, WorkKind

Look: TypeAlias = Callable[[Graph], Sequence[Expectation] | None]
"""What is expected of the nodes of a graph; None where nothing is known of their inputs."""

FILTERED: Final = MACHINE.seconds((Work(WorkKind.PASS, 1.0), Work(WorkKind.COMPUTE, 1.0))) / (
    MACHINE.seconds((Work(WorkKind.JOIN, 0.5, 0.5),))
)
"""The time in which a filter looks at a row, by that in which a join takes or yields one."""


@dataclass(frozen=True)
class Weighed:
    """Two ways to carry out a join that is wanted without its filters as well.

    Attributes:
        own: the rows that a join of its own takes and yields (per instant).
        looked_at: the rows of the wider join's result, which a filter looks at (per instant).
    """

    own: float
    looked_at: float

    @property
    def is_shared(self) -> bool:
        """Whether the filter above is less work."""
        return self.looked_at * FILTERED <= self.own


def shows_nothing(_: Graph) -> None:
    """The expectations of nodes of whose inputs nothing is known."""
    return


def weighed(pairs: Sequence[tuple[Plan, Plan]], look: Look) -> list[Weighed | None]:
    """What joins and wider ones are expected to do; None where nothing is known of their inputs.

    Args:
        pairs: a join with its filters below it, and columns picked from it; and the same without filters.
        look: says what is expected, asked once for all.
    """
    plans = {f"{place} {side}": plan for place, pair in enumerate(pairs) for side, plan in enumerate(pair)}
    graph = lower(plans, shared=plans)
    expected = look(graph) if pairs else None
    if expected is None:
        return [None] * len(pairs)
    joins = {name: graph.nodes[_join_at(graph, number)] for name, number in graph.outputs}
    found: list[Weighed | None] = []
    for place in range(len(pairs)):
        own, wider = joins[f"{place} 0"], joins[f"{place} 1"]
        taken = sum(expected[edge.producer].flow.rate for edge in own.inputs)
        found.append(Weighed(taken + expected[own.number].flow.rate, expected[wider.number].flow.rate))
    return found


def _join_at(graph: Graph, output: int) -> int:
    number = graph.node_of(output)
    while not isinstance(graph.nodes[number].plan, Join):
        (edge,) = graph.nodes[number].inputs
        number = edge.producer
    return number
