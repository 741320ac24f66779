"""Rewrites of plans into equivalent ones that do less.

In a plan of snapshot-reducible operators every rewrite of the relational algebra holds at every instant
(thesis, lemma 10.2); for windows there are rules of their own. No rule changes what a query answers. Some
change which rows fail on the way, and so what is in the dead letters; each says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import walk
from headrace.limits import checked
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.joins.aggregate_before_join import aggregate_before_join
from headrace.optimizer.joins.coalesce_below_join import coalesce_below_join
from headrace.optimizer.joins.connect_joins import connect_joins
from headrace.optimizer.joins.distinct_before_join import distinct_before_join
from headrace.optimizer.joins.equalities_into_join import equalities_into_join
from headrace.optimizer.joins.order_joins import in_orders, order_joins
from headrace.optimizer.joins.simplify_outer_join import simplify_outer_join
from headrace.optimizer.pushdown.prune_columns import prune_columns
from headrace.optimizer.pushdown.pull_bounds_above_aggregate import pull_bounds_above_aggregate
from headrace.optimizer.pushdown.pull_window_above_union import pull_window_above_union
from headrace.optimizer.pushdown.push_filter_below_join import push_filter_below_join
from headrace.optimizer.pushdown.push_filter_below_project import push_filter_below_project
from headrace.optimizer.pushdown.push_filter_below_row_window import push_filter_below_row_window
from headrace.optimizer.pushdown.push_filter_below_semi_join import push_filter_below_semi_join
from headrace.optimizer.pushdown.push_filter_below_stream import push_filter_below_stream
from headrace.optimizer.pushdown.push_filter_below_union import push_filter_below_union
from headrace.optimizer.pushdown.push_filter_below_window import push_filter_below_window
from headrace.optimizer.pushdown.push_project_below_row_window import push_project_below_row_window
from headrace.optimizer.pushdown.settle_below_bounds import settle_below_bounds
from headrace.optimizer.rule import Rule, everywhere
from headrace.optimizer.simplify.aggregate_sessions import aggregate_sessions
from headrace.optimizer.simplify.distinct_before_aggregate import distinct_before_aggregate
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups
from headrace.optimizer.simplify.distinct_before_union import distinct_before_union
from headrace.optimizer.simplify.distinct_once import distinct_once
from headrace.optimizer.simplify.events_from_windows import events_from_windows
from headrace.optimizer.simplify.filter_from_case import filter_from_case
from headrace.optimizer.simplify.fold_constants import fold_constants
from headrace.optimizer.simplify.forget_rows_left_out import forget_rows_left_out
from headrace.optimizer.simplify.limit_from_row_number import limit_from_row_number
from headrace.optimizer.simplify.merge_filters import merge_filters
from headrace.optimizer.simplify.merge_project_into_aggregate import merge_project_into_aggregate
from headrace.optimizer.simplify.merge_projects import merge_projects
from headrace.optimizer.simplify.remove_now_window import remove_now_window
from headrace.optimizer.simplify.remove_trivial_project import remove_trivial_project
from headrace.optimizer.simplify.remove_trivial_top_k import remove_trivial_top_k
from headrace.optimizer.simplify.remove_unbounded_window import remove_unbounded_window

RULES: Final[tuple[Rule, ...]] = (
    # First, since a condition that turns out TRUE, or a comparison with a constant, is what others look for.
    everywhere(fold_constants),
    everywhere(filter_from_case),
    # Before filters move: what these windows are over is then passed in one step, and ISTREAM is still
    # beside its window.
    everywhere(remove_now_window),
    everywhere(remove_unbounded_window),
    # Before filters move, so that all conditions at one place move together.
    everywhere(merge_filters),
    # A rule moves a filter by one node, so the order is that in which the binder builds a SELECT, from
    # above: its list, its windows, its joins. A filter that has passed one meets the next in the same round.
    everywhere(push_filter_below_project),
    everywhere(push_filter_below_stream),
    everywhere(push_filter_below_window),
    everywhere(push_filter_below_row_window),
    # After conditions on the partition have left.
    everywhere(forget_rows_left_out),
    # After conditions on rows have left: what is left between a window and its groups reads the bounds.
    everywhere(pull_bounds_above_aggregate),
    # After the bounds have left the keys of aggregates, so that these still know their windows.
    everywhere(events_from_windows),
    # After conditions on the partition have left, which would stay above a limit.
    everywhere(limit_from_row_number),
    everywhere(push_filter_below_union),
    # After the filters above and below a union have passed its windows.
    everywhere(pull_window_above_union),
    # Before filters go below joins: of an inner join both sides take them, of a full join none does.
    everywhere(simplify_outer_join),
    everywhere(push_filter_below_semi_join),
    # Before the conditions on both sides become the join's: what is left of them then is not looked at twice.
    everywhere(push_filter_below_join),
    everywhere(equalities_into_join),
    # After all conditions are at the joins, which say what connects their inputs.
    everywhere(connect_joins),
    # After filters have left, which would lie between a list and its window, or between two lists.
    everywhere(push_project_below_row_window),
    everywhere(merge_projects),
    everywhere(merge_project_into_aggregate),
    # After the merging, which makes projects that only rename and undo the renaming.
    everywhere(remove_trivial_project),
    everywhere(remove_trivial_top_k),
    # Last, since every rule above may take away the last reader of a column. The narrow projects it leaves
    # are merged in the next round.
    Rule("prune_columns", prune_columns, applies=lambda _: True),
)
"""The rules, in the order in which they are tried; any order would end, and be right, after more rounds."""

LAST_RULES: Final[tuple[Rule, ...]] = (
    everywhere(coalesce_below_join),
    everywhere(settle_below_bounds),
    everywhere(aggregate_sessions),
    everywhere(distinct_before_aggregate),
)
"""Rules that are applied once, when no other has anything left to do.

