"""Grouped and scalar aggregation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Aggregate
from headrace.elements import Batch, concat, integers, record_batch
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import AggregateCall, Expression
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.aggregates.accumulators import accumulate_distinct, is_invertible
from headrace.operators.aggregates.distinct_values import DistinctValues
from headrace.operators.aggregates.live_values import create_live_values
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.entered import entered
from headrace.operators.state.live_elements import LiveRows
from headrace.operators.state.region_values import RegionValues, ValuedElements, entering
from headrace.operators.state.regions import Regions
from headrace.operators.state.runs import Area
from headrace.operators.state.segments import emit_segments
from headrace.operators.state.sum_columns import sum_arrays, sums_of
from headrace.operators.state.timeline import Points, Timeline, TimelineInput, append_changes
from headrace.schema import Schema
from headrace.time import INFINITY


class AggregateOperator:
    """Grouped and scalar aggregation (timeline family; thesis, section 11.3.6).

    Definition:
        At t, one row per group of `M(t)`: the keys, then each aggregate over the group's rows.

    Retractions:
        A retraction takes its element's sums away over its interval, and its value out of the live values
        (MIN, MAX, FIRST, LAST, PERCENTILE, ARRAY_AGG) and of the distinct ones. A group's last segment is
        emitted up to the next known endpoint and taken back where another comes before it; with `settled` up
        to the heartbeat, and every time that moves the next piece.

    State:
        Per group the sums at the heartbeat and how far its open segment was emitted; per element, or per
        instant where several meet, what leaves at its end. For live values, each value; where nothing is ever
        retracted, only those that can still become the smallest or the largest. For distinct ones, how often
        each is there. Deltas go when the heartbeat has passed them, a
        group's base when its last row has left.

    Example:
        `SELECT k, COUNT(*) AS n ... GROUP BY k`, heartbeat 12:

        ====== ====== ==        ====== ======== ==
        k      [ts,te) w         k, n   [ts,te) w
        ====== ====== ==        ====== ======== ==
        a      [1,10)  +         a, 1   [1,4)    +
        a      [4,14)  +         a, 2   [4,10)   +
        b      [5,9)   +         b, 1   [5,9)    +
        ..                       a, 1   [10,14)  +
        ====== ====== ==        ====== ======== ==
    """

    def __init__(self, node: Aggregate, combined: bool, insert_only: bool, report: Report) -> None:
        self._node = node
        self._combined = combined
        self._report = report
        self._form = Accumulation.of(node)
        self._coalesce = not node.is_chronon
        width = self._form.sums.width
        self._timeline = Timeline(self._form.key_names, width, settled=node.settled)
        self._distinct = {
            entry.inputs: DistinctValues(self._form.key_names, len(entry.inputs))
            for entry in self._form.sums.sums
            if entry.distinct
        }
        self._orderings: dict[Ordering, list[AggregateCall]] = {}
        for _, call in node.aggregates:
            if not is_invertible(call):
                self._orderings.setdefault(Ordering.of(call), []).append(call)
        self._live = {
            ordering: create_live_values(self._form.key_names, ordering, calls, insert_only)
            for ordering, calls in self._orderings.items()
        }
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """Deltas and bases, the live values of each ordering, and the presence of distinct values."""
        areas = self._timeline.areas
        areas |= {f"values{place}": part.values for place, part in enumerate(self._live.values())}
        for place, part in enumerate(self._distinct.values()):
            areas |= {f"distinct{place}_{name}": area for name, area in part.areas.items()}
        return areas

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements, in the accumulated form if they were combined before an exchange."""
        self._inputs.append(batch if self._combined else self._form.accumulate(batch, self._report))

    def advance(self, progress: OperatorProgress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        batch = concat(self._form.schema, self._inputs)
        changes = self._changes(batch)
        keys = changes.keys
        for inputs, values in self._distinct.items():
            changes = append_changes(changes, self._presence(inputs, values, batch, progress.window))
        points = self._timeline.step(changes, *progress.window)
        live = self._advance_live(batch, keys, points, progress.window)
        if points is None:
            return concat(self._node.schema, [])
        return self._emit(points, live)

    @property
    def is_one_timeline(self) -> bool:
        """Whether its state is a timeline and at most live values, and unchanged keys need nothing said."""
        return not self._distinct and not self._node.settled

    @property
    def timeline(self) -> Timeline:
        """The sums, and what is to come of them."""
        return self._timeline

    def entered(self) -> TimelineInput:
        """What has been processed."""
        return self._changes(concat(self._form.schema, self._inputs))

    def held_values(self, regions: Regions) -> list[RegionValues | None]:
        """The values of each ordering in regions, if it is one timeline."""
        live = [self._live[ordering] for ordering in self._orderings]
        return [part.held_values(regions) for part in live]

    def entered_values(self) -> list[ValuedElements]:
        """The values of each ordering that have been processed."""
        batch = concat(self._form.schema, self._inputs)
        keys = self._changes(batch).keys
        return [ValuedElements.of(self._rows(ordering, batch, keys)) for ordering in self._orderings]

    def answer(
        self, changes: TimelineInput, window: tuple[int, int], values: Sequence[ValuedElements] = ()
    ) -> Batch:
        """What is said when elements enter and the horizon moves (instants), if it is one timeline."""
        changes, rows = entering(changes, values)
        points = self._timeline.step(changes, *window)
        if points is None:
            return concat(self._node.schema, [])
        live: dict[AggregateCall, pa.Array] = {}
        for (ordering, calls), part in zip(self._orderings.items(), rows, strict=True):
            found = self._live[ordering].step(part, points, window, calls)
            live |= dict(zip(calls, found, strict=True))
        return self._emit(points, live)

    def held_from(self, heartbeat: int) -> Batch:
        """What it has said of the instants from its heartbeat on (instant)."""
        points = self._timeline.held()
        if points is None:
            return concat(self._node.schema, [])
        none = concat(self._form.schema, [])
        keys = [none.payload.column(name) for name in self._form.key_names]
        live = self._advance_live(none, keys, points, (heartbeat, heartbeat))
        codes, count = np.flatnonzero(points.covered > heartbeat), len(self._node.keys)
        rows = pa.array(codes)
        values = [column.take(rows) for column in self._values(points, live)]
        found = [column.take(rows) for column in points.keys]
        payload = record_batch([*found[:count], *values, *found[count:]], self._node.schema, len(codes))
        ones = np.ones(len(codes), dtype=np.int64)
        return Batch(payload, heartbeat * ones, points.covered[codes], ones)

    @property
    def form(self) -> Accumulation:
        """The accumulated form of its input."""
        return self._form

    def rows_within(self, horizon: int, size: int) -> Batch:
        """The rows that it holds, in the accumulated form, each valid for the instant at which it entered.

        Args:
            horizon: its heartbeat (instant).
            size: for how long each of its rows stays (instants).
        """
        changes, layout = self._timeline.deltas.due(horizon, INFINITY), self._timeline.deltas.layout
        if changes is None:
            return concat(self._form.schema, [])
        found = entered(changes, layout, horizon, size)
        columns = dict(zip(self._form.key_names, found.keys, strict=True))
        columns |= sum_arrays(self._form.int_names, found.sums.limbs, found.sums.values.T)
        ones = np.ones(len(found.times), dtype=np.int64)
        return Batch(pa.RecordBatch.from_pydict(columns), found.times, found.times + 1, ones)

    def begin(self, rows: Batch, size: int, heartbeat: int) -> None:
        """Hold rows in the accumulated form, and say nothing before the heartbeat.

        Args:
            rows: each valid for the instant at which it entered.
            size: for how long each of them stays (instants).
            heartbeat: from which instant on something is said (instant).
        """
        rows = rows.take(np.flatnonzero(rows.ts + size > heartbeat))
        alive = Batch(rows.payload, np.maximum(rows.ts, heartbeat), rows.ts + size, rows.w)
        self._timeline.step(self._changes(alive), heartbeat, heartbeat)

    def _changes(self, batch: Batch) -> TimelineInput:
        keys = [batch.payload.column(name) for name in self._form.key_names]
        return TimelineInput(keys, batch.ts, batch.te, sums_of(batch.payload, self._form.int_names))

    def _column(self, batch: Batch, expression: Expression) -> pa.Array:
        return batch.payload.column(f"__v{self._form.values.index(expression)}")

    def _presence(
        self, inputs: tuple[Expression, ...], values: DistinctValues, batch: Batch, window: tuple[int, int]
    ) -> TimelineInput:
        """What the presence of distinct values adds to the sums."""
        columns = [batch.payload.column(name) for name in self._form.key_names]
        columns += [self._column(batch, part) for part in inputs]
        times = batch.ts, batch.te, integers(batch.payload.column("__i0"))
        found, (ts, te, w) = values.step(columns, times, window)
        keys, present = found[: len(self._form.keys)], found[len(self._form.keys) :]
        return TimelineInput(keys, ts, te, accumulate_distinct(self._form.sums, inputs, present, w))

    def _advance_live(
        self, batch: Batch, keys: list[pa.Array], points: Points | None, window: tuple[int, int]
    ) -> dict[AggregateCall, pa.Array]:
        result: dict[AggregateCall, pa.Array] = {}
        for ordering, calls in self._orderings.items():
            rows = self._rows(ordering, batch, keys)
            found = self._live[ordering].step(rows, points, window, calls)
            result |= dict(zip(calls, found, strict=False))
        return result

    def _rows(self, ordering: Ordering, batch: Batch, keys: list[pa.Array]) -> LiveRows:
        """The elements that count for an ordering."""
        kept = np.arange(len(batch))
        if ordering.needed is not None:
            needed = self._column(batch, ordering.needed)
            kept = np.flatnonzero(np.asarray(needed.is_valid().to_numpy(zero_copy_only=False)))
        columns = [self._column(batch, key.expression) for key in ordering.keys]
        return LiveRows(keys, columns, kept, batch.ts, batch.te, integers(batch.payload.column("__i0")))

    def _emit(self, points: Points, live: dict[AggregateCall, pa.Array]) -> Batch:
        values = self._values(points, live)
        return emitted(points, values, len(self._node.keys), self._node.schema, self._coalesce)

    def _values(self, points: Points, live: dict[AggregateCall, pa.Array]) -> list[pa.Array]:
        """The aggregates at every point, then before the first point of each key."""
        return [
            evaluate(self._form.sums, call, points.sums) if is_invertible(call) else live[call]
            for _, call in self._node.aggregates
        ]


def emitted(points: Points, values: list[pa.Array], keys: int, schema: Schema, coalesce: bool) -> Batch:
    """What aggregates say of some points.

    Args:
        points: the points.
        values: the aggregates at every point, then before the first point of each key.
        keys: so many key columns come before them, and the others after them.
        schema: the result's.
        coalesce: whether segments of equal values are one.
    """
    segments = emit_segments(points, values, coalesce)
    codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
    found = [column.take(pa.array(codes)) for column in points.keys]
    rows = pa.array(segments.rows)
    taken = [
        column.take(rows) if column.null_count < len(column) else pa.nulls(len(rows), column.type)
        for column in values
    ]
    columns = [*found[:keys], *taken, *found[keys:]]
    return Batch(record_batch(columns, schema, len(codes)), segments.ts, segments.te, segments.w)
