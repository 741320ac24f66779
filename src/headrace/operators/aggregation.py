"""Grouped and scalar aggregation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Aggregate, is_chronon
from headrace.elements import Batch, concat, integers, record_batch
from headrace.expressions.tree import Expression
from headrace.kernels.timeline import net_points
from headrace.operators.accumulators import SumLayout, accumulate, evaluate, is_invertible, layout_of
from headrace.operators.contract import Progress, Report, evaluate_all
from headrace.operators.extremes import Extremes
from headrace.operators.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.segments import emit_segments
from headrace.operators.sweep_area import SweepArea, matrix
from headrace.operators.timeline import Changes, Points, Timeline
from headrace.schema import BIGINT, DOUBLE, Field, Schema


@dataclass(frozen=True)
class Accumulation:
    """How an aggregation's input is turned into keys, live values and sums.

    Attributes:
        keys: the grouping expressions.
        values: the arguments of MIN and MAX, each once.
        sums: the layout of everything invertible.
        schema: the columns of the accumulated form: `__k*` keys, `__v*` values, `__i*` and `__f*` sums.
    """

    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]
    sums: SumLayout
    schema: Schema

    @classmethod
    def of(cls, node: Aggregate) -> Accumulation:
        """The accumulation of a plan node."""
        calls = tuple(call for _, call in node.aggregates)
        extremes = [call.argument for call in calls if not is_invertible(call) and call.argument is not None]
        values = tuple(dict.fromkeys(extremes))
        keys = tuple(key for _, key in node.keys)
        sums = layout_of(calls)
        fields = [Field(f"__k{place}", key.type) for place, key in enumerate(keys)]
        fields += [Field(f"__v{place}", value.type) for place, value in enumerate(values)]
        fields += [Field(f"__i{place}", BIGINT) for place in range(sums.int_width)]
        fields += [Field(f"__f{place}", DOUBLE) for place in range(sums.float_width)]
        return cls(keys, values, sums, Schema(tuple(fields)))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The key columns of the accumulated form."""
        return tuple(f"__k{place}" for place in range(len(self.keys)))

    @property
    def int_names(self) -> tuple[str, ...]:
        """The int64 sums of the accumulated form."""
        return tuple(f"__i{place}" for place in range(self.sums.int_width))

    @property
    def float_names(self) -> tuple[str, ...]:
        """The float64 sums of the accumulated form."""
        return tuple(f"__f{place}" for place in range(self.sums.float_width))

    def accumulate(self, batch: Batch, report: Report) -> Batch:
        """The accumulated form of elements: every sum is already multiplied by `w`, which becomes 1."""
        arguments = [entry.argument for entry in self.sums.sums if entry.argument is not None]
        batch, columns = evaluate_all([*self.keys, *self.values, *arguments], batch, report)
        keys = [normalise(column) for column in columns[: len(self.keys)]]
        values = [normalise(column) for column in columns[len(keys) : len(keys) + len(self.values)]]
        ints, floats = accumulate(self.sums, columns[len(keys) + len(values) :], batch.w)
        sums = [pa.array(part[:, place]) for part in (ints, floats) for place in range(part.shape[1])]
        payload = record_batch([*keys, *values, *sums], self.schema, len(batch))
        return Batch(payload, batch.ts, batch.te, np.ones(len(batch), dtype=np.int64))

    def combine(self, batch: Batch) -> Batch:
        """Accumulated elements of one key, one set of values and one interval, added up.

        Done before an exchange where many elements share an interval, or all share a key.
        """
        identity = [batch.payload.column(name) for name in self.schema.names[: self._identity_width]]
        identity.append(pa.array(batch.te))
        codes = encode_keys(identity, hash_rows(identity, len(batch)))
        order = order_by(codes.codes, batch.ts, len(codes))
        ints = matrix(batch.payload, self.int_names, np.int64)
        floats = matrix(batch.payload, self.float_names, np.float64)
        first, ints, floats = net_points(order, codes.codes, batch.ts, ints, floats)
        kept = batch.take(first)
        sums = [pa.array(part[:, place]) for part in (ints, floats) for place in range(part.shape[1])]
        columns = [*kept.payload.columns[: self._identity_width], *sums]
        return kept.with_payload(record_batch(columns, self.schema, len(kept)))

    @property
    def _identity_width(self) -> int:
        return len(self.keys) + len(self.values)


