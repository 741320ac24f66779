"""The pairs of series that are correlated, of the live values of each group.

All pairs are looked at, a block of series beside another at a time: products of matrices of standardised
values (StatStream: Zhu and Shasha, 2002, section 3.1) tell which are near a threshold or beyond it, and of
those the correlation is computed in an order of its own. So an answer depends on the values alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Float64Array, Int64Array, integers
from headrace.errors import ExecutionError
from headrace.expressions.aggregates.pairs import PairRule
from headrace.kernels.values.correlations import (
    beyond,
    beyond_with_gaps,
    common_correlations,
    deviations,
    means_of_steps,
    whole_correlations,
)
from headrace.kernels.values.inputs import CountChanges
from headrace.limits import checked
from headrace.operators.state.keys import equal_rows, normalise
from headrace.schema import BIGINT

_BLOCK: Final = 512
"""So many series are multiplied with as many others at a time."""
_MARGIN: Final = 1e-6
"""By so much a product may be wrong; what is nearer to a threshold is computed."""
_MOST_CELLS: Final = 2**26
"""So many values can the series of a group have in a table, with those that are missing."""
_MOST_PAIRS: Final = 2**24
"""So many pairs can a group have at an instant."""


@dataclass(frozen=True, eq=False)
class NumberedValues:
    """The different values of all groups, by number: sorted by group, series, instant and value.

    Attributes:
        names: the series of each.
        series: int64[n], numbers that differ where neighbours are of different series.
        steps: int64[n], the step that it is of.
        values: float64[n].
    """

    names: pa.Array
    series: Int64Array
    steps: Int64Array
    values: Float64Array

    @classmethod
    def of(cls, columns: list[pa.Array], step: int) -> NumberedValues:
        """Those of the columns of series, instants and values."""
        names, instants, values = columns
        clean = normalise(names)
        changes = np.zeros(len(names), dtype=np.int64)
        if len(names) > 1:
            rows, before = np.arange(1, len(names)), np.arange(len(names) - 1)
            changes[1:] = ~equal_rows([clean], rows, [clean], before)
        steps = integers(instants.cast(BIGINT)) // step
        found = np.asarray(values.to_numpy(zero_copy_only=False))
        return cls(names, np.cumsum(changes), steps, np.ascontiguousarray(found))


def correlated_pairs(
    rule: PairRule,
    values: NumberedValues,
    changes: CountChanges,
    starts: Int64Array,
    points: tuple[Int64Array, Int64Array, BoolArray],
) -> pa.ListArray:
    """The pairs at every point, NULL where they are not wanted.

    Args:
        rule: which pairs.
        values: what the numbers are.
        changes: of their counts.
        starts: where each key's numbers start.
        points: codes and times, int64[m] each, sorted by both, and where the pairs are wanted, bool[m].
    """
    finite = np.isfinite(values.values)
    live = np.zeros(len(finite), dtype=np.int64)
    offsets, parts, done = [0], [_no_pairs()], 0
    codes, times, wanted = points
    ends = _ends(changes, codes, times)
    for place in checked(range(len(codes))):
        first, last = starts[codes[place]], starts[codes[place] + 1]
        if place == 0 or codes[place] != codes[place - 1]:
            done = int(np.searchsorted(changes.codes, codes[place]))
        np.add.at(live, changes.numbers[done : ends[place]], changes.counts[done : ends[place]])
        done = ends[place]
        if wanted[place]:
            there = first + np.flatnonzero((live[first:last] > 0) & finite[first:last])
            parts.append(_pairs_of(rule, values, there, live[there]))
        offsets.append(offsets[-1] + (len(parts[-1][0]) if wanted[place] else 0))
    return _listed(values.names, parts, offsets, wanted)


_Pairs = tuple[Int64Array, Int64Array, Float64Array, Int64Array]
"""Numbers of values of the first and of the second series, correlations and lags."""


def _no_pairs() -> _Pairs:
    none = np.empty(0, dtype=np.int64)
    return none, none, np.empty(0), none


def _ends(changes: CountChanges, codes: Int64Array, times: Int64Array) -> list[int]:
    """Up to which change each point has seen."""
    lows, highs = (np.searchsorted(changes.codes, codes, side) for side in ("left", "right"))
    return [
        int(low + np.searchsorted(changes.times[low:high], time, "right"))
        for low, high, time in zip(lows, highs, times, strict=True)
    ]


def _listed(names: pa.Array, parts: list[_Pairs], offsets: list[int], wanted: BoolArray) -> pa.ListArray:
    first, second, found, lags = (np.concatenate(one) for one in zip(*parts, strict=True))
    columns = [names.take(pa.array(first)), names.take(pa.array(second)), pa.array(found), pa.array(lags)]
    pairs = pa.StructArray.from_arrays(columns, ["first", "second", "correlation", "lag"])
    missing = pa.array(np.append(~wanted, False))
    places = pa.array(np.array(offsets, dtype=np.int32))
    return pa.ListArray.from_arrays(pc.if_else(missing, pa.scalar(None, pa.int32()), places), pairs)


def _pairs_of(rule: PairRule, values: NumberedValues, there: Int64Array, counts: Int64Array) -> _Pairs:
    """The pairs among the series whose values are there."""
    series, steps = values.series[there], values.steps[there]
    rows, means = means_of_steps(series, steps, values.values[there], counts)
    kept = np.isfinite(means)
    rows, means = rows[kept], means[kept]
    if not len(rows):
        return _no_pairs()
    fresh = np.append(True, np.diff(series[rows]) != 0)
    numbers, (instants, columns) = np.cumsum(fresh) - 1, np.unique(steps[rows], return_inverse=True)
    shape = int(numbers[-1]) + 1, len(instants)
    if shape[0] * shape[1] > _MOST_CELLS:
        raise ExecutionError(
            f"{shape[0]} series have values at {shape[1]} instants, more than can be compared",
            hint="compare them at fewer instants: write a longer ALIGN, or a shorter RANGE",
        )
    table, present = np.zeros(shape), np.zeros(shape, dtype=np.uint8)
    table[numbers, columns], present[numbers, columns] = means, 1
    found = _best(rule, list(_found(rule, table, present, instants)))
    names = there[rows[fresh]]
    return names[found[0]], names[found[1]], found[2], found[3]


def _found(
    rule: PairRule, table: Float64Array, present: npt.NDArray[np.uint8], instants: Int64Array
) -> Iterator[_Pairs]:
    """Pairs of rows that are wanted, lag by lag."""
    total = 0
    for lag in range(rule.lags + 1):
        earlier, later = _columns_apart(instants, lag)
        if len(earlier) < rule.fewest:
            continue
        left = _Side.of(table, present, earlier, rule.fewest)
        right = left if lag == 0 else _Side.of(table, present, later, rule.fewest)
        for rows, others, found in _blocks(rule, left, right, same=lag == 0):
            total += len(rows)
            if total > _MOST_PAIRS:
                raise ExecutionError(
                    f"more than {_MOST_PAIRS} pairs of series are correlated",
                    hint="ask for stronger correlations, or for more values in common: AT LEAST 30 VALUES",
                )
            lags = np.where(rows < others, lag, -lag)
            yield np.minimum(rows, others), np.maximum(rows, others), found, lags


def _columns_apart(instants: Int64Array, lag: int) -> tuple[Int64Array, Int64Array]:
    """The columns of the instants that have one so many steps later, and those of these."""
    later = np.searchsorted(instants, instants + lag)
    there = later < len(instants)
    there[there] = instants[later[there]] == instants[there] + lag
    return np.flatnonzero(there), later[there]


@dataclass(frozen=True, eq=False)
class _Side:
    """Series at some instants: those that vary and have values enough, the complete ones first.

    Attributes:
        rows: int64[s], their rows in the table.
        whole: how many are complete.
        values, present: float64 and uint8[s, g].
        distances, totals, squares: what `deviations` says of them.
        units: float64[s, g], the values with mean 0 and length 1; `single` are the same of single precision,
            and `held`, float64, where they are.
    """

    rows: Int64Array
    whole: int
    values: Float64Array
    present: npt.NDArray[np.uint8]
    distances: Float64Array
    totals: Float64Array
    squares: Float64Array
    units: Float64Array
    single: npt.NDArray[np.float32]
    held: Float64Array

    @classmethod
    def of(
        cls, table: Float64Array, present: npt.NDArray[np.uint8], columns: Int64Array, fewest: int
    ) -> _Side:
        """The series of a table in some of its columns."""
        values = np.ascontiguousarray(table[:, columns])
        there = np.ascontiguousarray(present[:, columns])
        distances, counts, totals, squares = deviations(values, there)
        rows = np.flatnonzero((counts >= fewest) & (squares > 0))
        rows = rows[np.argsort(counts[rows] < len(columns), kind="stable")]
        values, there, distances = values[rows], there[rows], distances[rows]
        counts, totals, squares = counts[rows], totals[rows], squares[rows]
        held = there.astype(np.float64)
        units = (distances - (totals / counts)[:, None]) / np.sqrt(squares)[:, None] * held
        whole = int((counts == len(columns)).sum())
        return cls(
            rows, whole, values, there, distances, totals, squares, units, units.astype(np.float32), held
        )

    def is_whole(self, start: int) -> bool:
        """Whether all series of a block are complete."""
        return min(start + _BLOCK, len(self.rows)) <= self.whole


def _blocks(
    rule: PairRule, left: _Side, right: _Side, *, same: bool
) -> Iterator[tuple[Int64Array, Int64Array, Float64Array]]:
    """The pairs that are wanted of a series on the left with one on the right; each pair once if `same`."""
    for row in checked(range(0, len(left.rows), _BLOCK)):
        for other in checked(range(row if same else 0, len(right.rows), _BLOCK)):
            places = _near(rule, left, right, (row, other), same and row == other)
            rows, others = np.ascontiguousarray(places.T)
            rows, others = rows + row, others + other
            if not same:
                apart = left.rows[rows] != right.rows[others]
                rows, others = rows[apart], others[apart]
            found = _correlations(rule, left, right, rows, others)
            wanted = np.flatnonzero(_is_wanted(rule, found))
            yield left.rows[rows[wanted]], right.rows[others[wanted]], found[wanted]


def _near(rule: PairRule, left: _Side, right: _Side, at: tuple[int, int], triangle: bool) -> Int64Array:
    """The pairs of two blocks that may be wanted, as places in the blocks."""
    one, other = (slice(start, start + _BLOCK) for start in at)
    # The products of numbers of single precision, each rounded to 24 bits, and of their sums.
    margin = _MARGIN + left.units.shape[1] * 2.0**-23
    above = math.inf if rule.above is None else rule.above - margin
    below = -math.inf if rule.below is None else rule.below + margin
    if left.is_whole(at[0]) and right.is_whole(at[1]):
        return beyond(left.single[one] @ right.single[other].T, triangle, above, below)
    held, others = left.held[one], right.held[other].T
    found = beyond_with_gaps(
        held @ others,
        left.units[one] @ others,
        held @ right.units[other].T,
        left.units[one] ** 2 @ others,
        held @ (right.units[other] ** 2).T,
        left.units[one] @ right.units[other].T,
        rule.fewest,
        above,
        below,
    )
    return found[found[:, 0] < found[:, 1]] if triangle else found


def _correlations(
    rule: PairRule, left: _Side, right: _Side, rows: Int64Array, others: Int64Array
) -> Float64Array:
    whole = (rows < left.whole) & (others < right.whole)
    found = np.empty(len(rows))
    found[whole] = whole_correlations(
        left.distances, left.totals, left.squares,
        right.distances, right.totals, right.squares,
        rows[whole], others[whole],
    )  # fmt: skip
    found[~whole] = common_correlations(
        left.values, left.present, right.values, right.present, rows[~whole], others[~whole], rule.fewest
    )
    return found


def _is_wanted(rule: PairRule, found: Float64Array) -> BoolArray:
    wanted: BoolArray = np.zeros(len(found), dtype=np.bool_)
    if rule.above is not None:
        wanted |= found > rule.above
    if rule.below is not None:
        wanted |= found < rule.below
    return wanted


def _best(rule: PairRule, parts: list[_Pairs]) -> _Pairs:
    """Each pair once, by both series: of several lags the one with which they are correlated most."""
    rows, others, found, lags = (np.concatenate(one) for one in zip(_no_pairs(), *parts, strict=True))
    pair = rows * (others.max(initial=0) + 1) + others
    if not rule.lags:
        order = np.argsort(pair)
    else:
        score = found if rule.below is None else -found if rule.above is None else np.abs(found)
        order = np.lexsort((lags < 0, np.abs(lags), -score, pair))
        order = order[np.append(True, np.diff(pair[order]) != 0)] if len(order) else order
    return rows[order], others[order], found[order], lags[order]
