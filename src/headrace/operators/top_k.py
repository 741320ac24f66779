"""The first rows of each group of a snapshot, by an order."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import TopK, column
from headrace.elements import Batch, Int64Array, concat, record_batch
from headrace.expressions.tree import Column, SortKey
from headrace.history import payload_codes
from headrace.kernels.top_k import first_rows
from headrace.operators.contract import Progress
from headrace.operators.keys import normalise, order_by
from headrace.operators.live_values import LiveChanges, LiveValues, Ordering, Rows, number_values
from headrace.operators.ranks import rank_rows
from headrace.operators.runs import Area
from headrace.operators.timeline import Changes, Points, Timeline

_ALL: Final = 2**60
"""More rows than a group has."""


class TopKOperator:
    """Top-k (timeline family; SQL's ORDER BY with LIMIT at every instant, and ROW_NUMBER by an order).

    Definition:
        At t, the rows of `M(t)` that stand at the places from `offset + 1` to `offset + limit` of their
        group, in the order of the sort keys and then of all columns.

    Retractions:
        Change how often a row is there; the rows behind it move up or down.

    State:
        Per group all its rows at the heartbeat, since any of them may move up; per element, or instant, what
        leaves at its end.

    A row that stays among the first is not emitted again when others come and go.

    Example:
        `ORDER BY x LIMIT 1`, heartbeat 20:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        5      [1,9)    +        5      [1,3)    +
        2      [3,6)    +        2      [3,6)    +
        7      [4,12)   +        5      [6,9)    +
        ..                       7      [9,12)   +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: TopK) -> None:
        self._node = node
        self._below = node.input.schema
        self._coalesce = not node.is_chronon
        names = tuple(f"__k{place}" for place in range(len(node.keys)))
        self._timeline = Timeline(names, 1, 0)
        columns = (column(node.input, place) for place in range(len(self._below)))
        self._rows = LiveValues(names, Ordering(tuple(map(SortKey, columns)), None))
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """Deltas and bases of the groups' sizes, and the groups' rows."""
        return {"deltas": self._timeline.deltas, "bases": self._timeline.bases, "rows": self._rows.values}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs.append(batch)

    def advance(self, progress: Progress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        batch = concat(self._below, self._inputs)
        columns = [normalise(values) for values in batch.payload.columns]
        keys = [columns[key.index] for key in self._node.keys]
        sums, floats = batch.w.reshape(-1, 1), np.empty((len(batch), 0))
        points = self._timeline.step(Changes(keys, batch.ts, batch.te, sums, floats), *progress.window)
        rows = Rows(keys, columns, np.arange(len(batch)), batch.ts, batch.te, batch.w)
        changes = self._rows.take_in(rows, points, progress.window)
        if points is None or changes is None:
            return concat(self._node.schema, [])
        return self._emit(points, changes)

    def _emit(self, points: Points, changes: LiveChanges) -> Batch:
        groups = len(points.covered)
        numbers, starts, first = number_values(changes.codes, self._ranks(changes), groups)
        codes = changes.codes[changes.value]
        order = order_by(codes, changes.times, groups)
        by_group = np.lexsort((points.times, points.codes))
        begins = np.searchsorted(points.codes[by_group], np.arange(groups + 1))
        limit = _ALL if self._node.limit is None else min(self._node.limit, _ALL)
        found = first_rows(
            codes[order], changes.times[order], numbers[changes.value[order]], changes.counts[order],
            starts, begins, points.times[by_group], points.covered, points.until,
            min(self._node.offset, _ALL), limit, self._node.number is not None, self._coalesce,
        )  # fmt: skip
        row, place, ts, te, w = (np.ascontiguousarray(part) for part in found.T)
        columns = [values.take(pa.array(first[row])) for values in changes.columns]
        added = [] if self._node.number is None else [pa.array(place)]
        return Batch(record_batch([*columns, *added], self._node.schema, len(row)), ts, te, w)

    def _ranks(self, changes: LiveChanges) -> Int64Array:
        """Numbers in the order in which rows stand; the same for equal rows."""
        rows = record_batch(changes.columns, self._below, len(changes.codes))
        codes = payload_codes(rows)
        keys = [key for key in self._node.order if not pa.types.is_null(key.expression.type)]
        if not keys:
            return codes
        by = [rows.column(key.expression.index) for key in keys if isinstance(key.expression, Column)]
        return rank_rows([*by, pa.array(codes)], [*keys, SortKey(keys[0].expression)])
