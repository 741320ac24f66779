"""Counts and sums of windows that are so many percent off at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import ApproximateAggregate
from headrace.elements import Batch, BoolArray, Float64Array, Int64Array, concat, integers, record_batch
from headrace.errors import ExecutionError
from headrace.expressions.aggregates.aggregates import effective_argument
from headrace.expressions.aggregates.within import blocks_of
from headrace.expressions.tree import AggregateCall, Column, Expression, Side
from headrace.kernels.instants.timeline import smallest_per_code
from headrace.kernels.instants.waves import (
    Views,
    add_up_laps,
    changing_windows,
    keep_points,
    sum_amounts,
    wave_bounds,
)
from headrace.kernels.numbers.integers import LIMB_BITS, MASK
from headrace.kernels.numbers.rounding import rounded_means
from headrace.operators.aggregates.aggregate import emitted
from headrace.operators.contract import OperatorProgress, Report, evaluate_all
from headrace.operators.state.keys import normalise, order_by
from headrace.operators.state.runs import HASH, TIME, WEIGHT, Area
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.operators.state.timeline import Points
from headrace.operators.windows.kept_rows import RowColumns, WaitingRows
from headrace.schema import BIGINT, DOUBLE, Field, Schema
from headrace.time import BEGINNING, INFINITY

_NUMBER: Final = "__number"
_LIVE: Final = "__live"
_DOUBLES: Final = 2**53
"""All smaller numbers are DOUBLEs."""


@dataclass(frozen=True)
class Wave:
    """What amounts are kept of: so many rows, or what their values add up to, by blocks of some number.

    Attributes:
        argument: the values that are added up, or that are not NULL where rows are counted; None
            for all rows.
        sums: whether values are added up.
        blocks: `headrace.expressions.aggregates.within.blocks_of`.
    """

    argument: Expression | None
    sums: bool
    blocks: int


def waves_of(call: AggregateCall) -> tuple[Wave, ...]:
    """What an aggregate reads: the wave of its sum or count; of AVG both."""
    argument, blocks = effective_argument(call), blocks_of(call)
    counts, sums = Wave(argument, sums=False, blocks=blocks), Wave(argument, sums=True, blocks=blocks)
    return {"COUNT": (counts,), "SUM": (sums,), "AVG": (sums, counts)}[call.function]


@dataclass(frozen=True, eq=False)
class _Known:
    """The points of some keys, key after key in the order of time.

    Attributes:
        keys: the key columns of k keys; hashes: int64[k].
        codes, times: int64[n], the points' keys and instants.
        fresh: uint8[n], whether a point is new.
        columns: by wave the amounts and the last instants with one, int64[n] each.
        numbers: int64[k], how often the points of each key were written, 0 for a new one.
    """

    keys: list[pa.Array]
    hashes: Int64Array
    codes: Int64Array
    times: Int64Array
    fresh: np.ndarray
    columns: list[tuple[Int64Array, Int64Array]]
    numbers: Int64Array

    @property
    def begins(self) -> Int64Array:
        """int64[k + 1], the first point of each key, then the number of points."""
        return np.searchsorted(self.codes, np.arange(len(self.hashes) + 1)).astype(np.int64)


class ApproximateOperator:
    """Approximate counts and sums of windows (a family of its own; on sweep areas).

    Definition:
        At t, one row per group of `M(t)`: the keys, then for each aggregate what the blocks of amounts tell
        in which the window of the group begins (`headrace.reference.summaries`).

    Retractions:
        Cancel their row while it waits above the heartbeat. A group's last segment is emitted up to the next
        instant at which a point of it leaves, and taken back where a row comes before it.

    State:
        The rows above the heartbeat. Of each group with rows some points: instants at which rows begin, with
        the amounts of their lap up to then. Those are kept that are the first or the last of a block of 1, 2,
        4 ... of which a window that ends now has fewer than so many, one over the error and one more. All
        points of a group are written again when it has new rows; the older ones, which have smaller numbers,
        go when runs are merged. And when each group changes next.

    Example:
        `COUNT(*) WITHIN 50 PERCENT` of `[RANGE 8]`, which counts up to 2 exactly; heartbeat 10:

        ====== ========== ==        ====== ======= ==
        k      [ts,te)     w        n      [ts,te)  w
        ====== ========== ==        ====== ======= ==
        a      [0,8)       +        1      [0,1)    +
        a      [1,9)       +        2      [1,2)    +
        a      [2,10)      +        3      [2,8)    +
        ..                          2      [8,9)    +
        ..                          1      [9,10)   +
        ====== ========== ==        ====== ======= ==
    """

    def __init__(self, node: ApproximateAggregate, report: Report) -> None:
        self._node, self._report, self._size = node, report, node.size.length
        calls = [call for _, call in node.aggregates]
        self._waves = tuple(dict.fromkeys(wave for call in calls for wave in waves_of(call)))
        fields = [Field(f"__k{place}", key.type) for place, (_, key) in enumerate(node.keys)]
        self._read = [wave for wave in self._waves if wave.argument is not None]
        fields += [Field(f"__v{place}", BIGINT) for place in range(len(self._read))]
        self._schema = Schema(tuple(fields))
        named = enumerate(self._schema.fields[: len(node.keys)])
        keys = tuple(Column(place, field.name, field.type) for place, field in named)
        self._form = RowColumns(self._schema, keys)
        self._waiting = WaitingRows(self._form)
        names, places = self._form.key_names, range(len(self._waves))
        amounts = tuple(f"{kind}{place}" for place in places for kind in ("__a", "__c"))
        self._points = SweepArea(Layout(names, (*amounts, _LIVE), (_NUMBER,), Netting.LATEST, 1, _LIVE))
        self._ahead = SweepArea(Layout(names, (), (WEIGHT,)))
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """Rows that wait, the points of the groups, and when each changes next."""
        return {"waiting": self._waiting.area, "points": self._points, "ahead": self._ahead}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements, which all last equally long."""
        calls = [call for _, call in self._node.aggregates]
        asked = [part for call in calls if (part := effective_argument(call)) is not None]
        keys = [key for _, key in self._node.keys]
        batch, columns = evaluate_all([*keys, *asked], batch, self._report)
        found = dict(zip(asked, columns[len(keys) :], strict=True))
        values = [_amounts_of(wave, found[wave.argument]) for wave in self._read if wave.argument is not None]
        rows = record_batch([*map(normalise, columns[: len(keys)]), *values], self._schema, len(batch))
        self._inputs.append(batch.with_payload(rows))

    def advance(self, progress: OperatorProgress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        before, horizon = progress.window
        batch = self._waiting.left(self._inputs, (before, horizon))
        due = self._ahead.due(before, horizon)
        result = concat(self._node.schema, [])
        if len(batch) or due is not None:
            result = self._answer(self._known(batch, due), before, horizon)
        self._ahead.expire(horizon)
        self._points.expire(horizon)
        return result

    def _known(self, batch: Batch, due: pa.RecordBatch | None) -> _Known:
        """The points of the keys that have new rows, or of which points leave."""
        keys, hashes, codes = self._form.touched(batch, due)
        numbers, places, rows = self._stored(keys, hashes)
        fresh = self._fresh(batch, codes, len(hashes))
        owners = np.concatenate([places, fresh.codes])
        times = np.concatenate([integers(rows.column(TIME)), fresh.times])
        order = order_by(owners, times, len(hashes))
        new = np.repeat(np.array([0, 1], dtype=np.uint8), (len(places), len(fresh.codes)))[order]
        columns = []
        for place, added in enumerate(fresh.columns):
            named = (integers(rows.column(f"{kind}{place}")) for kind in ("__a", "__c"))
            amounts, counted = (
                np.concatenate([known, more])[order] for known, more in zip(named, added, strict=True)
            )
            found = add_up_laps(owners[order], times[order], new, amounts, counted, self._size)
            self._require(self._waves[place], found[2])
            columns.append(found[:2])
        return _Known(keys, hashes, owners[order], times[order], new, columns, numbers)

    def _stored(
        self, keys: list[pa.Array], hashes: Int64Array
    ) -> tuple[Int64Array, Int64Array, pa.RecordBatch]:
        """How often the points of keys were written; and the points of the last time, with their keys."""
        numbers = np.zeros(len(hashes), dtype=np.int64)
        places, rows = self._points.gather(hashes, keys)
        if rows is None:
            empty = {name: pa.array([], BIGINT) for name in (TIME, *self._points.layout.same)}
            return numbers, places, pa.RecordBatch.from_pydict(empty)
        found = integers(rows.column(_NUMBER))
        np.maximum.at(numbers, places, found)
        live = np.asarray(rows.column(_LIVE).to_numpy(zero_copy_only=False)).astype(np.bool_)
        kept = np.flatnonzero((found == numbers[places]) & live)
        return numbers, places[kept], rows.take(pa.array(kept))

    def _fresh(self, batch: Batch, codes: Int64Array, keys: int) -> _Known:
        """New points: what the rows of each key and instant add."""
        order = order_by(codes, batch.ts, keys)
        owners, times, weights = codes[order], batch.ts[order], batch.w[order]
        differs = np.ones(len(order), dtype=np.bool_)
        differs[1:] = (owners[1:] != owners[:-1]) | (times[1:] != times[:-1])
        first = np.flatnonzero(differs)
        begins = np.append(first, len(order)).astype(np.int64)
        columns = []
        for wave in self._waves:
            values = np.ones(len(order), dtype=np.int64)
            counted = values
            if wave.argument is not None:
                column = batch.payload.column(len(self._node.keys) + self._read.index(wave))
                values = integers(column.fill_null(0))[order]
                counted = integers(column.is_valid())[order]
            amounts, fits = sum_amounts(begins, values, weights)
            self._require(wave, fits)
            some, _ = sum_amounts(begins, counted, weights)
            columns.append((amounts, np.where(some > 0, times[first], BEGINNING)))
        none = np.empty(0, dtype=np.int64)
        return _Known([], none, owners[first], times[first], none, columns, none)

    def _require(self, wave: Wave, fits: bool) -> None:
        if not fits:
            name = next(call.function for _, call in self._node.aggregates if wave in waves_of(call))
            raise ExecutionError(f"{name} overflows BIGINT")

    def _answer(self, known: _Known, before: int, horizon: int) -> Batch:
        """What is said anew; the points that are needed from now on are kept."""
        begins, keys = known.begins, len(known.hashes)
        codes, views = changing_windows(begins, known.times, known.fresh, self._size, before, horizon)
        count = len(codes) - keys
        present = self._is_there(known, views)
        values = self._values(known, views)
        covered = self._ends_after(known, before, known.fresh == 0)
        covered[~present[count:]] = BEGINNING
        kept = np.zeros(len(known.times), dtype=np.bool_)
        for wave, (sums, _) in zip(self._waves, known.columns, strict=True):
            keep_points(begins, known.times, sums, self._size, horizon - 1, wave.blocks, kept)
        until = self._ends_after(known, horizon, kept)
        self._store(known, kept, covered, until)
        previous = np.arange(count) - 1
        previous[np.flatnonzero(np.diff(codes[:count], prepend=-1))] = -1
        none = np.empty(0, dtype=np.int64)
        there = SumColumns(present.astype(np.int64).reshape(-1, 1))
        points = Points(
            known.keys, known.hashes, none, codes[:count], views.instants[:count], previous, there, covered,
            until,
        )  # fmt: skip
        return emitted(points, values, len(self._node.keys), self._node.schema, not self._node.is_chronon)

    def _is_there(self, known: _Known, views: Views) -> BoolArray:
        """Whether a group has rows in each window: that of the last point is still in it."""
        latest = np.append(known.times, BEGINNING)[views.newest]
        found: BoolArray = (views.newest >= 0) & (latest > views.instants - self._size)
        return found

    def _ends_after(self, known: _Known, instant: int, kept: BoolArray) -> Int64Array:
        """When the first of each key's points leaves from an instant on; INFINITY if none does."""
        rows = np.flatnonzero(kept)
        ends = np.where(known.times[rows] > INFINITY - self._size, INFINITY, known.times[rows] + self._size)
        later = ends >= instant
        return smallest_per_code(known.codes[rows][later], ends[later], len(known.hashes))

    def _values(self, known: _Known, views: Views) -> list[pa.Array]:
        """The aggregates of each view."""
        bounds: dict[Wave, tuple[Int64Array, Int64Array]] = {}
        counted: dict[Wave, BoolArray] = {}
        for wave, (sums, last) in zip(self._waves, known.columns, strict=True):
            lower, upper, fits = wave_bounds(known.times, sums, views, self._size, wave.blocks)
            self._require(wave, fits)
            bounds[wave] = lower, upper
            counted[wave] = np.append(last, BEGINNING)[views.newest] > views.instants - self._size
            counted[wave] &= views.newest >= 0
        return [_value(call, bounds, counted) for _, call in self._node.aggregates]

    def _store(self, known: _Known, kept: BoolArray, covered: Int64Array, until: Int64Array) -> None:
        """Write the points that are kept, and when each key changes next if that is another instant."""
        rows = np.flatnonzero(kept)
        left = np.bincount(known.codes[rows], minlength=len(known.hashes)) > 0
        gone = np.flatnonzero(~left & (known.numbers > 0))
        owners = np.concatenate([known.codes[rows], gone])
        zeros = np.zeros(len(gone), dtype=np.int64)
        columns = {
            TIME: pa.array(np.concatenate([known.times[rows], zeros])),
            _NUMBER: pa.array(known.numbers[owners] + 1),
            _LIVE: pa.array(np.arange(len(owners)) < len(rows)),
        }
        for place, found in enumerate(known.columns):
            for kind, values in zip(("__a", "__c"), found, strict=True):
                columns[f"{kind}{place}"] = pa.array(np.concatenate([values[rows], zeros]))
        self._points.insert(self._keyed(known, owners) | columns)
        ahead = np.flatnonzero(left & (until != covered))
        ones = np.ones(len(ahead), dtype=np.int64)
        self._ahead.insert(self._keyed(known, ahead) | {TIME: pa.array(until[ahead]), WEIGHT: pa.array(ones)})

    def _keyed(self, known: _Known, owners: Int64Array) -> dict[str, pa.Array]:
        taken = pa.array(owners)
        named = zip(self._form.key_names, known.keys, strict=True)
        return {HASH: pa.array(known.hashes[owners])} | {name: key.take(taken) for name, key in named}


def _amounts_of(wave: Wave, values: pa.Array) -> pa.Array:
    """What each row adds to a wave, NULL where it is not counted."""
    if not wave.sums:
        ones = pa.array(np.ones(len(values), dtype=np.int64))
        return pa.compute.if_else(values.is_valid(), ones, pa.scalar(None, BIGINT))
    numbers = values.cast(BIGINT)
    found = integers(numbers.fill_null(0))
    if (found < 0).any():
        raise ExecutionError(f"an aggregate WITHIN takes no negative numbers, such as {found[found < 0][0]}")
    return numbers


def _value(
    call: AggregateCall,
    bounds: Mapping[Wave, tuple[Int64Array, Int64Array]],
    counted: Mapping[Wave, BoolArray],
) -> pa.Array:
    """An aggregate's values from the bounds of its waves."""
    assert call.within is not None
    first, *more = waves_of(call)
    side, there = call.within.side, counted[first]
    if not more:
        found = _side_of(side, *bounds[first])
        return pa.array(found) if call.function == "COUNT" else pa.array(found, mask=~there)
    (least, most), (fewest, rows_at_most) = bounds[first], bounds[more[0]]
    opposite = {Side.ESTIMATE: Side.ESTIMATE, Side.LOWER: Side.UPPER, Side.UPPER: Side.LOWER}[side]
    rows = np.maximum(_side_of(opposite, fewest, rows_at_most), 1)
    return pa.array(_quotients(_side_of(side, least, most), rows), mask=~there, type=DOUBLE)


def _quotients(sums: Int64Array, rows: Int64Array) -> Float64Array:
    """Sums divided by numbers of rows, rounded once."""
    if (sums < _DOUBLES).all():
        return np.asarray(sums / rows)
    limbs = np.vstack([sums & MASK, sums >> LIMB_BITS])
    return rounded_means(np.arange(2), limbs, rows, np.ones(1, dtype=np.int64))


def _side_of(side: Side, least: Int64Array, most: Int64Array) -> Int64Array:
    match side:
        case Side.ESTIMATE:
            return least + (most - least) // 2
        case Side.LOWER:
            return least
        case Side.UPPER:
            return most
