"""Operators that look only at how often a payload is there.

DISTINCT, coalescing, corrections, set operations, ISTREAM and DSTREAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.events import NOTHING_TAKEN_BACK
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Coalesce,
    Distinct,
    Dstream,
    Finalize,
    Istream,
    Sample,
    SetOperation,
    inputs_of,
)
from headrace.algebra.properties import is_append_only
from headrace.elements import Batch, Int64Array, concat, record_batch
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.keys import normalise
from headrace.operators.state.region_values import RegionValues, ValuedElements
from headrace.operators.state.regions import Regions
from headrace.operators.state.runs import Area
from headrace.operators.state.segments import emit_segments, previous_rows
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Points, Timeline, TimelineInput
from headrace.schema import Schema


class PresenceOperator:
    """A timeline whose key is the whole payload.

    Its sums are the payload's multiplicity in all inputs together, then that in each input but the first.

    Args:
        node: the plan node.
        endless: whether no element ends; then none is emitted that does.
    """

    def __init__(
        self,
        node: Distinct | Coalesce | Finalize | Sample | Istream | Dstream | SetOperation,
        endless: bool = False,
    ) -> None:
        self._schema = node.schema
        names = tuple(f"__k{place}" for place in range(len(node.schema)))
        self._inputs: tuple[list[Batch], ...] = tuple([] for _ in inputs_of(node))
        self._timeline = Timeline(names, len(self._inputs), endless)

    @property
    def areas(self) -> dict[str, Area]:
        """Deltas and bases."""
        return self._timeline.areas

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs[port].append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The elements that the new horizon yields."""
        return self.answer(self.entered(), progress.window)

    @property
    def timeline(self) -> Timeline:
        """How often each payload is there, and what is to come."""
        return self._timeline

    def entered(self) -> TimelineInput:
        """What has been processed."""
        entered = [
            concat(self._schema, [_named(batch, self._schema) for batch in part]) for part in self._inputs
        ]
        ports = np.repeat(np.arange(len(entered)), [len(part) for part in entered])
        batch = concat(self._schema, entered)
        keys = [normalise(column) for column in batch.payload.columns]
        own = [np.where(ports == port, batch.w, 0) for port in range(1, len(entered))]
        return TimelineInput(keys, batch.ts, batch.te, SumColumns(np.column_stack([batch.w, *own])))

    def held_values(self, regions: Regions) -> list[RegionValues | None]:
        """None: a payload has no values beside the timeline."""
        return []

    def entered_values(self) -> list[ValuedElements]:
        """None, as well."""
        return []

    def answer(
        self, changes: TimelineInput, window: tuple[int, int], values: Sequence[ValuedElements] = ()
    ) -> Batch:
        """What is said when elements enter and the horizon moves (instants); there are no values."""
        assert not values
        points = self._timeline.step(changes, *window)
        return concat(self._schema, []) if points is None else self._emit(points)

    def _emit(self, points: Points) -> Batch:
        raise NotImplementedError

    def _emit_counts(self, points: Points, counts: Int64Array, coalesce: bool) -> Batch:
        """The elements of rows that are there so often; int64[m + k], at the points and in the bases."""
        result = replace(points, sums=SumColumns(counts.reshape(-1, 1)))
        segments = emit_segments(result, [pa.array(counts)], coalesce)
        codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
        weights = segments.w * counts[segments.rows]
        return self._batch(points, codes, segments.ts, segments.te, weights)

    def _batch(
        self, points: Points, codes: Int64Array, ts: Int64Array, te: Int64Array, w: Int64Array
    ) -> Batch:
        columns = [column.take(pa.array(codes)) for column in points.keys]
        return Batch(record_batch(columns, self._schema, len(codes)), ts, te, w)


