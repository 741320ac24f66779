"""What a node is expected to yield and to keep, from how its inputs flow (thesis, sections 22.3 and 22.4).

The output characteristics are the thesis', with two differences that the algebra here makes. An interval join
counts discrete instants, so that two streams of chronons meet at one instant, not at two. And the operators
that map a step function to a step function yield by the rows that their result has at an instant, divided by
how long such a row lasts (Little's law), since here a group's result goes on until it changes.

State is in rows as these operators keep it, not as PIPES' do: a timeline has what is valid at the heartbeat,
by group, and one row for each group and instant above it at which something begins or ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Dstream,
    Istream,
    Join,
    OuterJoin,
    Over,
    Plan,
    Relation,
    RowWindow,
    SemiJoin,
    SessionWindow,
    SetOperation,
    Source,
    TopK,
    column,
)
from headrace.algebra.properties import is_insert_only
from headrace.elements import Int64Array
from headrace.expressions.aggregate_functions import Kept, function_of
from headrace.expressions.tree import Expression, expressions_of
from headrace.optimizer.cost.flow import Flow, Sample, lasting
from headrace.optimizer.cost.growth import ALL, Growth
from headrace.optimizer.cost.matching import joined
from headrace.optimizer.cost.stateless import length, passed, united
from headrace.schema import unique_names


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is expected of a node in steady state.

    Attributes:
        flow: how its output flows.
        state: the rows that it keeps.
    """

    flow: Flow
    state: float = 0.0


def expected(plan: Plan, inputs: Sequence[Flow], elapsed: float) -> Expectation:
    """What a node yields and keeps.

    Args:
        plan: the node; no source, and no outer or semi-join, which become other nodes before they run.
        inputs: how its inputs flow.
        elapsed: after so long (instants): what is kept for ever is as large as it is then.
    """
    below = inputs[0]
    match plan:
        case RowWindow(rows=rows, keys=keys):
            live = min(below.growth(keys).at(below.rate * elapsed) * rows, below.rate * elapsed)
            return Expectation(replace(below, lifetime=lasting(live, below.rate)), live)
        case SessionWindow(gap=gap, keys=keys):
            return _sessions(below, length(gap), keys)
        case Over(keys=keys, aggregates=aggregates):
            partitions = below.growth(keys)
            reach = max(_reach(frame, below.rate, partitions, elapsed) for _, _, frame in aggregates)
            values = below.values + (ALL,) * len(aggregates)
            return Expectation(replace(below, values=values, sample=None), reach)
        case Join():
            kept = sum(side.live for side in inputs if side.lifetime > 1)
            return Expectation(joined(plan, below, inputs[1]), kept)
        case Aggregate():
            return _aggregate(plan, united(inputs))
        case TopK():
            return _top(plan, below)
        case Distinct() | Coalesce() | Istream() | Dstream() | SetOperation():
            return _by_row(plan, inputs)
        case Source() | Relation() | OuterJoin() | SemiJoin():
            raise AssertionError("sources are measured, and semi- and outer joins are expanded before")
        case _:
            return Expectation(passed(plan, inputs, elapsed))


def _sessions(flow: Flow, gap: float, keys: Sequence[Expression]) -> Expectation:
    """Sessions, as they are in the sample: their rows are kept until they are over."""
    values = (*flow.values, ALL, ALL)
    if flow.sample is None or not len(flow.sample.instants):
        found = replace(flow, lifetime=gap, values=values, sample=None)
        return Expectation(found, flow.rate * gap)
    sample, starts, ends = flow.sample, *_session_bounds(flow.sample, gap, keys)
    names = unique_names([*sample.rows.schema.names, "start", "end"])
    columns = [*sample.rows.columns, pa.array(starts), pa.array(ends)]
    rows = pa.RecordBatch.from_arrays(columns, names=list(names))
    waits = float(np.mean(ends - sample.instants))
    found = replace(flow, lifetime=gap, values=values, sample=replace(sample, rows=rows))
    return Expectation(found, flow.rate * waits)


def _session_bounds(sample: Sample, gap: float, keys: Sequence[Expression]) -> tuple[Int64Array, Int64Array]:
    """int64[n] and int64[n]: where the session of each row starts and ends (instants)."""
    codes, instants = sample.codes(keys), sample.instants
    order = np.lexsort((instants, codes))
    new = (np.diff(codes[order]) != 0) | (np.diff(instants[order]) >= gap)
    session = np.concatenate([[0], np.cumsum(new)])
    first, last = np.flatnonzero(np.append(True, new)), np.flatnonzero(np.append(new, True))
    starts, ends = np.empty_like(instants), np.empty_like(instants)
    starts[order] = instants[order][first][session]
    ends[order] = instants[order][last][session] + int(gap)
    return starts, ends


