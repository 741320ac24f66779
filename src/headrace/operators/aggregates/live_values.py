"""The live values of each group, for aggregates that depend on which values there are.

MIN, MAX, FIRST, LAST, PERCENTILE and PERCENTILE_DISC are values at a place of the group's values in sorted
order, ARRAY_AGG is all of them, MODE the one that is there most often. Sums do not suffice for them: when the
smallest value leaves, the next one must be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.expressions.aggregates.functions import KeptValues, function_of
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.aggregates.pairs import PairRule
from headrace.expressions.tree import AggregateCall, Literal
from headrace.kernels.values.extremes import lower_envelope
from headrace.kernels.values.inputs import CountChanges, KeyPoints, RankedIntervals
from headrace.kernels.values.order_statistics import order_statistics, sorted_values
from headrace.operators.aggregates.correlated_pairs import NumberedValues, correlated_pairs
from headrace.operators.aggregates.counted_values import COUNTED, arrays_of, counted_values
from headrace.operators.aggregates.ordered_values import ORDERED, ordered_values
from headrace.operators.aggregates.user_values import user_values
from headrace.operators.state.keys import order_by
from headrace.operators.state.live_elements import (
    COUNT,
    LiveElements,
    LiveRows,
    Pool,
    stored_columns,
    value_names,
)
from headrace.operators.state.order import rank_rows
from headrace.operators.state.region_values import RegionValues, counted_values_of, values_of
from headrace.operators.state.regions import Regions
from headrace.operators.state.runs import TIME
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.operators.state.timeline import Points
from headrace.schema import DOUBLE
from headrace.time import BEGINNING, INFINITY


class LiveValues:
    """The live values of one ordering, as changes of their counts.

    Args:
        keys: the names of the key columns in state.
        ordering: which values.
    """

    def __init__(self, keys: tuple[str, ...], ordering: Ordering) -> None:
        self._ordering = ordering
        self._names = value_names(len(ordering.keys))
        self.values = SweepArea(Layout(keys, self._names, (COUNT,), netting=Netting.ACCUMULATE))

    def step(
        self,
        rows: LiveRows,
        points: Points | None,
        window: tuple[int, int],
        calls: list[AggregateCall],
    ) -> list[pa.Array]:
        """Take in elements; the aggregates at every point.

        Args:
            rows: the elements.
            points: the points of the touched keys.
            window: the old and the new horizon.
            calls: the aggregates that are wanted.

        Returns:
            One column per call, m rows for the points, then k rows for the bases.
        """
        changes = self.take_in(rows, points, window)
        if changes is None or points is None:
            return []
        return _aggregates(self._ordering, changes, points, calls)

    def take_in(self, rows: LiveRows, points: Points | None, window: tuple[int, int]) -> LiveChanges | None:
        """Take in elements; all changes below the new horizon to the values of touched keys, if there are."""
        changes = None if points is None else self._due(rows, points, window)
        # What has come and gone by the new horizon leaves nothing behind.
        kept = rows.kept[rows.te[rows.kept] >= window[1]]
        ends = kept[rows.te[kept] != INFINITY]
        times = np.concatenate([rows.ts[kept], rows.te[ends]])
        counts = np.concatenate([rows.w[kept], -rows.w[ends]])
        columns = {TIME: pa.array(times), COUNT: pa.array(counts)}
        self.values.insert(columns | stored_columns(self.values.layout, rows, np.concatenate([kept, ends])))
        self.values.expire(window[1])
        return changes

    def held_values(self, regions: Regions) -> RegionValues | None:
        """The values in regions; None where there are none."""
        return counted_values_of(self.values, regions)

    def _due(self, rows: LiveRows, points: Points, window: tuple[int, int]) -> LiveChanges:
        """All changes below the new horizon to the values of touched keys."""
        before, horizon = window
        due = rows.kept[rows.ts[rows.kept] < horizon]
        over = np.flatnonzero(rows.te[due] < horizon)
        columns = [column.take(pa.array(due)) for column in rows.columns]
        codes, value = points.element_keys[due], np.concatenate([np.arange(len(due)), over])
        times = np.concatenate([rows.ts[due], rows.te[due[over]]])
        counts = np.concatenate([rows.w[due], -rows.w[due[over]]])
        times_of_keys = np.full(len(points.hashes), BEGINNING), np.full(len(points.hashes), horizon)
        places, stored = self.values.between(points.hashes, points.keys, *times_of_keys)
        if stored is not None:
            stored_times = integers(stored.column(TIME))
            older = [stored.column(name) for name in self._names]
            columns = [pa.concat_arrays(pair) for pair in zip(columns, older, strict=True)]
            clamped = np.where(stored_times < before, BEGINNING, stored_times)
            value = np.concatenate([value, len(codes) + np.arange(len(places))])
            codes = np.concatenate([codes, places])
            times = np.concatenate([times, clamped])
            counts = np.concatenate([counts, integers(stored.column(COUNT))])
        return LiveChanges(columns, codes, value, times, counts)


class Envelope:
    """The values that are or will be the smallest or the largest of their group, where none is retracted.

    A value that is worse than another and leaves no later will never be the answer, so it is not kept: over a
    sliding window this is the monotone queue of the textbooks.

    Args:
        keys: the names of the key columns in state.
        ordering: which values.

    Attributes:
        elements: those that have them.
    """

    def __init__(self, keys: tuple[str, ...], ordering: Ordering) -> None:
        self._ordering = ordering
        self.elements = LiveElements(keys, len(ordering.keys))

    @property
    def values(self) -> SweepArea:
        """The values."""
        return self.elements.area

    def step(
        self,
        rows: LiveRows,
        points: Points | None,
        window: tuple[int, int],
        calls: list[AggregateCall],
    ) -> list[pa.Array]:
        """Take in elements, none of them a retraction; the aggregates at every point, as in `LiveValues`."""
        if points is None:
            self.elements.keep(rows, None, window[1])
            return []
        pool = self.elements.pooled(rows, points, window[1])
        needed, result = self._extremes(pool, points, window[1], calls)
        self.elements.keep(rows, needed | (pool.codes < 0), window[1])
        return result

    def held_values(self, regions: Regions) -> RegionValues | None:
        """The values in regions; None where there are none."""
        return values_of(self.elements, regions)

    def _extremes(
        self, pool: Pool, points: Points, horizon: int, calls: list[AggregateCall]
    ) -> tuple[BoolArray, list[pa.Array]]:
        """Which elements are needed later, and the aggregates."""
        ranks = rank_rows(pool.columns, self._ordering.keys)
        order = pool.by_key(pool.starts, len(points.covered))
        codes_at, times_at, by_key = _all_points(points, _first_times(points) - 1)
        # The last instant that was answered counts: its answer may have to be taken back.
        since = horizon - 1
        needed = np.zeros(len(pool.codes), dtype=np.bool_)
        result: dict[float, pa.Array] = {}
        for fraction in {_place(call) for call in calls}:
            ordered = ranks if fraction == 0.0 else ~ranks
            found, later = lower_envelope(
                KeyPoints(codes_at, times_at),
                RankedIntervals(pool.codes, ordered, pool.starts, pool.ends),
                order,
                since,
            )
            needed |= later == 1
            result[fraction] = _take(pool.columns[-1], _restored(found, by_key))
        return needed, [result[_place(call)] for call in calls]


def create_live_values(
    keys: tuple[str, ...], ordering: Ordering, calls: list[AggregateCall], insert_only: bool
) -> LiveValues | Envelope:
    """What some aggregates over one ordering need; less where nothing is ever retracted."""
    few = insert_only and all(function_of(call).kept is KeptValues.ENDS for call in calls)
    return Envelope(keys, ordering) if few else LiveValues(keys, ordering)


@dataclass(frozen=True, eq=False)
class LiveChanges:
    """At `times` the count of a value, a row of `columns` and of the touched keys' `codes`, changes.

    What changed before the old horizon is there from BEGINNING on.
    """

    columns: list[pa.Array]
    codes: Int64Array
    value: Int64Array
    times: Int64Array
    counts: Int64Array


def _aggregates(
    ordering: Ordering, changes: LiveChanges, points: Points, calls: list[AggregateCall]
) -> list[pa.Array]:
    present = points.counts > 0
    ranks = rank_rows(changes.columns, ordering.keys)
    numbers, starts, first = number_values(changes.codes, ranks, len(points.covered))
    codes = changes.codes[changes.value]
    order = order_by(codes, changes.times, len(points.covered))
    codes_at, times_at, by_key = _all_points(points, np.full(len(points.covered), BEGINNING))
    sweep = CountChanges(
        codes[order], changes.times[order], numbers[changes.value[order]], changes.counts[order]
    )
    at = KeyPoints(codes_at, times_at)
    result: dict[AggregateCall, pa.Array] = {}
    for user in {call.user for call in calls if call.user is not None}:
        rows = zip(*(column.take(pa.array(first)).to_pylist() for column in changes.columns), strict=True)
        found = user_values(user, list(rows), sweep, (codes_at, times_at, present[by_key]))
        result |= {call: _take(found, np.argsort(by_key)) for call in calls if call.user == user}
    for call in calls:
        if call.function == "CORRELATED_PAIRS" and call.user is None:
            rule, rows = PairRule.of(call), pa.array(first)
            values = NumberedValues.of([column.take(rows) for column in changes.columns], rule.step)
            wanted_at = codes_at, times_at, (present & _needed(points))[by_key]
            result[call] = _take(correlated_pairs(rule, values, sweep, starts, wanted_at), np.argsort(by_key))
        if call.function in ("ARRAY_AGG", *ORDERED) and call.user is None:
            wanted = present[by_key].view(np.uint8)
            offsets, found_numbers = sorted_values(sweep, starts, at, wanted, call.distinct)
            values = changes.columns[-1].take(pa.array(first[found_numbers]))
            of_points = (
                arrays_of(offsets, values)
                if call.function == "ARRAY_AGG"
                else ordered_values(call, offsets, values)
            )
            result[call] = _take(of_points, np.argsort(by_key))
    counted = [call for call in calls if call not in result and call.function in COUNTED]
    if counted:
        values = changes.columns[-1].take(pa.array(first))
        result |= {
            call: _take(one, np.argsort(by_key))
            for call, one in counted_values(counted, values, sweep, starts, at).items()
        }
    placed = [call for call in calls if call not in result]
    if placed:
        fractions = np.array([fraction_of_call(call) for call in placed])
        discrete = np.array([call.function == "PERCENTILE_DISC" for call in placed], dtype=np.uint8)
        found = order_statistics(sweep, starts, at, fractions, discrete)
        result |= dict(zip(placed, _at_fractions(changes, placed, first, found, by_key), strict=True))
    return [result[call] for call in calls]


def _at_fractions(
    changes: LiveChanges,
    calls: list[AggregateCall],
    first: Int64Array,
    found: tuple[Int64Array, Int64Array, np.ndarray],
    by_key: Int64Array,
) -> list[pa.Array]:
    """The values of the numbers that the sweep has found."""
    lower, upper, share = (np.reshape(part, (-1, len(calls))) for part in found)
    result = []
    for place, call in enumerate(calls):
        low = _restored(lower[:, place], by_key)
        below = _take(changes.columns[-1], _rows_of(first, low))
        if call.function == "PERCENTILE":
            high, part = _restored(upper[:, place], by_key), _restored(share[:, place], by_key)
            below = interpolated(below, _take(changes.columns[-1], _rows_of(first, high)), part, low == high)
        result.append(below)
    return result


def _place(call: AggregateCall) -> float:
    """Which of the sorted values the first or last one is: 0.0 or 1.0."""
    place = function_of(call).place
    assert place is not None
    return place


def fraction_of_call(call: AggregateCall) -> float:
    """At which fraction of the sorted values an aggregate has its place."""
    if function_of(call).kept is KeptValues.ENDS:
        return _place(call)
    (fraction,) = call.others
    assert isinstance(fraction, Literal)
    assert isinstance(fraction.value, float)
    return fraction.value


def interpolated(below: pa.Array, above: pa.Array, share: np.ndarray, same: BoolArray) -> pa.Array:
    """Interpolated values, DOUBLE."""
    missing = np.asarray(below.is_null().to_numpy(zero_copy_only=False))
    low, high = (
        np.asarray(part.cast(DOUBLE, safe=False).fill_null(0.0).to_numpy(zero_copy_only=False))
        for part in (below, above)
    )
    with np.errstate(invalid="ignore"):
        values = np.where(same | (low == high), low, (1 - share) * low + share * high)
    return pa.array(values, DOUBLE, mask=missing)


def number_values(
    codes: Int64Array, ranks: Int64Array, keys: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Number the values of all keys, key after key, the smallest first.

    Returns:
        The number of each row's value, where each key's numbers start (int64[keys + 1]), and the first row of
        each number.
    """
    order = order_by(codes, ranks, keys)
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (np.diff(codes[order]) != 0) | (ranks[order[1:]] != ranks[order[:-1]])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    return numbers, np.searchsorted(codes[first], np.arange(keys + 1)), first


