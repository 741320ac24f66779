"""What an aggregation is expected to yield and to keep."""

from __future__ import annotations

import math

from headrace.algebra.nodes import Aggregate, ApproximateAggregate
from headrace.expressions.aggregates.functions import KeptValues, function_of
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.aggregates.within import blocks_of, sample_size
from headrace.expressions.tree import AggregateCall, Expression
from headrace.optimizer.cost.flow import Flow, lasting
from headrace.optimizer.cost.growth import ALL, Growth
from headrace.optimizer.cost.timelines import begins, changes, kept_rows, records, steps_ahead
from headrace.optimizer.cost.work import by_order, distinct_inputs, keeps_ends


def aggregated(plan: Aggregate, flow: Flow, elapsed: float) -> tuple[Flow, float]:
    """How the groups flow, and how many rows are kept for them.

    Args:
        plan: the aggregation.
        flow: how its input flows.
        elapsed: for how long (instants).
    """
    groups, at_once = flow.growth(_keys(plan)), flow.at_once(_keys(plan))
    rate = _rate(plan, flow, groups, at_once, elapsed)
    keys = (flow.growth((key,)).among(groups) for key in _keys(plan))
    values = (*keys, *(ALL,) * len(plan.aggregates))
    lifetime = lasting(groups.at(flow.live), rate)
    extremes = _extremes(plan, flow.live / max(groups.at(flow.live), 1e-9))
    found = Flow(rate, lifetime, flow.step, values, is_open=flow.is_open, is_replaced=True, extremes=extremes)
    kept = kept_rows(flow, groups, at_once)
    return found, kept + _distinct_rows(plan, flow) + _live_rows(plan, flow)


def approximated(plan: ApproximateAggregate, flow: Flow, elapsed: float) -> tuple[Flow, float, float]:
    """How groups of approximate aggregates flow, how many rows are kept, and how many an exact one keeps.

    Of a window of n rows there are at most 2 K rows for each of its log2(n / K) + 1 levels, where K is the
    number of blocks, and never more than the window and the one before it have. A sample of K rows keeps
    those that will be among the K first when others have left: K (ln(n / K) + 1) are, in random order.
    """
    found, exact = aggregated(plan.exact, flow, elapsed)
    groups = max(flow.growth(_keys(plan.exact)).at(flow.live), 1e-9)
    size = flow.live / groups
    if plan.is_sampled:
        limits = {sample_size(call) for _, call in plan.aggregates}
        kept = sum(min(size, limit * (math.log(max(size / limit, 1.0)) + 1)) for limit in limits)
        return found, groups * (kept + 1), exact
    blocks = max((blocks_of(call) for _, call in plan.aggregates), default=2)
    levels = math.log2(max(size / blocks, 1.0)) + 1
    return found, groups * min(2 * size, blocks * (1 + levels)), exact


def _extremes(plan: Aggregate, size: float) -> dict[int, float]:
    """Which columns are the largest or the smallest of so many rows."""
    signs = {"MAX": size, "MIN": -size}
    named = enumerate((call.function for _, call in plan.aggregates), len(plan.keys))
    return {place: signs[name] for place, name in named if name in signs}


def _keys(plan: Aggregate) -> tuple[Expression, ...]:
    return tuple(key for _, key in plan.keys)


def _rate(plan: Aggregate, flow: Flow, groups: Growth, at_once: float, elapsed: float) -> float:
    """How often the row of some group changes, per instant."""
    rate = changes(flow, groups, elapsed, at_once)
    if not plan.aggregates or any(
        function_of(call).kept is not KeptValues.ENDS for _, call in plan.aggregates
    ):
        return rate
    # Of the rows of a group one is the largest, and each is so for as long as another.
    size = max(flow.live / max(groups.at(flow.live), 1e-9), 1e-9)
    if flow.lifetime >= elapsed:
        return rate * min(1.0, records(size) / size)
    # It changes where it is among those that end, or another among those that begin.
    once = begins(flow, groups, at_once)
    renewed = min(1.0, flow.rate / max(once, 1e-12) / size)
    return min(rate, once * (1 - (1 - renewed) ** 2))


def _distinct_rows(plan: Aggregate, flow: Flow) -> float:
    """The rows of the timelines of distinct values, one for each argument and condition."""
    kept = 0.0
    for values, call in distinct_inputs(call for _, call in plan.aggregates).items():
        counted = _counted(call, flow)
        kept += kept_rows(counted, counted.growth((*_keys(plan), *values)))
    return kept


def _live_rows(plan: Aggregate, flow: Flow) -> float:
    """The values that aggregates choose from, those of each order once."""
    orders = by_order(call for _, call in plan.aggregates)
    return sum(_live_rows_of(plan, order, calls, flow) for order, calls in orders.items())


def _live_rows_of(plan: Aggregate, order: Ordering, calls: list[AggregateCall], flow: Flow) -> float:
    flow = _counted(calls[0], flow)
    if not keeps_ends(plan, calls):
        return kept_rows(flow, flow.growth((*_keys(plan), *order.expressions)))
    # The first and the last value, and those that are so when what is better has ended.
    groups = flow.growth(_keys(plan)).at(flow.live)
    size = min(flow.live / max(groups, 1e-9), 1.0 if flow.is_open else steps_ahead(flow))
    return groups * records(size) * len({function_of(call).place for call in calls})


def _counted(call: AggregateCall, flow: Flow) -> Flow:
    """The elements that an aggregate counts."""
    return flow if call.condition is None else flow.where(call.condition)
