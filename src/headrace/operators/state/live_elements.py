"""Elements that can still matter, by key, where nothing is ever retracted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import hash_rows, order_by
from headrace.operators.state.runs import END, HASH, TIME
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.operators.state.timeline import Points
from headrace.time import BEGINNING, INFINITY

COUNT: Final = "__n"
"""The column of state that says how many copies of a row there are."""


@dataclass(frozen=True, eq=False)
class LiveRows:
    """Elements of a batch that count.

    Attributes:
        keys: normalised key columns, n rows.
        columns: the columns of the ordering's keys, n rows.
        kept: int64[e], the rows that count.
        ts, te, w: int64[n].
    """

    keys: list[pa.Array]
    columns: list[pa.Array]
    kept: Int64Array
    ts: Int64Array
    te: Int64Array
    w: Int64Array


@dataclass(frozen=True, eq=False)
class Pool:
    """What is known of the touched keys: new elements first, then stored ones, those that end early first.

    Attributes:
        columns: n rows.
        codes: int64[n], the touched key of each, -1 for an element that only waits.
        starts, ends, counts: int64[n].
    """

    columns: list[pa.Array]
    codes: Int64Array
    starts: Int64Array
    ends: Int64Array
    counts: Int64Array

    def by_key(self, times: Int64Array, count: int) -> Int64Array:
        """The elements of touched keys 0..count-1 sorted by key and by those times, stably."""
        touched = np.flatnonzero(self.codes >= 0)
        return touched[order_by(self.codes[touched], times[touched], count)]


class LiveElements:
    """The elements of one bucket that can still matter.

    Args:
        keys: the names of the key columns in state.
        width: how many columns an element has.
    """

    def __init__(self, keys: tuple[str, ...], width: int) -> None:
        self._names = value_names(width)
        self.area = SweepArea(Layout(keys, (*self._names, END), (COUNT,)))

    def pooled(self, rows: LiveRows, points: Points, before: int = INFINITY) -> Pool:
        """The new elements that count, and those of touched keys in state that begin before an instant."""
        kept = rows.kept
        columns = [column.take(pa.array(kept)) for column in rows.columns]
        times = points.element_keys[kept], rows.ts[kept], rows.te[kept], rows.w[kept]
        limits = np.full(len(points.hashes), BEGINNING), np.full(len(points.hashes), before)
        places, stored = self.area.between(points.hashes, points.keys, *limits)
        if stored is None:
            return Pool(columns, *times)
        # Of one start the first to end comes first, so that the intervals of a window end in order.
        by_end = stable_order(integers(stored.column(END)))
        stored, places = stored.take(pa.array(by_end)), places[by_end]
        older = [stored.column(name) for name in self._names]
        old_times = (places, *(integers(stored.column(name)) for name in (TIME, END, COUNT)))
        return Pool(
            [pa.concat_arrays(pair) for pair in zip(columns, older, strict=True)],
            *(np.concatenate(pair) for pair in zip(times, old_times, strict=True)),
        )

    def overlapping(
        self, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, list[pa.Array], list[Int64Array]] | None:
        """The elements of keys that are valid somewhere in an interval.

        Args:
            hashes, keys: of k keys, in any order, also of one more than once.
            starts, ends: int64[k] each.

        Returns:
            For each element found the position of its key (int64[n]); the columns; starts, ends and counts
            (int64[n] each). None where there are none.
        """
        places, stored = self.area.overlapping(hashes, keys, starts, ends)
        if stored is None:
            return None
        columns = [stored.column(name) for name in self._names]
        return places, columns, [integers(stored.column(name)) for name in (TIME, END, COUNT)]

    def keep(self, rows: LiveRows, needed: BoolArray | None, horizon: int) -> None:
        """Store new elements, and forget what the horizon has passed.

        Args:
            rows: the elements.
            needed: which of those that count can still matter, at least as many; None for all.
            horizon: the new horizon.
        """
        kept = rows.kept if needed is None else rows.kept[needed[: len(rows.kept)]]
        times = {TIME: rows.ts[kept], END: rows.te[kept], COUNT: rows.w[kept]}
        columns = {name: pa.array(values) for name, values in times.items()}
        self.area.insert(columns | stored_columns(self.area.layout, rows, kept))
        self.area.expire(horizon)


def value_names(width: int) -> tuple[str, ...]:
    """The names that an element's columns have in state."""
    return tuple(f"__value{place}" for place in range(width))


def stored_columns(layout: Layout, rows: LiveRows, element: Int64Array) -> dict[str, pa.Array]:
    """The columns of state that come from elements as they are."""
    places = pa.array(element)
    columns = dict(zip(layout.keys, (key.take(places) for key in rows.keys), strict=True))
    names = [name for name in layout.same if name != END]
    columns |= {name: column.take(places) for name, column in zip(names, rows.columns, strict=True)}
    columns[HASH] = pa.array(hash_rows(rows.keys, len(rows.ts))[element])
    return columns