def _all_points(points: Points, bases: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Codes and times of the points and then of the bases, sorted by both, and the order that sorts them."""
    codes = np.concatenate([points.codes, np.arange(len(points.covered))])
    times = np.concatenate([points.times, bases])
    by_key = order_by(codes, times, len(points.covered))
    return codes[by_key], times[by_key], by_key


def _first_times(points: Points) -> Int64Array:
    """Up to where the base of each key lasts: its first point, or the horizon for a key without one."""
    first = np.flatnonzero(points.previous < 0)
    times = points.until.copy()
    times[points.codes[first]] = points.times[first]
    return times


def _needed(points: Points) -> BoolArray:
    """Where a value is needed: not before the first point of a key up to which it has been emitted."""
    needed: BoolArray = np.ones(len(points.codes) + len(points.covered), dtype=np.bool_)
    first = np.flatnonzero(points.previous < 0)
    codes = points.codes[first]
    needed[len(points.codes) + codes] = points.covered[codes] != points.times[first]
    return needed


def _restored(found: np.ndarray, by_key: Int64Array) -> np.ndarray:
    """What was found at the sorted points, in the order of points and bases."""
    result = np.empty_like(found)
    result[by_key] = found
    return result


def _rows_of(first: Int64Array, numbers: Int64Array) -> Int64Array:
    rows = np.full(len(numbers), -1, dtype=np.int64)
    rows[numbers >= 0] = first[numbers[numbers >= 0]]
    return rows


def _take(column: pa.Array, rows: Int64Array) -> pa.Array:
    return column.take(pa.array(rows, mask=rows < 0))
