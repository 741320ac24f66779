"""From a plan node with state to its operator."""

from __future__ import annotations

from typing import assert_never

from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Coalesce,
    Distinct,
    Dstream,
    Finalize,
    GapFill,
    Istream,
    Join,
    LimitedJoin,
    NestedAggregate,
    Over,
    RowWindow,
    Sample,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Stateful,
    TopK,
)
from headrace.algebra.properties import is_insert_only
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.aggregates.nested import NestedAggregateOperator
from headrace.operators.contract import Operator, Report
from headrace.operators.early_regions import TimelineOperator
from headrace.operators.join import JoinOperator
from headrace.operators.limited_join import LimitedJoinOperator
from headrace.operators.presence import (
    ChangeOperator,
    CoalesceOperator,
    DistinctOperator,
    FinalizeOperator,
    SetOperator,
)
from headrace.operators.sample import SampleOperator
from headrace.operators.top_k.top_k import TopKOperator
from headrace.operators.windows.approximate_aggregates import ApproximateOperator
from headrace.operators.windows.bloom_filters import BloomFilterOperator
from headrace.operators.windows.gaps import GapFillOperator
from headrace.operators.windows.over import OverOperator
from headrace.operators.windows.rows import RowWindowOperator
from headrace.operators.windows.sampled_aggregates import SampledOperator
from headrace.operators.windows.session_aggregates import SessionAggregateOperator
from headrace.operators.windows.sessions import SessionOperator


def create_operator(plan: Stateful, reduced: bool, report: Report) -> Operator:
    """The operator of a node that keeps state.

    Args:
        plan: the node.
        reduced: whether its input was reduced before an exchange (`headrace.operators.before_exchange`).
        report: receives the elements for which an expression fails, or that take back what is not there.
    """
    match plan:
        case Aggregate() | NestedAggregate():
            return _aggregation(plan, reduced, report)
        case TopK():
            return TopKOperator(plan, reduced)
        case Distinct() | SetOperation() | Coalesce() | Finalize() | Sample():
            return _of_whole_rows(plan, report)
        case Istream() | Dstream():
            return ChangeOperator(plan)
        case LimitedJoin():
            return LimitedJoinOperator(plan, report)
        case Join():
            return JoinOperator(plan, report)
        case RowWindow() | GapFill():
            return RowWindowOperator(plan) if isinstance(plan, RowWindow) else GapFillOperator(plan)
        case Over():
            return OverOperator(plan, report)
        case SessionWindow():
            return SessionOperator(plan)
        case SessionAggregate():
            return SessionAggregateOperator(plan, report)
        case BloomFilter() | ApproximateAggregate():
            return _approximate(plan, report)
        case _:
            assert_never(plan)


def create_timeline_operator(plan: Stateful, reduced: bool, report: Report) -> TimelineOperator | None:
    """The operator of a node whose state is one timeline, and whose answer at t is of the input at t.

    None for others: those that depend on further rows of the input or on those before t, and the aggregates
    of distinct values.

    Args:
        plan: the node.
        reduced: whether its input was reduced before an exchange (`headrace.operators.before_exchange`).
        report: receives the elements for which an expression fails, or that take back what is not there.
    """
    match plan:
        case Aggregate():
            aggregate = AggregateOperator(plan, reduced, is_insert_only(plan.input), report)
            return aggregate if aggregate.is_one_timeline else None
        case Distinct() | SetOperation() | Coalesce() | Finalize() | Sample():
            return _of_whole_rows(plan, report)
        case _:
            return None


def _approximate(plan: BloomFilter | ApproximateAggregate, report: Report) -> Operator:
    if isinstance(plan, BloomFilter):
        return BloomFilterOperator(plan, report)
    operator = SampledOperator if plan.is_sampled else ApproximateOperator
    return operator(plan, report)


def _aggregation(plan: Aggregate | NestedAggregate, reduced: bool, report: Report) -> Operator:
    if isinstance(plan, NestedAggregate):
        return NestedAggregateOperator(plan, reduced, report)
    return AggregateOperator(plan, reduced, is_insert_only(plan.input), report)


def _of_whole_rows(
    plan: Distinct | SetOperation | Coalesce | Finalize | Sample, report: Report
) -> TimelineOperator:
    match plan:
        case Distinct():
            return DistinctOperator(plan)
        case SetOperation():
            return SetOperator(plan)
        case Coalesce():
            return CoalesceOperator(plan)
        case Finalize():
            return FinalizeOperator(plan, report)
        case Sample():
            return SampleOperator(plan)
