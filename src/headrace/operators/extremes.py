"""MIN and MAX: the live values of each group, and the smallest or largest of them at every point."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.kernels.extremes import presence_intervals, smallest_present
from headrace.operators.accumulators import smallest_first
from headrace.operators.keys import hash_rows
from headrace.operators.runs import HASH, TIME
from headrace.operators.sweep_area import Layout, Netting, SweepArea
from headrace.operators.timeline import Points
from headrace.time import BEGINNING, INFINITY

_VALUE = "__value"
_COUNT = "__n"


class Extremes:
    """The live values of one argument, shared by its MIN and its MAX.

    Args:
        keys: the names of the key columns in state.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.values = SweepArea(Layout(keys, (_VALUE,), (_COUNT,), netting=Netting.ACCUMULATE))

    def step(
        self,
        keys: list[pa.Array],
        values: pa.Array,
        times: tuple[Int64Array, Int64Array, Int64Array],
        points: Points | None,
        window: tuple[int, int],
        largest: tuple[bool, ...],
    ) -> list[pa.Array]:
        """Take in elements; the extremes at every point.

        Args:
            keys: normalised key columns, n rows.
            values: the argument's column, n rows; NULLs are passed over.
            times: ts, te and w, int64[n] each.
            points: the points of the touched keys.
            window: the old and the new horizon.
            largest: for each wanted extreme whether it is the maximum.

        Returns:
            One column per wanted extreme, m rows for the points, then k rows for the bases.
        """
        ts, te, w = times
        rows = np.flatnonzero(np.asarray(values.is_valid().to_numpy(zero_copy_only=False)))
        ends = rows[te[rows] != INFINITY]
        element = np.concatenate([rows, ends])
        changes = {TIME: np.concatenate([ts[rows], te[ends]]), _COUNT: np.concatenate([w[rows], -w[ends]])}
        result = []
        if points is not None:
            live = self._live(points, values, element, changes[TIME], changes[_COUNT], window)
            result = [_extreme(points, *live, want) for want in largest]
        self._store(keys, values, element, changes)
        self.values.expire(window[1])
        return result

    def _live(
        self,
        points: Points,
        values: pa.Array,
        element: Int64Array,
        times: Int64Array,
        counts: Int64Array,
        window: tuple[int, int],
    ) -> tuple[pa.Array, Int64Array, Int64Array, Int64Array]:
        """All changes below the new horizon to the values of touched keys: value, key, time, count."""
        before, horizon = window
        due = np.flatnonzero(times < horizon)
        column = values.take(pa.array(element[due]))
        codes, times, counts = points.element_keys[element[due]], times[due], counts[due]
        places, stored = self.values.gather(points.hashes, points.keys)
        if stored is not None:
            stored_times = integers(stored.column(TIME))
            past = np.flatnonzero(stored_times < horizon)
            column = pa.concat_arrays([stored.column(_VALUE).take(pa.array(past)), column])
            clamped = np.where(stored_times[past] < before, BEGINNING, stored_times[past])
            codes = np.concatenate([places[past], codes])
            times = np.concatenate([clamped, times])
            counts = np.concatenate([integers(stored.column(_COUNT))[past], counts])
        return column, codes, times, counts

    def _store(
        self, keys: list[pa.Array], values: pa.Array, element: Int64Array, changes: dict[str, Int64Array]
    ) -> None:
        rows = pa.array(element)
        columns = dict(zip(self.values.layout.keys, (key.take(rows) for key in keys), strict=True))
        columns |= {name: pa.array(change) for name, change in changes.items()}
        columns[_VALUE] = values.take(rows)
        columns[HASH] = pa.array(hash_rows(keys, len(values))[element])
        self.values.insert(columns)


def _extreme(
    points: Points, column: pa.Array, codes: Int64Array, times: Int64Array, counts: Int64Array, largest: bool
) -> pa.Array:
    ranks = smallest_first(column, largest)
    order = np.lexsort((times, ranks, codes))
    opening, starts, ends = presence_intervals(order, codes, ranks, times, counts)
    interval_codes = codes[opening]
    keys = len(points.covered)
    all_codes = np.concatenate([points.codes, np.arange(keys)])
    all_times = np.concatenate([points.times, np.full(keys, BEGINNING)])
    by_key = np.lexsort((all_times, all_codes))
    found = np.empty(len(by_key), dtype=np.int64)
    found[by_key] = smallest_present(
        all_codes[by_key],
        all_times[by_key],
        np.lexsort((starts, interval_codes)),
        interval_codes,
        ranks[opening],
        starts,
        ends,
    )
    rows = np.full(len(found), -1, dtype=np.int64)
    rows[found >= 0] = opening[found[found >= 0]]
    return column.take(pa.array(rows, mask=rows < 0))