A filter does not pass a Coalesce, and the shape it is put on, a narrow project over an aggregate, is there
only when lists have been merged and columns pruned. Bounds of windows that nobody reads are gone by then, so
that an aggregate is settled only where they are read. What sessions have become one with, no rule looks for,
and what is DISTINCT no rule takes apart.
"""

CHOSEN_RULES: Final[tuple[Rule, ...]] = (
    everywhere(aggregate_before_join),
    everywhere(distinct_before_join),
    # Before the other one, which would take away what this one has put there.
    everywhere(distinct_once),
    everywhere(distinct_before_union),
    everywhere(distinct_before_groups),
)
"""Rules that do not always pay, and are applied, after all others, to the plans for which they are chosen."""

MAX_ROUNDS: Final = 1_000
"""More rounds than any plan needs; a plan that takes more shows that some rules undo each other."""


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
    raise AssertionError(f"these rules undo each other: {', '.join(_alternating(steps))}")


def optimize_by(plan: Plan, decisions: Decisions) -> Plan:
    """The optimized plan for which something was decided."""
    steps = rewrites_by(plan, decisions)
    return steps[-1][1] if steps else plan


def rewrites_by(plan: Plan, decisions: Decisions) -> list[tuple[str, Plan]]:
    """Every rewrite on the way to a plan for which something was decided."""
    steps = [(optimize.__name__, plan), *rewrites(plan)]
    rewritings = [(rule.name, rule.rewrite) for rule in CHOSEN_RULES if rule.name in decisions.rules]
    rewritings.append((order_joins.__name__, lambda below: in_orders(below, decisions.orders)))
    for name, rewrite in rewritings:
        _, below = steps[-1]
        rewritten = rewrite(below)
        if rewritten is not below:
            steps += [(name, rewritten), *rewrites(rewritten)]
    return steps[1:]


def _apply(rules: Sequence[Rule], plan: Plan, steps: list[tuple[str, Plan]]) -> Plan:
    """The plan after each rule in turn; the steps take those that changed something."""
    nodes = list(walk(plan))
    for rule in checked(rules):
        if not rule.applies(nodes):
            continue
        rewritten = rule.rewrite(plan)
        assert rewritten.schema == plan.schema, f"{rule.name} changed the schema"
        if rewritten != plan:
            steps.append((rule.name, rewritten))
            nodes = list(walk(rewritten))
        plan = rewritten
    return plan


def _alternating(steps: Sequence[tuple[str, Plan]]) -> list[str]:
    """The rules between the last plan and the same plan earlier on; all that fired if it was never there."""
    *earlier, (_, last) = steps
    start = max((place for place, (_, plan) in enumerate(earlier, 1) if plan == last), default=0)
    return sorted({name for name, _ in steps[start:]})