class DistinctOperator(PresenceOperator):
    """Duplicate elimination (timeline family; thesis, section 11.3.4, with the erratum of its Algorithm 7).

    Definition:
        At t, every payload of `M(t)` once.

    Retractions:
        Lower the payload's count; only a count that falls to zero ends its presence.

    State:
        Per payload its count at the heartbeat; per element, or instant, what leaves at its end.

    Example:
        Heartbeat 20:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        x      [1,10)   +        x      [1,12)   +
        x      [5,12)   +
        x      [6,9)    +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Distinct) -> None:
        super().__init__(node, endless=is_append_only(node.input))
        self._coalesce = not node.is_chronon

    def held_from(self, heartbeat: int) -> Batch:
        """What it has said of the instants from its heartbeat on (instant)."""
        points = self._timeline.held()
        if points is None:
            return concat(self._schema, [])
        codes = np.flatnonzero(points.covered > heartbeat)
        ones = np.ones(len(codes), dtype=np.int64)
        return self._batch(points, codes, heartbeat * ones, points.covered[codes], ones)

    def _emit(self, points: Points) -> Batch:
        segments = emit_segments(points, [], self._coalesce)
        codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
        return self._batch(points, codes, segments.ts, segments.te, segments.w)


class CoalesceOperator(PresenceOperator):
    """Coalescing (timeline family; thesis, Algorithm 17, with no bound on an element's length).

    Where the thesis holds an element back until it is long enough or nothing can continue it, this says at
    once that a row goes on, and corrects it.

    Definition:
        At t, `M(t)` itself: an identity on contents. Where the multiplicity of a payload stays what it was,
        no element ends.

    Retractions:
        Lower the payload's multiplicity; that of an element whose row goes on in another one does nothing.

    State:
        As for duplicate elimination.

    Example:
        Heartbeat 20 (thesis, table 11.15):

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        b      [1,7)    +        b      [1,15)   +
        d      [3,9)    +        d      [3,9)    +
        a      [4,5)    +        a      [4,5)    +
        b      [7,15)   +        e      [10,18)  +
        e      [10,18)  +
        ====== ======= ==        ====== ======= ==
    """

    def _emit(self, points: Points) -> Batch:
        return self._emit_counts(points, points.counts, coalesce=True)


class FinalizeOperator(PresenceOperator):
    """What corrections leave of a stream (timeline family; CEDR's Finalize, section 4.6).

    Where CEDR holds back a retraction until it meets what it retracts, this adds up: an insertion shows with
    all that has been taken back of it, in whatever order they came.

    Definition:
        At t, every payload as often as it is above zero in `M(t)`.

    Retractions:
        Lower the payload's count, also below zero; then it shows nothing until as much is added again. Where
        the heartbeat passes an instant at which one does, it is reported: it has taken nothing back.

    State:
        Per payload its count at the heartbeat, unless that is zero; per element, or instant, what leaves at
        its end.

    Example:
        Heartbeat 20 (CEDR, table 5, as elements: an insertion of [0,10) and what retractions take off it):

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        P0     [8,10)   -        P0     [0,4)    +
        P0     [4,6)    -        P1     [1,5)    +
        P0     [6,8)    -
        P0     [0,10)   +
        P1     [1,5)    +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Finalize, report: Report) -> None:
        super().__init__(node)
        self._coalesce = not node.is_chronon
        self._report = report

    def _emit(self, points: Points) -> Batch:
        self._report_missing(points)
        # A count of zero or below has no elements.
        return self._emit_counts(points, points.counts, self._coalesce)

    def _report_missing(self, points: Points) -> None:
        """Report the payloads that are taken back more often than they are there."""
        counts = points.counts[: len(points.codes)]
        rows = np.flatnonzero((counts < 0) & (counts < points.counts[previous_rows(points)]))
        if len(rows):
            ts, failed = points.times[rows], np.ones(len(rows), dtype=bool)
            batch = self._batch(points, points.codes[rows], ts, ts + 1, -counts[rows])
            self._report(batch, failed, NOTHING_TAKEN_BACK)


class SetOperator(PresenceOperator):
    """Difference, intersection, max-union and their like (timeline family; thesis, sections 8.1.6 and 8.1.9).

    Definition:
        At t, every payload as often as the kind makes of its multiplicities in `L(t)` and `R(t)`.

    Retractions:
        Change the payload's multiplicity in one input; the result's follows.

    State:
        Per payload its two multiplicities at the heartbeat; per element, or instant, what leaves at its end.

    Example:
        EXCEPT ALL, both heartbeats 20 (thesis, table 11.8):

        ====== ======= ==        ====== ======= ==        ====== ======= ==
        L.x    [ts,te)  w        R.x    [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==        ====== ======= ==
        a      [5,11)   +        a      [4,5)    +        a      [5,11)   +
        d      [6,14)   +        d      [3,9)    +        d      [9,14)   +
        b      [12,17)  +        b      [7,15)   +        b      [15,17)  +
        ====== ======= ==        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: SetOperation) -> None:
        super().__init__(node)
        self._kind = node.kind
        self._coalesce = not node.is_chronon

    def _emit(self, points: Points) -> Batch:
        right = points.sums.values[:, 1]
        left = points.counts - right
        return self._emit_counts(points, combine_counts(self._kind, left, right), self._coalesce)


def combine_counts(kind: SetKind, left: Int64Array, right: Int64Array) -> Int64Array:
    """What a set operation makes of the multiplicities in its inputs; int64[n] each."""
    match kind:
        case SetKind.UNION:
            counts = left + right > 0
        case SetKind.INTERSECT:
            counts = (left > 0) & (right > 0)
        case SetKind.EXCEPT:
            counts = (left > 0) & (right <= 0)
        case SetKind.UNION_MAX:
            counts = np.maximum(left, right)
        case SetKind.INTERSECT_ALL:
            counts = np.minimum(left, right)
        case SetKind.INTERSECT_STRICT:
            counts = np.where(right > 0, left, 0)
        case SetKind.EXCEPT_ALL:
            counts = np.maximum(left - right, 0)
        case SetKind.EXCEPT_STRICT:
            counts = np.where(right > 0, 0, left)
        case _:
            assert_never(kind)
    return np.asarray(counts, dtype=np.int64)


def _named(batch: Batch, schema: Schema) -> Batch:
    """The batch with the result's column names, which those of the right input may differ from."""
    return batch.with_payload(record_batch(batch.payload.columns, schema, len(batch)))


class ChangeOperator(PresenceOperator):
    """ISTREAM and DSTREAM (timeline family; CQL's definitions, see the note on the thesis' Algorithm 23).

    Definition:
        ISTREAM: at t, what `M(t)` has more than `M(t-1)`; DSTREAM: what `M(t-1)` has more than `M(t)`.
        Both as chronons `[t, t+1)`.

    Retractions:
        Change the payload's count before the heartbeat passes; the answer is given once, below it.

    State:
        As for duplicate elimination.

    Example:
        Heartbeat 20, ISTREAM on the left, DSTREAM on the right:

        ====== ======= ==        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==        ====== ======= ==
        b      [1,7)    +        b      [1,2)    +        b      [15,16)  +
        b      [7,15)   +        d      [3,4)    +        d      [9,10)   +
        d      [3,9)    +
        ====== ======= ==        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Istream | Dstream) -> None:
        super().__init__(node)
        self._sign = 1 if isinstance(node, Istream) else -1

    def _emit(self, points: Points) -> Batch:
        counts = np.maximum(points.counts, 0)
        change = self._sign * (counts[: len(points.codes)] - counts[previous_rows(points)])
        rows = np.flatnonzero(change > 0)
        ts = points.times[rows]
        return self._batch(points, points.codes[rows], ts, ts + 1, change[rows])
