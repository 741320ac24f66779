"""Aggregation over several windows that end together, with one state."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import NestedAggregate
from headrace.elements import Batch, concat
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.aggregates.aggregate import emitted
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.nested_schedule import NestedSchedule
from headrace.operators.state.runs import Area
from headrace.operators.state.sum_columns import SumColumns, sums_of
from headrace.operators.state.timeline import Timeline, TimelineInput

_NUMBER: Final = "__window"


class NestedAggregateOperator:
    """Aggregation over several windows (timeline family), of which each lies in the longest.

    Definition:
        At t, for each window one row per group of its content: the keys, the aggregates, the window's number.
        The input is the longest window; in one that is shorter by d its elements end d earlier.

    Retractions:
        As for aggregation.

    State:
        Per group, or per instant where several meet, what leaves the longest window at its end: once for all
        windows. Per group and window the sums at the heartbeat, and how far its open segment was emitted.

    Example:
        `SELECT k, COUNT(*) AS n ... GROUP BY k` over windows of 10 and 7 instants, heartbeat 12:

        ====== ======= ==        ========== ======= ==
        k      [ts,te) w         k, n, window [ts,te) w
        ====== ======= ==        ========== ======= ==
        a      [1,11)  +         a, 1, 0    [1,4)   +
        a      [4,14)  +         a, 2, 0    [4,11)  +
        ..                       a, 1, 0    [11,14) +
        ..                       a, 1, 1    [1,4)   +
        ..                       a, 2, 1    [4,8)   +
        ..                       a, 1, 1    [8,11)  +
        ====== ======= ==        ========== ======= ==
    """

    def __init__(self, node: NestedAggregate, combined: bool, report: Report) -> None:
        self._node = node
        self._combined = combined
        self._report = report
        self._form = Accumulation.of(node.widest)
        longest = node.window.size.length
        self._less = np.array([0, *(longest - size.length for size in node.shorter)])
        keys, ints = self._form.key_names, self._form.int_names
        schedule = NestedSchedule(keys, _NUMBER, ints, self._less)
        self._timeline = Timeline((*keys, _NUMBER), self._form.sums.width, deltas=schedule)
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """What begins, what ends in the longest window, and the sums of each window."""
        return self._timeline.areas

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements, in the accumulated form if they were combined before an exchange."""
        self._inputs.append(batch if self._combined else self._form.accumulate(batch, self._report))

    def advance(self, progress: OperatorProgress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        points = self._timeline.step(self._changes(), *progress.window)
        if points is None:
            return concat(self._node.schema, [])
        values = [evaluate(self._form.sums, call, points.sums) for _, call in self._node.aggregates]
        return emitted(points, values, len(self._node.keys), self._node.schema, coalesce=True)

    def _changes(self) -> TimelineInput:
        """The elements that have entered, once for each window."""
        batch = concat(self._form.schema, self._inputs)
        count, windows = len(batch), len(self._less)
        rows = pa.array(np.tile(np.arange(count), windows))
        keys = [batch.payload.column(name).take(rows) for name in self._form.key_names]
        number = np.repeat(np.arange(windows), count)
        sums = sums_of(batch.payload, self._form.int_names)
        return TimelineInput(
            [*keys, pa.array(number)],
            np.tile(batch.ts, windows),
            np.tile(batch.te, windows) - self._less[number],
            SumColumns(np.tile(sums.values, (windows, 1)), sums.limbs),
        )
