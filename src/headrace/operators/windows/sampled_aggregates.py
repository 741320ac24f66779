"""Distinct counts, percentiles and the most frequent values of windows, of samples of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.nodes import ApproximateAggregate
from headrace.elements import Batch, Float64Array, Int64Array, concat, record_batch
from headrace.expressions.aggregates.functions import top_of
from headrace.expressions.aggregates.within import fraction_of_bound
from headrace.expressions.tree import AggregateCall, Column, Side, SortKey, Within
from headrace.kernels.values.inputs import CountChanges, KeyPoints
from headrace.kernels.values.multisets import most_frequent
from headrace.kernels.values.order_statistics import order_statistics
from headrace.kernels.values.samples import sizes_at
from headrace.operators.aggregates.aggregate import emitted
from headrace.operators.aggregates.counted_values import items_of
from headrace.operators.aggregates.live_values import fraction_of_call, interpolated, number_values
from headrace.operators.contract import OperatorProgress, Report, evaluate_all
from headrace.operators.state.keys import normalise, order_by
from headrace.operators.state.order import rank_rows
from headrace.operators.state.runs import TIME, WEIGHT, Area
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.operators.state.timeline import Points
from headrace.operators.windows.kept_rows import RowColumns, WaitingRows
from headrace.operators.windows.samples import (
    PRESENCE,
    BottomK,
    Elements,
    Keys,
    NewRows,
    SampleArea,
    sample_of,
)
from headrace.schema import Field, Schema
from headrace.time import BEGINNING, INFINITY

_WHOLE: Final = 2.0**63
"""Hashes are from 0 to below it."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """A sample at some points.

    Attributes:
        elements: what is known of it.
        changes: what enters and leaves it, numbered by hash.
        entered: int64[c], the element of each change.
    """

    elements: Elements
    changes: CountChanges
    entered: Int64Array


class SampledOperator:
    """Aggregates of samples (a family of its own; on sweep areas).

    Definition:
        At t, one row per group of `M(t)`: the keys, then each aggregate of the values of the group that have
        the smallest hashes (`headrace.reference.summaries`).

    Retractions:
        Cancel their row while it waits above the heartbeat. A group's last segment is emitted up to the next
        instant at which an element of it leaves, and taken back where a row comes before it.

    State:
        The rows above the heartbeat. Of each group and sample the elements that have fewer than k others with
        smaller hashes that leave no earlier: some k (ln(n / k) + 1) of n, and up to half as many again before
        they are written anew. And when each group changes next.

    Example:
        `COUNT(DISTINCT x) WITHIN 50 PERCENT` of `[RANGE 8]`, a sample of 18 values; heartbeat 10:

        ====== ========== ==        ====== ======= ==
        x      [ts,te)     w        n      [ts,te)  w
        ====== ========== ==        ====== ======= ==
        a      [0,8)       +        1      [0,1)    +
        b      [1,9)       +        2      [1,9)    +
        a      [2,10)      +        1      [9,10)   +
        ====== ========== ==        ====== ======= ==
    """

    def __init__(self, node: ApproximateAggregate, report: Report) -> None:
        self._node, self._report = node, report
        calls = [call for _, call in node.aggregates]
        self._samples = tuple(dict.fromkeys((PRESENCE, *map(sample_of, calls))))
        self._read = tuple(dict.fromkeys(one.argument for one in self._samples if one.argument is not None))
        fields = [Field(f"__k{place}", key.type) for place, (_, key) in enumerate(node.keys)]
        keys = tuple(Column(place, field.name, field.type) for place, field in enumerate(fields))
        fields += [Field(f"__v{place}", part.type) for place, part in enumerate(self._read)]
        self._form = RowColumns(Schema(tuple(fields)), keys)
        self._waiting = WaitingRows(self._form)
        names, size = self._form.key_names, node.size.length
        self._areas = {sample: SampleArea(sample, names, size) for sample in self._samples}
        self._ahead = SweepArea(Layout(names, (), (WEIGHT,)))
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """NewRows that wait, the elements of each sample, and when each group changes next."""
        samples = {f"sample{place}": area.area for place, area in enumerate(self._areas.values())}
        return {"waiting": self._waiting.area, "ahead": self._ahead, **samples}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements, which all last equally long."""
        keys = [key for _, key in self._node.keys]
        batch, columns = evaluate_all([*keys, *self._read], batch, self._report)
        values = [*map(normalise, columns[: len(keys)]), *columns[len(keys) :]]
        self._inputs.append(batch.with_payload(record_batch(values, self._form.schema, len(batch))))

    def advance(self, progress: OperatorProgress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        before, horizon = progress.window
        batch = self._waiting.left(self._inputs, (before, horizon))
        due = self._ahead.due(before, horizon)
        result = concat(self._node.schema, [])
        if len(batch) or due is not None:
            result = self._answer(batch, due, max(before, BEGINNING + 1), horizon)
        self._ahead.expire(horizon)
        for area in self._areas.values():
            area.area.expire(horizon)
        return result

    def _answer(self, batch: Batch, due: pa.RecordBatch | None, before: int, horizon: int) -> Batch:
        """The new segments and corrections; the elements that may be needed from now on are kept."""
        keys, codes = self._touched(batch, due)
        count = len(keys.hashes)
        rows = NewRows(codes, batch.ts, batch.w)
        seen: dict[BottomK, _Seen] = {}
        covered, until = (np.full(count, INFINITY, dtype=np.int64) for _ in range(2))
        for sample, area in self._areas.items():
            elements = area.elements(keys, rows, self._values_of(sample, batch), before, horizon)
            seen[sample] = _Seen(elements, *elements.changes(sample.limit, before, horizon))
            old = elements.drawn.starts < before
            covered = np.minimum(covered, elements.first_end(before, old, count))
            until = np.minimum(until, area.keep(keys, elements, before, horizon))
        self._look_ahead(keys, np.flatnonzero((until != covered) & (until < INFINITY)), until)
        at, order = _points_of(list(seen.values()), count, before - 1)
        present = sizes_at(seen[PRESENCE].changes, at)[order]
        covered[present[len(order) - count :] == 0] = BEGINNING
        found = [_value(call, seen[sample_of(call)], at).take(order) for _, call in self._node.aggregates]
        points = order[: len(order) - count]
        owners = at.codes[points]
        previous = np.arange(len(points)) - 1
        previous[np.flatnonzero(np.diff(owners, prepend=-1))] = -1
        none = np.empty(0, dtype=np.int64)
        there = SumColumns(present.reshape(-1, 1))
        changed = Points(
            keys.columns, keys.hashes, none, owners, at.times[points], previous, there, covered, until
        )
        return emitted(changed, found, len(self._node.keys), self._node.schema, not self._node.is_chronon)

    def _touched(self, batch: Batch, due: pa.RecordBatch | None) -> tuple[Keys, Int64Array]:
        """The keys that have new rows, or of which elements leave; and the key of each new row."""
        columns, hashes, codes = self._form.touched(batch, due)
        return Keys(columns, hashes), codes

    def _values_of(self, sample: BottomK, batch: Batch) -> pa.Array | None:
        if sample.argument is None:
            return None
        return batch.payload.column(len(self._node.keys) + self._read.index(sample.argument))

    def _look_ahead(self, keys: Keys, changed: Int64Array, until: Int64Array) -> None:
        """Note when keys change next."""
        ones = np.ones(len(changed), dtype=np.int64)
        columns = {TIME: pa.array(until[changed]), WEIGHT: pa.array(ones)}
        self._ahead.insert(keys.of(self._form.key_names, changed) | columns)


def _points_of(seen: list[_Seen], keys: int, base: int) -> tuple[KeyPoints, Int64Array]:
    """When the samples of keys change, and one instant before, sorted; and the latter behind the others."""
    codes = np.concatenate([*(one.changes.codes for one in seen), np.arange(keys)])
    times = np.concatenate([*(one.changes.times for one in seen), np.full(keys, base)])
    order = order_by(codes, times, keys)
    codes, times = codes[order], times[order]
    differs = np.ones(len(order), dtype=np.bool_)
    differs[1:] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
    codes, times = codes[differs], times[differs]
    is_base = times == base
    return KeyPoints(codes, times), np.concatenate([np.flatnonzero(~is_base), np.flatnonzero(is_base)])


def _value(call: AggregateCall, seen: _Seen, at: KeyPoints) -> pa.Array:
    """An aggregate at points."""
    limit = sample_of(call).limit
    if call.function == "COUNT":
        assert call.within is not None
        return pa.array(_distinct(*_totals(limit, seen, at), limit, call.within))
    elements, drawn = seen.elements, seen.elements.drawn
    assert elements.values is not None
    assert call.argument is not None
    (key,) = call.order or (SortKey(call.argument),)
    ranks = rank_rows([elements.values], [key])
    numbers, starts, first = number_values(elements.codes, ranks, len(drawn.begins) - 1)
    codes, times, _, signs = seen.changes
    changes = CountChanges(codes, times, numbers[seen.entered], signs)
    starts = starts.astype(np.int64)
    if call.function == "TOP_K":
        offsets, found, counts = most_frequent(changes, starts, at, top_of(call))
        totals, sizes = _totals(limit, seen, at)
        counts = (counts * np.repeat(totals / np.maximum(sizes, 1), np.diff(offsets))).astype(np.int64)
        return items_of(call, offsets, elements.values.take(pa.array(first[found])), counts)
    discrete = np.array([call.function == "PERCENTILE_DISC"], dtype=np.uint8)
    values = elements.values

    def percentile(fraction: float) -> pa.Array:
        lower, upper, share = order_statistics(changes, starts, at, np.array([fraction]), discrete)
        below = values.take(pa.array(np.append(first, -1)[lower], mask=lower < 0))
        if call.function == "PERCENTILE_DISC":
            return below
        above = values.take(pa.array(np.append(first, -1)[upper], mask=upper < 0))
        return interpolated(below, above, share, lower == upper)

    found = percentile(fraction_of_call(call))
    assert call.within is not None
    if call.within.side is Side.ESTIMATE:
        return found
    bound = fraction_of_bound(call, fraction_of_call(call))
    full = pa.array(sizes_at(seen.changes, at) >= limit)
    other = pa.nulls(len(found), found.type) if bound is None else percentile(bound)
    return pc.if_else(full, other, found)


def _distinct(totals: Float64Array, sizes: Int64Array, limit: int, within: Within) -> Int64Array:
    """Distinct counts of which samples are, or bounds of them; their size where samples have all values."""
    part = float(within.percent) / 100
    match within.side:
        case Side.ESTIMATE:
            found = totals
        case Side.LOWER:
            found = np.maximum(np.ceil(totals / (1 + part)), limit)
        case Side.UPPER:
            found = np.floor(totals / (1 - part))
    return np.where(sizes < limit, sizes, found.astype(np.int64))


def _totals(limit: int, seen: _Seen, at: KeyPoints) -> tuple[Float64Array, Int64Array]:
    """Of how many values samples are, and how many they have: as many, or the last one's hash tells."""
    sizes = sizes_at(seen.changes, at)
    discrete, drawn = np.zeros(1, dtype=np.uint8), seen.elements.drawn
    last, _, _ = order_statistics(seen.changes, drawn.begins, at, np.ones(1), discrete)
    draws = np.zeros(len(drawn.ranks), dtype=np.int64)
    draws[drawn.begins[seen.elements.codes] + drawn.ranks] = seen.elements.draws
    totals, full = sizes.astype(np.float64), sizes >= limit
    totals[full] = np.maximum((limit - 1) * _WHOLE / (draws[last[full]] + 1), limit)
    return totals, sizes
