"""Aggregates over frames of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RowsFrame
from headrace.algebra.nodes import Aggregate, Over, Source, column
from headrace.elements import Batch, Int64Array, concat_rows, integers, record_batch
from headrace.expressions.tree import AggregateCall, expressions_of
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.runs import Area
from headrace.operators.windows.arrived import Arrived, FrameValues
from headrace.operators.windows.kept_rows import NUMBER, KeptRows, LastRows, RowColumns
from headrace.operators.windows.running import Entering, RunningRows, or_nothing
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain

_PARTITION = "__partition"


@dataclass(frozen=True, eq=False)
class _Numbered:
    """New rows in order, with what is kept of their partitions.

    Attributes:
        new: n rows.
        old: the rows before them.
        partitions, places: int64[n], the partition of each new row, and its place among the new ones there.
    """

    new: Arrived
    old: KeptRows
    partitions: Int64Array
    places: Int64Array

    @property
    def numbers(self) -> Int64Array:
        """int64[n], the number of each new row in its partition, from 1."""
        return self.old.counts[self.partitions] + self.places + 1


class RowFrames:
    """All frames of rows of an OVER, which share the last rows of each partition.

    Args:
        node: the plan node.
        frames: its aggregates over frames of rows.
        report: receives what fails.
    """

    def __init__(self, node: Over, frames: dict[RowsFrame, list[AggregateCall]], report: Report) -> None:
        self._columns = RowColumns(node.input.schema, node.keys)
        kept = max(frame.last if frame.first is None else frame.first for frame in frames)
        self._kept = max(kept, 1)
        self._rows = LastRows(self._columns, self._kept)
        self._frames = frames
        self._parts = [_create(node, frame, calls, report) for frame, calls in frames.items()]

    @property
    def areas(self) -> dict[str, Area]:
        """The last rows of each partition, and what running aggregates keep."""
        areas: dict[str, Area] = {"rows": self._rows.area}
        for place, part in enumerate(self._parts):
            areas |= {f"frame{place}_{name}": area for name, area in part.areas.items()}
        return areas

    def step(self, arrived: Arrived | None, _: tuple[int, int]) -> FrameValues:
        """The aggregates for new rows, if there are any; they come in their order."""
        if arrived is None:
            return {}
        old, starts = self._rows.of(arrived), arrived.starts
        places = np.arange(len(arrived.codes)) - starts[arrived.codes]
        numbered = _Numbered(arrived, old, arrived.codes, places)
        result: FrameValues = {}
        for (frame, calls), part in zip(self._frames.items(), self._parts, strict=True):
            columns = part.step(numbered, self._columns)
            result |= {(frame, call): values for call, values in zip(calls, columns, strict=True)}
        stay = np.flatnonzero(starts[arrived.codes + 1] - np.arange(len(places)) <= self._kept)
        self._rows.keep(arrived.rows.take(stay), numbered.numbers[stay])
        return result


def _create(
    node: Over, frame: RowsFrame, calls: list[AggregateCall], report: Report
) -> _Counts | _Running | _Grouped:
    if frame.first is not None:
        return _Grouped(frame, calls, report)
    if all(call.function == "COUNT" and not expressions_of(call) for call in calls):
        return _Counts(frame, len(calls))
    return _Running(frame, RunningRows(node, calls, report))


class _Counts:
    """Counts of all rows so far: the rows' numbers."""

    def __init__(self, frame: RowsFrame, width: int) -> None:
        self._frame, self._width = frame, width

    @property
    def areas(self) -> dict[str, Area]:
        return {}

    def step(self, rows: _Numbered, _: RowColumns) -> list[pa.Array]:
        return [pa.array(np.maximum(rows.numbers - self._frame.last, 0))] * self._width


class _Running:
    """Aggregates over all rows of a partition from the first one on."""

    def __init__(self, frame: RowsFrame, running: RunningRows) -> None:
        self._frame, self._running = frame, running

    @property
    def areas(self) -> dict[str, Area]:
        return self._running.areas

    def step(self, rows: _Numbered, columns: RowColumns) -> list[pa.Array]:
        """What enters the frame of each new row is the one `last` places before it."""
        payload, old = rows.new.rows.payload, rows.old
        kept = np.diff(old.starts)
        if old.rows is not None:
            payload = concat_rows([columns.payload_of(old.rows), payload])
        back = rows.places - self._frame.last
        ours = rows.new.starts[rows.partitions] + back + len(old)
        before = old.starts[rows.partitions] + kept[rows.partitions] + back
        entering = np.where(back >= 0, ours, np.where(back >= -kept[rows.partitions], before, -1))
        return self._running.step(Entering(payload, entering))


class _Grouped:
    """Aggregates over so many last rows.

    They are those of a grouped aggregation whose time is a row's place: the row at place i is valid from
    i + last to i + first, and the answer for a row is the group's at the row's place.
    """

    def __init__(self, frame: RowsFrame, calls: list[AggregateCall], report: Report) -> None:
        self._frame, self._calls, self._report = frame, calls, report

    @property
    def areas(self) -> dict[str, Area]:
        return {}

    def step(self, rows: _Numbered, columns: RowColumns) -> list[pa.Array]:
        assert self._frame.first is not None
        # Places count from the first new row of each partition on; kept rows come before it.
        found = self._found(rows, columns, self._frame.first)
        reach = np.int64(len(rows.places) + 2 * self._frame.first + 2)
        starts = integers(found.payload.column(_PARTITION)) * reach + found.ts
        order = stable_order(starts)
        wanted = rows.partitions * reach + rows.places
        segment = np.searchsorted(starts[order], wanted, side="right") - 1
        at = order[np.maximum(segment, 0)] if len(order) else np.zeros(len(wanted), dtype=np.int64)
        outside = segment < 0
        if len(order):
            ends = starts[at] + found.te[at] - found.ts[at]
            outside |= wanted >= ends
        indices = pa.array(at, mask=outside)
        return [
            or_nothing(found.payload.column(place).take(indices), call)
            for place, call in enumerate(self._calls, 1)
        ]

    def _found(self, rows: _Numbered, columns: RowColumns, first: int) -> Batch:
        """The aggregates of each partition at every place of a new row."""
        partitions, places = rows.partitions, rows.places
        payload, old = rows.new.rows.payload, rows.old
        if old.rows is not None and old.rows.num_rows:
            before = np.repeat(np.arange(len(old.counts)), np.diff(old.starts))
            numbers = integers(old.rows.column(NUMBER))
            places = np.concatenate([numbers - old.counts[before] - 1, places])
            partitions = np.concatenate([before, partitions])
            payload = concat_rows([columns.payload_of(old.rows), payload])
        fields = tuple(Field(f"p{place}", field.type) for place, field in enumerate(columns.schema))
        schema = Schema((*fields, Field(_PARTITION, BIGINT)))
        source = Source("rows", schema, "", TimeDomain.INTEGER)
        named = tuple((f"a{place}", call) for place, call in enumerate(self._calls))
        node = Aggregate(source, ((_PARTITION, column(source, len(fields))),), named)
        operator = AggregateOperator(node, combined=False, insert_only=True, report=self._report)
        ts, te = places + self._frame.last, places + first + 1
        elements = record_batch([*payload.columns, pa.array(partitions)], schema, len(places))
        operator.process(0, Batch(elements, ts, te, np.ones(len(places), dtype=np.int64)))
        return operator.advance(OperatorProgress((BEGINNING,), (INFINITY,)))
