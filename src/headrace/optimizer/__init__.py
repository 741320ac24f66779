"""Rewrites of plans into equivalent ones that do less.

In a plan of snapshot-reducible operators every rewrite of the relational algebra holds at every instant
(thesis, lemma 10.2); for windows there are rules of their own. No rule changes what a query answers. Some
change which rows fail on the way, and so what is in the dead letters; each says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.optimizer.coalesce_below_join import coalesce_below_join
from headrace.optimizer.equalities_into_join import equalities_into_join
from headrace.optimizer.fold_constants import fold_constants
from headrace.optimizer.limit_from_row_number import limit_from_row_number
from headrace.optimizer.merge_filters import merge_filters
from headrace.optimizer.merge_projects import merge_projects
from headrace.optimizer.prune_columns import prune_columns
from headrace.optimizer.push_filter_below_join import push_filter_below_join
from headrace.optimizer.push_filter_below_project import push_filter_below_project
from headrace.optimizer.push_filter_below_row_window import push_filter_below_row_window
from headrace.optimizer.push_filter_below_semi_join import push_filter_below_semi_join
from headrace.optimizer.push_filter_below_union import push_filter_below_union
from headrace.optimizer.push_filter_below_window import push_filter_below_window
from headrace.optimizer.push_project_below_row_window import push_project_below_row_window
from headrace.optimizer.remove_now_window import remove_now_window
from headrace.optimizer.remove_trivial_project import remove_trivial_project
from headrace.optimizer.remove_trivial_top_k import remove_trivial_top_k
from headrace.optimizer.remove_unbounded_window import remove_unbounded_window
from headrace.optimizer.rule import Rule, everywhere
from headrace.optimizer.simplify_outer_join import simplify_outer_join

RULES: Final[tuple[Rule, ...]] = (
    everywhere(fold_constants),
    everywhere(remove_now_window),
    everywhere(remove_unbounded_window),
    everywhere(merge_filters),
    everywhere(push_filter_below_project),
    everywhere(push_filter_below_window),
    everywhere(push_filter_below_row_window),
    everywhere(limit_from_row_number),
    everywhere(push_filter_below_union),
    everywhere(simplify_outer_join),
    everywhere(push_filter_below_semi_join),
    everywhere(push_filter_below_join),
    everywhere(equalities_into_join),
    everywhere(push_project_below_row_window),
    everywhere(merge_projects),
    everywhere(remove_trivial_project),
    everywhere(remove_trivial_top_k),
    Rule("prune_columns", prune_columns),
)
"""The rules, in the order in which they are tried."""

LAST_RULES: Final[tuple[Rule, ...]] = (everywhere(coalesce_below_join),)
"""Rules that are applied once, when no other has anything left to do."""

MAX_ROUNDS: Final = 1_000
"""More rounds than any plan needs; a plan that takes more shows that two rules undo each other."""


def optimize(plan: Plan) -> Plan:
    """An equivalent plan that filters early, joins by keys and carries no column that nobody reads."""
    steps = rewrites(plan)
    return steps[-1][1] if steps else plan


def rewrites(plan: Plan) -> list[tuple[str, Plan]]:
    """Every rewrite on the way to the optimized plan: the rule's name and the plan after it."""
    steps: list[tuple[str, Plan]] = []
    for _ in range(MAX_ROUNDS):
        rewritten = _apply(RULES, plan, steps)
        if rewritten == plan:
            _apply(LAST_RULES, plan, steps)
            return steps
        plan = rewritten
    raise AssertionError("the rules undo each other")


def _apply(rules: Sequence[Rule], plan: Plan, steps: list[tuple[str, Plan]]) -> Plan:
    """The plan after each rule in turn; the steps take those that changed something."""
    for rule in rules:
        rewritten = rule.rewrite(plan)
        assert rewritten.schema == plan.schema, f"{rule.name} changed the schema"
        if rewritten != plan:
            steps.append((rule.name, rewritten))
        plan = rewritten
    return plan
