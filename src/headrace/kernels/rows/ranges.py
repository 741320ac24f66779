"""Which of many ranges the values of rows are in, several ranges of different columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.elements import BoolArray, Int64Array


@dataclass(frozen=True)
class Ranges:
    """What many predicates ask of the columns of a row: each some ranges, all of which have to hold.

    Attributes:
        first: int64[p], for each of p predicates the place of its first range.
        count: int64[p], how many ranges it has, one at least; they follow each other.
        column: int64[r], for each of r ranges the column whose values it is of.
        low, high: int64[r], the least and the largest value in it.
        other: int64[r], a value that is not in it all the same.
    """

    first: Int64Array
    count: Int64Array
    column: Int64Array
    low: Int64Array
    high: Int64Array
    other: Int64Array


@dataclass(frozen=True)
class Candidates:
    """The rows in the range of each predicate that fewest rows are in.

    Attributes:
        values: int64[c, n], for each column the rows' values.
        ranges: what the predicates ask.
        orders: int64[c, n], for each column the rows in the order of their values.
        predicates: int64[k], those that have candidates.
        narrowest: int64[k], the range of each.
        begins: int64[k], where its rows begin in the order of its column.
        sizes: int64[k], how many they are.
    """

    values: Int64Array
    ranges: Ranges
    orders: Int64Array
    predicates: Int64Array
    narrowest: Int64Array
    begins: Int64Array
    sizes: Int64Array

    @property
    def count(self) -> int:
        """How many pairs of a predicate and a row there are at most."""
        return int(self.sizes.sum())

    def pairs(self) -> tuple[Int64Array, Int64Array]:
        """The pairs of a predicate and a row of which all ranges hold: int64[m] of each, by predicate."""
        sizes, columns = self.sizes, self.ranges.column[self.narrowest]
        within = np.arange(self.count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = self.orders[np.repeat(columns, sizes), np.repeat(self.begins, sizes) + within]
        predicates = np.repeat(self.predicates, sizes)
        ranges = self.ranges
        for turn in range(int(ranges.count[self.predicates].max(initial=0))):
            has = ranges.count[predicates] > turn
            place = np.where(has, ranges.first[predicates] + turn, 0)
            value = self.values[ranges.column[place], rows]
            inside: BoolArray = (ranges.low[place] <= value) & (value <= ranges.high[place])
            kept = ~has | (inside & (value != ranges.other[place]))
            predicates, rows = predicates[kept], rows[kept]
        return predicates, rows


def candidates_of(values: Int64Array, ranges: Ranges) -> Candidates:
    """The rows that predicates may select.

    The rows are sorted by each column. For every predicate the range that fewest rows are in gives the
    candidates, from which its other ranges pick. This is PSoup's index of queries (VLDB 2002, section 4) with
    the sides exchanged: the rows of a batch are sorted, and the bounds of ranges are looked up among them.

    Args:
        values: int64[c, n], for each column the rows' values.
        ranges: what the predicates ask, one of them at least.
    """
    begins = np.empty(len(ranges.low), dtype=np.int64)
    ends = np.empty(len(ranges.low), dtype=np.int64)
    orders = np.argsort(values, axis=1, kind="stable")
    for number, (column, order) in enumerate(zip(values, orders, strict=True)):
        of_column = np.flatnonzero(ranges.column == number)
        known = column[order]
        begins[of_column] = np.searchsorted(known, ranges.low[of_column], "left")
        ends[of_column] = np.searchsorted(known, ranges.high[of_column], "right")
    sizes = np.maximum(ends - begins, 0)
    predicates = np.flatnonzero(np.minimum.reduceat(sizes, ranges.first))
    narrowest = _narrowest(sizes, ranges, predicates)
    return Candidates(values, ranges, orders, predicates, narrowest, begins[narrowest], sizes[narrowest])


def _narrowest(sizes: Int64Array, ranges: Ranges, predicates: Int64Array) -> Int64Array:
    """For each of some predicates the place of the range that fewest rows are in."""
    best = ranges.first[predicates]
    for turn in range(1, int(ranges.count[predicates].max(initial=1))):
        has = ranges.count[predicates] > turn
        other = np.where(has, ranges.first[predicates] + turn, best)
        best = np.where(sizes[other] < sizes[best], other, best)
    return best
