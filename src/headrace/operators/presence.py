"""Operators that look only at how often a payload is present: duplicate elimination, ISTREAM and DSTREAM."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Distinct, Dstream, Istream, is_chronon
from headrace.elements import Batch, Int64Array, concat, record_batch
from headrace.operators.contract import Progress
from headrace.operators.keys import normalise
from headrace.operators.segments import emit_segments, previous_rows
from headrace.operators.sweep_area import SweepArea
from headrace.operators.timeline import Changes, Points, Timeline


class _PresenceOperator:
    """A timeline whose key is the whole payload and whose only sum is its multiplicity."""

    def __init__(self, node: Distinct | Istream | Dstream) -> None:
        self._schema = node.schema
        names = tuple(f"__k{place}" for place in range(len(node.schema)))
        self._timeline = Timeline(names, 1, 0)
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, SweepArea]:
        """Deltas and bases."""
        return {"deltas": self._timeline.deltas, "bases": self._timeline.bases}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs.append(batch)

    def advance(self, progress: Progress) -> Batch:
        """The elements that the new horizon yields."""
        batch = concat(self._schema, self._inputs)
        keys = [normalise(column) for column in batch.payload.columns]
        counts, floats = batch.w.reshape(-1, 1), np.empty((len(batch), 0))
        changes = Changes(keys, batch.ts, batch.te, counts, floats)
        points = self._timeline.step(changes, *progress.window)
        return concat(self._schema, []) if points is None else self._emit(points)

    def _emit(self, points: Points) -> Batch:
        raise NotImplementedError

    def _batch(
        self, points: Points, codes: Int64Array, ts: Int64Array, te: Int64Array, w: Int64Array
    ) -> Batch:
        columns = [column.take(pa.array(codes)) for column in points.keys]
        return Batch(record_batch(columns, self._schema, len(codes)), ts, te, w)


class DistinctOperator(_PresenceOperator):
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
        super().__init__(node)
        self._coalesce = not is_chronon(node)

    def _emit(self, points: Points) -> Batch:
        segments = emit_segments(points, [], self._coalesce)
        codes = np.concatenate([points.codes, np.arange(len(points.covered))])[segments.rows]
        return self._batch(points, codes, segments.ts, segments.te, segments.w)


class ChangeOperator(_PresenceOperator):
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
        counts = np.maximum(np.concatenate([points.ints[:, 0], points.base_ints[:, 0]]), 0)
        change = self._sign * (counts[: len(points.codes)] - counts[previous_rows(points)])
        rows = np.flatnonzero(change > 0)
        ts = points.times[rows]
        return self._batch(points, points.codes[rows], ts, ts + 1, change[rows])
