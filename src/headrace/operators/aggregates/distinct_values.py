"""The distinct values of each group: when each is present, which is what their aggregates add up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array
from headrace.operators.state.runs import Area
from headrace.operators.state.segments import emit_segments
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Timeline, TimelineInput


class DistinctValues:
    """A timeline per group and value: duplicate elimination in front of an aggregate.

    Args:
        keys: the names of the key columns in state.
        width: how many columns a value has.
    """

    def __init__(self, keys: tuple[str, ...], width: int) -> None:
        self._width = width
        self._timeline = Timeline((*keys, *(f"__value{place}" for place in range(width))), 1)

    @property
    def areas(self) -> dict[str, Area]:
        """Deltas and bases."""
        return self._timeline.areas

    def step(
        self,
        columns: list[pa.Array],
        times: tuple[Int64Array, Int64Array, Int64Array],
        window: tuple[int, int],
    ) -> tuple[list[pa.Array], tuple[Int64Array, Int64Array, Int64Array]]:
        """Take in elements.

        Args:
            columns: the normalised key columns, then those of the values, n rows; values with a NULL are
                passed over.
            times: ts, te and w, int64[n] each.
            window: the old and the new horizon.

        Returns:
            Elements that say when which value is present, and corrections of those given before: the same
            columns, and ts, te and w.
        """
        valid = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns[-self._width :]]
        rows = np.flatnonzero(np.logical_and.reduce(valid))
        if len(rows) < len(columns[-1]):
            columns = [column.take(pa.array(rows)) for column in columns]
        ts, te, w = (part[rows] for part in times)
        points = self._timeline.step(TimelineInput(columns, ts, te, SumColumns(w.reshape(-1, 1))), *window)
        if points is None:
            none = np.empty(0, dtype=np.int64)
            return [column.slice(0, 0) for column in columns], (none, none, none)
        segments = emit_segments(points, [], coalesce=True)
        codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
        present = [column.take(pa.array(codes)) for column in points.keys]
        return present, (segments.ts, segments.te, segments.w)
