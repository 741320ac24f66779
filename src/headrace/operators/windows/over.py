"""Aggregates over the rows before each row."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.frames import RangeFrame, RowsFrame
from headrace.algebra.nodes import Over
from headrace.elements import Batch, concat, record_batch
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import AggregateCall
from headrace.operators.aggregates.accumulators import is_invertible
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.runs import Area
from headrace.operators.windows.arrived import Arrived, FrameValues
from headrace.operators.windows.kept_rows import RowColumns, WaitingRows
from headrace.operators.windows.range_sums import RangeSums, RunningTotals, is_running_sum
from headrace.operators.windows.range_values import RangeGroups, RangeValues
from headrace.operators.windows.row_frames import RowFrames
from headrace.time import INFINITY

_Part = RowFrames | RangeSums | RunningTotals | RangeValues | RangeGroups


class OverOperator:
    """Every row with aggregates over rows before it (row window family; SQL's OVER).

    Definition:
        At t, every row of `M(t)` with the aggregates over those rows of its partition that are in the frame
        of each: of the last instants, or of the last places in the order of instant and payload.

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and answered once.

    State:
        The rows above the heartbeat. For frames of time, per partition the running sums of the last instants,
        or what other aggregates keep of their rows. For frames of rows, per partition, for ever, since it may
        come again, the last rows that a frame reaches back to, and what the aggregates keep of those before.

    Example:
        `SUM(x) OVER (RANGE 5 PRECEDING)`, heartbeat 12:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x, sum [ts,te)  w
        ====== ======= ==        ====== ======= ==
        5      [1,2)    +        5, 5   [1,2)    +
        2      [6,7)    +        2, 7   [6,7)    +
        1      [9,10)   +        1, 3   [9,10)   +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Over, report: Report) -> None:
        self._node = node
        self._columns = RowColumns(node.input.schema, node.keys)
        self._waiting = WaitingRows(self._columns)
        rows: dict[RowsFrame, list[AggregateCall]] = {}
        ranges: dict[RangeFrame, list[AggregateCall]] = {}
        for _, call, frame in node.aggregates:
            if isinstance(frame, RowsFrame):
                rows.setdefault(frame, []).append(call)
            else:
                ranges.setdefault(frame, []).append(call)
        self._in_order = bool(rows)
        parts: list[_Part] = [RowFrames(node, rows, report)] if rows else []
        parts += _sums(node, ranges, report)
        for frame, calls in ranges.items():
            parts += _values(node, frame, calls, report)
        self._parts = parts
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """The rows above the heartbeat, and what the frames keep."""
        areas: dict[str, Area] = {"waiting": self._waiting.area}
        for place, part in enumerate(self._parts):
            areas |= {f"part{place}_{name}": area for name, area in part.areas.items()}
        return areas

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The rows below the new heartbeat, each with its aggregates."""
        batch = self._waiting.due(self._inputs, progress.window)
        arrived = self._arrived(batch) if len(batch) else None
        found: FrameValues = {}
        for part in self._parts:
            found |= part.step(arrived, progress.window)
        if arrived is None:
            return concat(self._node.schema, [])
        rows = arrived.rows
        columns = [found[frame, call] for _, call, frame in self._node.aggregates]
        payload = record_batch([*rows.payload.columns, *columns], self._node.schema, len(rows))
        return Batch(payload, rows.ts, rows.te, rows.w)

    def _arrived(self, batch: Batch) -> Arrived | None:
        """The rows that are left where what was retracted cancels; in order if frames of rows need that."""
        arrived = Arrived.of(batch, self._columns.keys_of(batch))
        if not len(arrived.rows):
            return None
        return arrived.in_order() if self._in_order else arrived


def _sums(node: Over, ranges: dict[RangeFrame, list[AggregateCall]], report: Report) -> Iterator[_Part]:
    """What computes the sums over frames of time: those of the last instants share their state."""
    sums = {frame: [call for call in calls if is_running_sum(call)] for frame, calls in ranges.items()}
    last = {frame: calls for frame, calls in sums.items() if calls and frame.size.length < INFINITY}
    if last:
        yield RangeSums(node, last, report)
    for frame, calls in sums.items():
        if calls and frame not in last:
            yield RunningTotals(node, calls, report)


def _values(node: Over, frame: RangeFrame, calls: list[AggregateCall], report: Report) -> Iterator[_Part]:
    """What computes the other aggregates over a frame of time."""
    others = [call for call in calls if not is_running_sum(call)]
    orderings: dict[Ordering, list[AggregateCall]] = {}
    for call in others:
        if not is_invertible(call):
            orderings.setdefault(Ordering.of(call), []).append(call)
    for ordering, together in orderings.items():
        yield RangeValues(node, frame, ordering, together, report)
    distinct = [call for call in others if is_invertible(call)]
    if distinct:
        yield RangeGroups(node, frame, distinct, report)
