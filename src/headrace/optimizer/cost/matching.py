"""How many pairs a join is expected to make.

The thesis takes a part of all pairs with overlapping intervals (equations 22.4 and 22.1). Where rows of both
inputs are known that part is counted; but it depends on how far apart the two are: nearly all bids on an
auction follow within minutes of it. So what is counted is how many earlier rows of the other input a row
meets, by how far back they may lie. For longer than the sample reaches the number is taken to grow on as a
power of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Join
from headrace.elements import Int64Array
from headrace.expressions.tree import Column, Expression
from headrace.optimizer.cost.flow import Flow, FlowSample

_REACH: Final = 2
"""A sample is long enough for rows that meet others up to one part in so many of its length before them."""
_SHORTER: Final = 4
"""How a number of matches grows is seen by comparing it with the one for a length so many times shorter."""
_PAIRS: Final = 100_000
"""A sample of pairs has at most so many."""


def joined(plan: Join, left: Flow, right: Flow) -> Flow:
    """How the pairs of a join flow."""
    rate = _rate_of_matches(plan, left, right)
    lifetime = max(1.0, left.lifetime * right.lifetime / _overlap(left, right))
    sample = _pairs(plan, left, right, rate)
    values = left.values + right.values
    width = len(left.values)
    extremes = {**left.extremes, **{place + width: rows for place, rows in right.extremes.items()}}
    is_open = left.is_open and right.is_open
    flow = Flow(rate, lifetime, min(left.step, right.step), values, sample, is_open, extremes=extremes)
    if plan.residual is None:
        return flow
    kept = None if sample is None else sample.kept(plan.residual)
    return replace(flow, rate=flow.rate * flow.selectivity(plan.residual), sample=kept)


def _overlap(left: Flow, right: Flow) -> float:
    """For how long elements of one input begin that are valid together with one of the other (instants).

    All begin and end at steps, so that one step less overlaps than their lifetimes have together; elements of
    equal windows that follow each other meet in one window only.
    """
    return max(1.0, left.lifetime + right.lifetime - min(left.step, right.step))


def _rate_of_matches(plan: Join, left: Flow, right: Flow) -> float:
    """Pairs with equal keys per instant."""
    everything = left.rate * right.rate * _overlap(left, right)
    if not plan.equalities:
        return everything
    ours, theirs = ([pair[side] for pair in plan.equalities] for side in range(2))
    counted = _counted(left, right, ours, theirs)
    if counted is not None:
        return counted
    values = max(flow.growth(keys).at(max(flow.live, 1.0)) for flow, keys in ((left, ours), (right, theirs)))
    values = max(values, _largest_of(left, ours), _largest_of(right, theirs))
    return min(everything / max(values, 1.0), _at_most(left, right))


def _largest_of(flow: Flow, keys: Sequence[Expression]) -> float:
    """Of so many rows one is equal to a key that is the largest or the smallest of others; 1 without one."""
    extremes = [flow.extremes.get(key.index, 0.0) for key in keys if isinstance(key, Column)]
    return 1 + max(map(abs, extremes), default=0.0)


def _at_most(left: Flow, right: Flow) -> float:
    """How many pairs there are per instant at most, where the samples have none; infinite without samples.

    Where none is found, three were expected at most (with 95 %: the chance to find none of three is e^-3; the
    rule of three). In a time longer than that of the samples there are at most as many more as it is longer.
    """
    if left.sample is None or right.sample is None:
        return math.inf
    moving = [side.sample for side in (left, right) if side.sample and not _is_standing(side)]
    if not moving or not all(len(sample.instants) for sample in moving):
        return math.inf
    first, last = max(int(one.instants[0]) for one in moving), min(int(one.instants[-1]) for one in moving)
    if last < first:
        return math.inf
    span = last - first + 1
    longer = 1.0 if len(moving) < 2 else max(1.0, _overlap(left, right) / span)
    return 3 * longer / (span * left.sample.part * right.sample.part)


def _counted(
    left: Flow, right: Flow, ours: Sequence[Expression], theirs: Sequence[Expression]
) -> float | None:
    """Pairs with equal keys per instant, by the pairs in the samples; None if the samples have no pairs."""
    if left.sample is None or right.sample is None:
        return None
    if not len(left.sample.instants) or not len(right.sample.instants):
        return None
    mine, yours = left.sample.codes_with(ours, right.sample, theirs)
    begins, others = left.sample.instants, right.sample.instants
    if _is_standing(right):
        return left.rate * _equal(mine, yours) / right.sample.part or None
    if _is_standing(left):
        return right.rate * _equal(yours, mine) / left.sample.part or None
    # A pair is found by the later of its rows; of two at one instant, by the left one.
    by_left = _matches(mine, begins, yours, others, right.lifetime) / right.sample.part
    by_right = _matches(yours, others - 1, mine, begins, left.lifetime - 1) / left.sample.part
    found = left.rate * by_left + right.rate * by_right
    return found or None


def _is_standing(flow: Flow) -> bool:
    """Whether all rows of a sample begin together and last, as those of a relation do."""
    assert flow.sample is not None
    if not len(flow.sample.instants):
        return False
    return flow.lifetime > 1 and bool(flow.sample.instants[0] == flow.sample.instants[-1])


def _equal(codes: Int64Array, others: Int64Array) -> float:
    """How many rows of another sample, of equal code, a row meets on average."""
    there = np.sort(others)
    some = np.searchsorted(there, codes, side="right") - np.searchsorted(there, codes, side="left")
    return float(some.sum()) / len(codes)


def _matches(
    codes: Int64Array, instants: Int64Array, others: Int64Array, begins: Int64Array, length: float
) -> float:
    """How many rows of another sample, of equal code and not after it, a row meets on average.

    Args:
        codes, instants: of the rows.
        others, begins: of those they meet.
        length: for how long these are valid (instants).
    """
    reach = (int(begins.max()) - int(begins.min()) + 1) / _REACH
    if length <= reach:
        return _count(codes, instants, others, begins, length)
    less, more = (_count(codes, instants, others, begins, part) for part in (reach / _SHORTER, reach))
    power = math.log(more / less) / math.log(_SHORTER) if less and more else 0.0
    return more * math.pow(length / reach, min(max(power, 0.0), 1.0))


def _count(
    codes: Int64Array, instants: Int64Array, others: Int64Array, begins: Int64Array, length: float
) -> float:
    """The same for a length that the sample has before some of the rows."""
    if length < 1:
        return 0.0
    origin = int(begins.min())
    whole = instants - origin >= math.ceil(length) - 1
    if not whole.any():
        return 0.0
    span = max(int(begins.max()), int(instants.max())) - origin + 2
    places = np.sort(others * span + (begins - origin))
    last = codes[whole] * span + (instants[whole] - origin)
    first = last - (math.ceil(length) - 1)
    some = np.searchsorted(places, last, side="right") - np.searchsorted(places, first, side="left")
    return float(some.sum()) / int(whole.sum())


def _pairs(plan: Join, left: Flow, right: Flow, rate: float) -> FlowSample | None:
    """Some of the pairs of the rows in two samples, evenly spread; None without any.

    Args:
        plan: the join, whose equalities count here.
        left, right: how its inputs flow.
        rate: how many pairs there are per instant.
    """
    if left.sample is None or right.sample is None or not rate:
        return None
    ours, theirs = ([pair[side] for pair in plan.equalities] for side in range(2))
    codes, others = left.sample.codes_with(ours, right.sample, theirs)
    instants, begins = left.sample.instants, right.sample.instants
    if not len(instants) or not len(begins):
        return None
    origin = min(int(instants.min()), int(begins.min()))
    span = max(int(instants.max()), int(begins.max())) - origin + 1
    order = np.lexsort((begins, others))
    places = (others * span + (begins - origin))[order]
    before, after = (math.ceil(min(side.lifetime, span)) - 1 for side in (right, left))
    earliest = np.maximum(instants - origin - before, 0)
    latest = np.minimum(instants - origin + after, span - 1)
    first = np.searchsorted(places, codes * span + earliest, side="left")
    until = np.cumsum(np.searchsorted(places, codes * span + latest, side="right") - first)
    found = int(until[-1])
    if not found:
        return None
    wanted = np.arange(found) if found <= _PAIRS else np.linspace(0, found - 1, _PAIRS).astype(np.int64)
    mine = np.searchsorted(until, wanted, side="right")
    yours = order[first[mine] + wanted - np.append(0, until)[mine]]
    later = np.maximum(instants[mine], begins[yours])
    in_time = np.argsort(later, kind="stable")
    columns = [*_taken(left.sample, mine[in_time]), *_taken(right.sample, yours[in_time])]
    rows = pa.RecordBatch.from_arrays(columns, names=list(plan.schema.names))
    return FlowSample(rows, later[in_time], len(wanted) / (rate * span))


def _taken(sample: FlowSample, places: Int64Array) -> list[pa.Array]:
    return [values.take(pa.array(places)) for values in sample.rows.columns]
