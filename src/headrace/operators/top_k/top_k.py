"""The first rows of each group of a snapshot, by an order."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import TopK, column
from headrace.algebra.properties import has_skyband
from headrace.elements import Batch, concat, record_batch
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import SortKey
from headrace.kernels.rows.grouping import order_by_code
from headrace.kernels.values import top_k as kernels
from headrace.kernels.values.inputs import CountChanges, GroupPoints
from headrace.kernels.values.top_k import first_rows
from headrace.operators.aggregates.live_values import LiveValues
from headrace.operators.contract import OperatorProgress
from headrace.operators.state.keys import normalise, order_by
from headrace.operators.state.live_elements import LiveRows
from headrace.operators.state.runs import Area
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Points, Timeline, TimelineInput
from headrace.operators.top_k.skyband import Skyband, reachable
from headrace.operators.top_k.standings import Standings, stand, within_bounds

_ALL: Final = 2**60
"""More rows than a group has."""
_KINDS: Final = {
    Ranking.ROW_NUMBER: kernels.ROW_NUMBER,
    Ranking.RANK: kernels.RANK,
    Ranking.DENSE_RANK: kernels.DENSE_RANK,
}


class TopKOperator:
    """Top-k (timeline family; SQL's ORDER BY with LIMIT at every instant, and ROW_NUMBER by an order).

    Definition:
        At t, the rows of `M(t)` that have the places from `offset + 1` to `offset + limit` in their group, in
        the order of the sort keys and then of all columns; by RANK and DENSE_RANK equals share a place.

    Retractions:
        Change how often a row is there; the rows after it move up or down.

    State:
        Per group all its rows at the heartbeat, since any of them may move up; where nothing is ever
        retracted and `limit` is given, only those that could still be shown when they came, the skyband. Per
        element, or instant, what leaves at its end.

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

    def __init__(self, node: TopK, reduced: bool) -> None:
        self._node = node
        self._reduced = reduced
        self._below = node.input.schema
        self._coalesce = not node.is_chronon
        names = tuple(f"__k{place}" for place in range(len(node.keys)))
        self._timeline = Timeline(names, 1)
        columns = (column(node.input, place) for place in range(len(self._below)))
        self._rows: LiveValues | Skyband = (
            Skyband(node, names)
            if has_skyband(node)
            else LiveValues(names, Ordering(tuple(map(SortKey, columns)), None))
        )
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """Deltas and bases of the groups' sizes, and the groups' rows."""
        return {**self._timeline.areas, "rows": self._rows.values}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements; without those that cannot be shown, if they went before an exchange."""
        reduce = has_skyband(self._node) and not self._reduced
        self._inputs.append(reachable(self._node, batch) if reduce else batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        batch = concat(self._below, self._inputs)
        columns = [normalise(values) for values in batch.payload.columns]
        keys = [columns[key.index] for key in self._node.keys]
        counts = SumColumns(batch.w.reshape(-1, 1))
        points = self._timeline.step(TimelineInput(keys, batch.ts, batch.te, counts), *progress.window)
        rows = LiveRows(keys, columns, np.arange(len(batch)), batch.ts, batch.te, batch.w)
        standings = self._take_in(rows, points, progress.window)
        if points is None or standings is None:
            return concat(self._node.schema, [])
        return self._emit(points, standings)

    def _take_in(self, rows: LiveRows, points: Points | None, window: tuple[int, int]) -> Standings | None:
        if isinstance(self._rows, Skyband):
            return self._rows.take_in(rows, points, window)
        changes = self._rows.take_in(rows, points, window)
        if changes is None or points is None:
            return None
        groups = len(points.covered)
        return stand(self._node, within_bounds(self._node, changes, groups), groups)

    def _emit(self, points: Points, standings: Standings) -> Batch:
        node, changes, groups = self._node, standings.changes, len(points.covered)
        codes = changes.codes[changes.value]
        order = order_by(codes, changes.times, groups)
        by_group = order_by_code(points.codes, np.arange(len(points.codes)), groups)
        begins = np.searchsorted(points.codes[by_group], np.arange(groups + 1))
        limit = _ALL if node.limit is None else min(node.limit, _ALL)
        first, numbers = standings.first, standings.numbers[changes.value]
        found = first_rows(
            CountChanges(codes[order], changes.times[order], numbers[order], changes.counts[order]),
            standings.starts, standings.peers[first],
            GroupPoints(begins, points.times[by_group], points.covered, points.until),
            _KINDS[node.ranking], min(node.offset, _ALL), limit, node.number is not None, self._coalesce,
        )  # fmt: skip
        row, place, ts, te, w = (np.ascontiguousarray(part) for part in found.T)
        columns = [values.take(pa.array(first[row])) for values in changes.columns]
        added = [] if node.number is None else [pa.array(place)]
        return Batch(record_batch([*columns, *added], node.schema, len(row)), ts, te, w)