def _reach(frame: Frame, rate: float, partitions: Growth, elapsed: float) -> float:
    """How many rows are in the frame of some later row."""
    match frame:
        case RangeFrame(size=size):
            return rate * min(length(size), elapsed)
        case RowsFrame(first=None):
            return partitions.at(rate * elapsed)
        case RowsFrame(first=first):
            assert first is not None
            return min(rate * elapsed, partitions.at(rate * elapsed) * (first + 1))
        case _:
            assert_never(frame)


def _aggregate(plan: Aggregate, flow: Flow) -> Expectation:
    """A timeline of the groups, and of the values in them where the aggregates need those."""
    keys = tuple(key for _, key in plan.keys)
    groups = flow.growth(keys)
    kept = _timeline(flow, groups)
    for _, call in plan.aggregates:
        if call.distinct or function_of(call).kept is Kept.VALUES:
            kept += _timeline(flow, flow.growth((*keys, *expressions_of(call))))
    live = groups.at(flow.live)
    rate = _changes(flow, groups)
    if plan.aggregates and all(function_of(call).kept is Kept.ENDS for _, call in plan.aggregates):
        # Of the rows of a group one is the largest, and each is so for as long as another.
        rate *= min(1.0, live / max(flow.live, 1e-9))
    values = (*(flow.growth((key,)) for key in keys), *(ALL,) * len(plan.aggregates))
    return Expectation(Flow(rate, lasting(live, rate), flow.step, values), kept)


def _timeline(flow: Flow, groups: Growth) -> float:
    """The rows of a timeline: groups now, and per group the instants ahead at which something changes."""
    per_step = groups.at(flow.rate * flow.step)
    steps = max(1.0, flow.lifetime / flow.step)
    # What has come since the last step begins and ends ahead.
    begun = 2 * groups.at(flow.rate * flow.step / 2) if flow.step > 1 else 0.0
    return groups.at(flow.live) + min(flow.live, per_step * steps) + begun


def _changes(flow: Flow, groups: Growth) -> float:
    """How often the row of some group changes, per instant: where an element begins, and where one ends.

    In the thesis these are 2/d for each group (equations 22.6, 22.7), less where several fall on an instant.
    """
    per_step = groups.at(flow.rate * flow.step)
    both = 2.0 if flow.lifetime > flow.step else 1.0
    return min(both * per_step, both * groups.at(flow.live)) / flow.step


def _top(plan: TopK, flow: Flow) -> Expectation:
    """The rows of each group that have a place, or may come to have one (the k-skyband)."""
    groups = flow.growth(plan.keys)
    if plan.limit is None:
        return Expectation(_numbered(plan, flow), flow.live)
    number = max(1.0, groups.at(flow.live))
    places = plan.limit + plan.offset
    size = flow.live / number
    shown = min(size, places)
    band = shown * (1 + math.log(max(1.0, size / max(shown, 1e-9))))
    kept = number * band if is_insert_only(plan.input) else flow.live
    changed = flow.rate * min(1.0, shown / max(size, 1e-9))
    return Expectation(
        replace(_numbered(plan, flow), rate=changed, lifetime=lasting(number * shown, changed)), kept
    )


def _numbered(plan: TopK, flow: Flow) -> Flow:
    added = () if plan.number is None else (ALL,)
    return replace(flow, values=flow.values + added, sample=None)


def _by_row(
    plan: Distinct | Coalesce | Istream | Dstream | SetOperation, inputs: Sequence[Flow]
) -> Expectation:
    """What compares whole rows: a timeline of them."""
    flow = united(inputs)
    rows = flow.growth(_columns(plan))
    kept = _timeline(flow, rows)
    different = rows.at(flow.live)
    match plan:
        case Istream() | Dstream():
            return Expectation(replace(flow, lifetime=1.0), kept)
        case Coalesce():
            return Expectation(flow, kept)
        case SetOperation(kind=SetKind.EXCEPT_ALL | SetKind.EXCEPT_STRICT):
            rate = max(0.0, inputs[0].rate - inputs[1].rate)
            return Expectation(replace(inputs[0], rate=rate, sample=None), kept)
        case _:
            # Each of the rows that are there lasts about as long as an element (equation 22.5).
            rate = min(flow.rate, different / flow.lifetime)
            return Expectation(replace(flow, rate=rate, sample=None), kept)


def _columns(plan: Plan) -> tuple[Expression, ...]:
    return tuple(column(plan, place) for place in range(len(plan.schema)))
