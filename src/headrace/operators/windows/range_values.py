"""Aggregates over frames of time that depend on which values there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import Aggregate, Over, Source
from headrace.elements import Batch, Int64Array, empty
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import AggregateCall
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.aggregates.live_values import create_live_values
from headrace.operators.contract import OperatorProgress, Report, evaluate_all
from headrace.operators.state.keys import encode_keys, hash_rows, normalise
from headrace.operators.state.live_elements import LiveRows
from headrace.operators.state.runs import Area
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Points
from headrace.operators.windows.arrived import Arrived, FrameValues
from headrace.time import BEGINNING, INFINITY, TimeDomain


class RangeValues:
    """Aggregates over the live values of one ordering: the first, the last, places between them, or all.

    Args:
        node: the partitions, and the rows.
        frame: the frame.
        ordering: which values.
        calls: the aggregates.
        report: receives what fails.
    """

    def __init__(
        self, node: Over, frame: RangeFrame, ordering: Ordering, calls: list[AggregateCall], report: Report
    ) -> None:
        self._schema, self._frame = node.input.schema, frame
        self._ordering, self._calls, self._report = ordering, calls, report
        self._types = [node.input.schema[key.index].type for key in node.keys]
        names = tuple(f"__k{place}" for place in range(len(node.keys)))
        self._live = create_live_values(names, ordering, calls, insert_only=True)

    @property
    def areas(self) -> dict[str, Area]:
        """The values that are or can become an answer."""
        return {"values": self._live.values}

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> FrameValues:
        """The aggregates for new rows, if there are any."""
        if arrived is None:
            none = empty(self._schema)
            self._live.step(self._rows(none, self._no_keys()), None, window, self._calls)
            return {}
        keys = [key.take(pa.array(arrived.codes)) for key in arrived.keys]
        rows, count = self._rows(arrived.rows, keys), len(arrived.instants.times)
        found = self._live.step(rows, _points(arrived), window, self._calls)
        columns = (arrived.instants.per_row(column.slice(0, count)) for column in found)
        return {(self._frame, call): values for call, values in zip(self._calls, columns, strict=True)}

    def _no_keys(self) -> list[pa.Array]:
        return [pa.array([], dtype) for dtype in self._types]

    def _rows(self, batch: Batch, keys: list[pa.Array]) -> LiveRows:
        """Rows as elements of the values, which stay for the length of the frame."""
        _, found = evaluate_all(self._ordering.expressions, batch, self._report)
        values = [normalise(column) for column in found]
        kept = np.arange(len(batch))
        if self._ordering.needed is not None:
            kept = np.flatnonzero(np.asarray(values.pop().is_valid().to_numpy(zero_copy_only=False)))
        return LiveRows(keys, values, kept, batch.ts, frame_ends(batch, self._frame), batch.w)


def _points(arrived: Arrived) -> Points:
    """The instants of new rows as points of a timeline, at which there always is a row."""
    instants, count = arrived.instants, len(arrived.hashes)
    previous = np.arange(len(instants.times)) - 1
    previous[instants.first[:-1]] = -1
    present = np.concatenate([np.ones(len(instants.times), np.int64), np.zeros(count, np.int64)])
    never, ends = np.full(count, BEGINNING), np.full(count, INFINITY)
    return Points(
        arrived.keys, arrived.hashes, arrived.codes, instants.codes, instants.times, previous,
        SumColumns(present.reshape(-1, 1)), never, ends,
    )  # fmt: skip


def frame_ends(rows: Batch, frame: RangeFrame) -> Int64Array:
    """Up to when rows are in frames: the end of the time for which they are valid."""
    size = frame.size.length
    return np.full(len(rows), INFINITY) if size == INFINITY else rows.ts + size


class RangeGroups:
    """Any aggregates over the last instants, or over all so far.

    They are those of a grouped aggregation of rows that are valid for so many instants: chronons are not
    coalesced, so that a segment starts at every instant of a new row.

    Args:
        node: the partitions.
        frame: the frame.
        calls: the aggregates.
        report: receives what fails.
    """

    def __init__(self, node: Over, frame: RangeFrame, calls: list[AggregateCall], report: Report) -> None:
        self._frame, self._calls = frame, calls
        rows = Source("rows", node.input.schema, "", TimeDomain.INTEGER)
        keys = tuple((f"k{place}", key) for place, key in enumerate(node.keys))
        named = tuple((f"a{place}", call) for place, call in enumerate(calls))
        self._width = len(keys)
        grouped = Aggregate(rows, keys, named)
        self._groups = AggregateOperator(grouped, combined=False, insert_only=True, report=report)

    @property
    def areas(self) -> dict[str, Area]:
        """The aggregation's state."""
        return dict(self._groups.areas)

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> FrameValues:
        """The aggregates for new rows, if there are any."""
        if arrived is not None:
            rows, te = arrived.rows, frame_ends(arrived.rows, self._frame)
            self._groups.process(0, Batch(rows.payload, rows.ts, te, rows.w))
        found = self._groups.advance(OperatorProgress((window[0],), (window[1],)))
        if arrived is None:
            return {}
        at = pa.array(self._segments(arrived, found)[arrived.instants.numbers])
        columns = (column.take(at) for column in found.payload.columns[self._width :])
        return {(self._frame, call): values for call, values in zip(self._calls, columns, strict=True)}

    def _segments(self, arrived: Arrived, found: Batch) -> Int64Array:
        """The segment that starts at each instant; int64[m]."""
        instants = arrived.instants
        fresh = np.flatnonzero(found.w > 0)
        theirs = [column.take(pa.array(fresh)) for column in found.payload.columns[: self._width]]
        ours = [key.take(pa.array(instants.codes)) for key in arrived.keys]
        columns = [pa.concat_arrays(pair) for pair in zip(theirs, ours, strict=True)]
        columns.append(pa.array(np.concatenate([found.ts[fresh], instants.times])))
        codes = encode_keys(columns, hash_rows(columns, len(columns[-1]))).codes
        segments = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        segments[codes[: len(fresh)]] = fresh
        return segments[codes[len(fresh) :]]
