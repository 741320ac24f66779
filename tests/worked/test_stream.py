"""Figure 2 of STREAM's paper: two plans that share the join of R and S."""

from __future__ import annotations

from golden.case import CASES, load
from headrace.algebra.nodes import Join, RowWindow
from headrace.lowering.lower import lower


def test_the_plans_of_figure_2_share_a_join() -> None:
    # Both are golden files; their plans as written are those of the figure.
    queries = ("selection_over_join", "join_of_three")
    plans = {name: load(CASES / f"stream_{name}.txt").plan for name in queries}
    graph = lower(plans)
    joins = [node for node in graph.nodes if isinstance(node.plan, Join)]
    shared = [node for node in joins if graph.users[node.number] == queries]
    assert (len(joins), len(shared)) == (2, 1)
    assert sum(isinstance(node.plan, RowWindow) for node in graph.nodes) == 3