class AggregateOperator:
    """Grouped and scalar aggregation (timeline family; thesis, section 11.3.6).

    Definition:
        At t, one row per group of `M(t)`: the keys, then each aggregate over the group's rows.

    Retractions:
        A retraction takes its element's sums away over its interval, and its value out of the live values of
        MIN and MAX.

    State:
        Per group the sums at the heartbeat and how far its open segment was emitted; per element, or per
        instant where several meet, what leaves at its end. Deltas go when the heartbeat has passed them, a
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

    def __init__(self, node: Aggregate, combined: bool, report: Report) -> None:
        self._node = node
        self._combined = combined
        self._report = report
        self._form = Accumulation.of(node)
        self._coalesce = not is_chronon(node)
        self._timeline = Timeline(
            self._form.key_names, self._form.sums.int_width, self._form.sums.float_width
        )
        self._extremes = {value: Extremes(self._form.key_names) for value in self._form.values}
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, SweepArea]:
        """Deltas and bases, and the live values of each MIN and MAX argument."""
        areas = {"deltas": self._timeline.deltas, "bases": self._timeline.bases}
        extremes = enumerate(self._extremes.values())
        return areas | {f"values{place}": part.values for place, part in extremes}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements, in the accumulated form if they were combined before an exchange."""
        self._inputs.append(batch if self._combined else self._form.accumulate(batch, self._report))

    def advance(self, progress: Progress) -> Batch:
        """The corrections and new segments up to the new horizon."""
        batch = concat(self._form.schema, self._inputs)
        payload, form = batch.payload, self._form
        keys = [payload.column(name) for name in form.key_names]
        ints = matrix(payload, form.int_names, np.int64)
        changes = Changes(keys, batch.ts, batch.te, ints, matrix(payload, form.float_names, np.float64))
        before, horizon = progress.window
        points = self._timeline.step(changes, before, horizon)
        extremes = self._advance_extremes(batch, keys, points, (before, horizon))
        if points is None:
            return concat(self._node.schema, [])
        return self._emit(points, extremes)

    def _advance_extremes(
        self, batch: Batch, keys: list[pa.Array], points: Points | None, window: tuple[int, int]
    ) -> dict[tuple[Expression, str], pa.Array]:
        result: dict[tuple[Expression, str], pa.Array] = {}
        weights = integers(batch.payload.column("__i0"))
        for place, (argument, extremes) in enumerate(self._extremes.items()):
            calls = [call for _, call in self._node.aggregates if call.argument == argument]
            wanted = sorted({call.function for call in calls if not is_invertible(call)})
            columns = extremes.step(
                keys,
                batch.payload.column(f"__v{place}"),
                (batch.ts, batch.te, weights),
                points,
                window,
                tuple(name == "MAX" for name in wanted),
            )
            result |= {(argument, name): column for name, column in zip(wanted, columns, strict=False)}
        return result

    def _emit(self, points: Points, extremes: dict[tuple[Expression, str], pa.Array]) -> Batch:
        ints = np.concatenate([points.ints, points.base_ints])
        floats = np.concatenate([points.floats, points.base_floats])
        values = []
        for _, call in self._node.aggregates:
            if is_invertible(call) or call.argument is None:
                values.append(evaluate(self._form.sums, call, ints, floats))
            else:
                values.append(extremes[call.argument, call.function])
        segments = emit_segments(points, values, self._coalesce)
        codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
        keys = [column.take(pa.array(codes)) for column in points.keys]
        rows = pa.array(segments.rows)
        columns = [*keys, *(column.take(rows) for column in values)]
        payload = record_batch(columns, self._node.schema, len(codes))
        return Batch(payload, segments.ts, segments.te, segments.w)
