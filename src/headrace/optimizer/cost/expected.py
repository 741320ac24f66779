"""What a node is expected to yield and to keep, from how its inputs flow (thesis, sections 22.3 and 22.4).

The output characteristics are the thesis', with two differences that the algebra here makes. An interval join
counts discrete instants, so that two streams of chronons meet at one instant, not at two. And the operators
that map a step function to a step function yield by the rows that their result has at an instant, divided by
how long such a row lasts (Little's law), since here a group's result goes on until it changes.

State is in rows as these operators keep it, not as PIPES' do: a timeline has what is valid at the heartbeat,
by group, and one row for each group and instant above it at which something begins or ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    AnyAggregate,
    ApproximateAggregate,
    BloomFilter,
    Coalesce,
    Distinct,
    Dstream,
    Filter,
    Finalize,
    GapFill,
    Istream,
    Join,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Relation,
    RowWindow,
    Sample,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Source,
    TopK,
    column,
)
from headrace.algebra.tunings.bloom import values_of
from headrace.elements import Int64Array
from headrace.expressions.tree import Expression
from headrace.optimizer.cost.aggregates import aggregated, approximated
from headrace.optimizer.cost.flow import Flow, FlowSample, lasting
from headrace.optimizer.cost.growth import ALL
from headrace.optimizer.cost.matching import joined
from headrace.optimizer.cost.stateless import length, passed, united
from headrace.optimizer.cost.timelines import kept_rows
from headrace.optimizer.cost.tops import topped
from headrace.schema import unique_names
from headrace.time import INFINITY


@dataclass(frozen=True, eq=False)
class Expectation:
    """What is expected of a node in steady state.

    Attributes:
        flow: how its output flows.
        state: the rows that it keeps.
        exact: the rows that it would keep for an exact answer, None where it gives one.
    """

    flow: Flow
    state: float = 0.0
    exact: float | None = None


def expected(plan: Plan, inputs: Sequence[Flow], elapsed: float) -> Expectation:
    """What a node yields and keeps.

    Args:
        plan: the node; no source, and no outer or semi-join, which become other nodes before they run.
        inputs: how its inputs flow.
        elapsed: after so long (instants): what is kept for ever is as large as it is then.
    """
    below = inputs[0]
    match plan:
        case RowWindow() | GapFill():
            return _last_rows(plan, below, elapsed)
        case SessionWindow(gap=gap, keys=keys):
            return _sessions(below, length(gap), keys)
        case SessionAggregate():
            return _session_groups(plan, below, elapsed)
        case Over(keys=keys, aggregates=aggregates):
            reach = max(_reach(frame, below, keys, elapsed) for _, _, frame in aggregates)
            values = below.values + (ALL,) * len(aggregates)
            return Expectation(replace(below, values=values, sample=None), reach)
        case Join():
            kept = sum(side.live for side in inputs if side.lifetime > 1)
            return Expectation(joined(plan, below, inputs[1]), kept)
        case Aggregate() | ApproximateAggregate():
            return _groups(plan, inputs, elapsed)
        case NestedAggregate():
            return _nested(plan, below, elapsed)
        case TopK():
            return Expectation(*topped(plan, below, elapsed))
        case BloomFilter():
            return _known_by_filter(plan, below, elapsed)
        case Distinct() | Coalesce() | Finalize() | Sample() | Istream() | Dstream() | SetOperation():
            return _by_row(plan, inputs)
        case Source() | Relation() | OuterJoin() | SemiJoin():
            raise AssertionError("sources are measured, and semi- and outer joins are expanded before")
        case _:
            return Expectation(passed(plan, inputs, elapsed))


def _last_rows(plan: RowWindow | GapFill, flow: Flow, elapsed: float) -> Expectation:
    """The last rows of partitions; or one row of each series at each step, for as long as it goes on."""
    if isinstance(plan, RowWindow):
        live = flow.among_first(plan.keys, plan.rows, flow.rate * elapsed)
        return Expectation(replace(flow, lifetime=lasting(live, flow.rate), is_open=True), live)
    series = flow.growth(plan.keys).at(flow.rate * min(length(plan.longest), elapsed))
    filled = replace(flow, rate=series / length(plan.step), sample=None)
    return Expectation(filled, series + flow.rate * length(plan.step))


def _groups(plan: AnyAggregate, inputs: Sequence[Flow], elapsed: float) -> Expectation:
    if isinstance(plan, Aggregate):
        return Expectation(*aggregated(plan, united(inputs), elapsed))
    return Expectation(*approximated(plan, inputs[0], elapsed))


def _nested(plan: NestedAggregate, flow: Flow, elapsed: float) -> Expectation:
    """Groups of several windows: what ends is kept once, and what is valid for each window."""
    longest, kept = aggregated(plan.widest, flow, elapsed)
    flows = [longest]
    for size in plan.shorter:
        shorter = replace(flow, lifetime=min(length(size), elapsed))
        found, _ = aggregated(plan.widest, shorter, elapsed)
        flows.append(found)
        kept += shorter.growth(tuple(key for _, key in plan.keys)).at(shorter.live)
    both = united(flows)
    return Expectation(replace(both, values=(*both.values, ALL)), kept)


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
    # All rows of a session begin to be valid with the last one.
    begins = ends - int(gap)
    order = np.argsort(begins, kind="stable")
    valid = replace(sample, rows=rows.take(pa.array(order)), instants=begins[order])
    return Expectation(replace(flow, lifetime=gap, values=values, sample=valid), flow.rate * waits)


_OLD_AND_NEW: Final = 2
"""So many rows there are for one that is replaced whenever another row comes, until runs are merged."""


def _session_groups(plan: SessionAggregate, flow: Flow, elapsed: float) -> Expectation:
    """The groups of sessions: of each that goes on one row is kept, and the rows of the newest instants."""
    sessions = _sessions(flow, length(plan.gap), plan.by)
    rows = sessions.flow
    if plan.condition is not None:
        rows = passed(Filter(plan.written_out.input, plan.condition), [rows], elapsed)
    found, kept = aggregated(plan.written_out, rows, elapsed)
    groups = [key for place, (_, key) in enumerate(plan.keys) if place not in plan.bounds]
    going_on = sum(flow.growth(keys).at(sessions.state) for keys in (groups, plan.by))
    return Expectation(found, kept + _OLD_AND_NEW * going_on)


def _session_bounds(
    sample: FlowSample, gap: float, keys: Sequence[Expression]
) -> tuple[Int64Array, Int64Array]:
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


def _reach(frame: Frame, flow: Flow, keys: Sequence[Expression], elapsed: float) -> float:
    """How many rows are in the frame of some later row."""
    everything = flow.rate * elapsed
    match frame:
        case RangeFrame(size=size):
            return flow.rate * min(length(size), elapsed)
        case RowsFrame(first=None):
            return flow.growth(keys).at(everything)
        case RowsFrame(first=first):
            assert first is not None
            return flow.among_first(keys, first + 1, everything)
        case _:
            assert_never(frame)


def _by_row(
    plan: Distinct | Coalesce | Finalize | Sample | Istream | Dstream | SetOperation, inputs: Sequence[Flow]
) -> Expectation:
    """What compares whole rows: a timeline of them."""
    flow = united(inputs)
    rows = flow.growth(_columns(plan))
    kept = kept_rows(flow, rows)
    different = rows.at(flow.live)
    match plan:
        case Istream() | Dstream():
            return Expectation(replace(flow, lifetime=1.0, is_open=False, is_replaced=False), kept)
        case Coalesce() | Finalize():
            return Expectation(flow, kept)
        case Sample(percent=percent):
            return Expectation(replace(flow, rate=flow.rate * float(percent) / 100, sample=None), kept)
        case SetOperation(kind=SetKind.EXCEPT_ALL | SetKind.EXCEPT_STRICT):
            rate = max(0.0, inputs[0].rate - inputs[1].rate)
            return Expectation(replace(inputs[0], rate=rate, sample=None), kept)
        case _:
            # Each of the rows that are there lasts about as long as an element (equation 22.5).
            rate = min(flow.rate, different / flow.lifetime)
            return Expectation(replace(flow, rate=rate, sample=None), kept)


def _known_by_filter(plan: BloomFilter, flow: Flow, elapsed: float) -> Expectation:
    """The yield of a Bloom filter, with few false negatives: its blocks are kept in the place of values."""
    values = values_of(plan)
    window = replace(flow, lifetime=min(length(plan.size), elapsed), is_open=plan.size.length == INFINITY)
    different = window.growth(values)
    kept, rate = different.at(window.live), min(flow.rate, different.at(window.live) / window.lifetime)
    found = flow if plan.is_chronon else window
    found = replace(found, rate=rate, values=flow.values[: len(values)], sample=None)
    return Expectation(found, min(kept, float(plan.blocks)), exact=kept)


def _columns(plan: Plan) -> tuple[Expression, ...]:
    return tuple(column(plan, place) for place in range(len(plan.schema)))
