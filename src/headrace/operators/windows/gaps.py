"""Series at the multiples of a step, with their gaps filled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.kinds import Filling
from headrace.algebra.nodes import GapFill, instant_type
from headrace.elements import (
    Batch,
    BoolArray,
    Float64Array,
    Int64Array,
    concat,
    integers,
    record_batch,
    take_rows,
)
from headrace.operators.contract import OperatorProgress
from headrace.operators.state.marks import spread
from headrace.operators.state.runs import TIME, WEIGHT, Area
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.operators.windows.arrived import Arrived
from headrace.operators.windows.kept_rows import RowColumns, WaitingRows
from headrace.schema import DOUBLE
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT


@dataclass(frozen=True, eq=False)
class _Rows:
    """The last rows of series before new ones, and the new ones, by series and instant.

    Attributes:
        payload: n rows.
        at: int64[n], at which multiple of the step each counts.
        following: int64[n], at which the next one of its series does; INFINITY where there is none.
        fresh: bool[n], whether it is new.
    """

    payload: pa.RecordBatch
    at: Int64Array
    following: Int64Array
    fresh: BoolArray


class GapFillOperator:
    """Series at the multiples of a step (row window family; Aurora's Resample).

    Definition:
        At a multiple g of the step, the last row of each series of `(g - step, g]`. Where it has none, and
        the last one before counts at no less than `g - longest`: that one again, one of NULLs, or the value
        on the line to the next one, if that counts no more than `longest` after it.

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and answered once.

    State:
        The rows of the step that the heartbeat is in, and the last row of each series, until the longest gap
        after it has passed. All of these are stored anew whenever a step ends: each has a row then.

    What is on a line comes with the row that ends the gap, so that it is the output's heartbeat that waits.

    Example:
        `LAST`, step 2, longest 4, heartbeat 12:

        ====== ======= ==        ====== ======= ==
        x, at  [ts,te)  w        x, at  [ts,te)  w
        ====== ======= ==        ====== ======= ==
        5, 1   [1,2)    +        5, 2   [2,3)    +
        7, 8   [8,9)    +        5, 4   [4,5)    +
        ..                       5, 6   [6,7)    +
        ..                       7, 8   [8,9)    +
        ..                       7, 10  [10,11)  +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: GapFill) -> None:
        self._node = node
        self._step, self._longest = node.step.length, node.longest.length
        self._columns = RowColumns(node.schema, node.keys)
        self._waiting = WaitingRows(self._columns)
        layout = Layout(self._columns.key_names, self._columns.payload, (WEIGHT,))
        self._last = SweepArea(layout)
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """The rows of the step that goes on, and the last row of each series."""
        return {"waiting": self._waiting.area, "last": self._last}

    def process(self, port: int, batch: Batch) -> None:
        """Take in chronons."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The rows of series at the multiples that the heartbeat has passed, and on the lines up to these."""
        before, now = (self._passed(heartbeat) for heartbeat in progress.window)
        new = self._new(self._waiting.due(self._inputs, (_after(before), _after(now))))
        if before == now and not len(new):
            return new
        rows = self._together(self._held(), new)
        self._keep(rows, now)
        return self._filled(rows, before, now)

    def _passed(self, heartbeat: int) -> int:
        """The last multiple of the step that is below a heartbeat, whose rows are all known then."""
        if heartbeat in (BEGINNING, INFINITY):
            return heartbeat
        return (heartbeat - 1) // self._step * self._step

    def _new(self, batch: Batch) -> Batch:
        """The last of the rows of each series and step, at the end of that."""
        if not len(batch):
            return batch
        arrived = Arrived.of(batch, self._columns.keys_of(batch)).in_order()
        at = -(-arrived.rows.ts // self._step) * self._step
        last = np.append((np.diff(arrived.codes) != 0) | (np.diff(at) != 0), True)
        places = np.flatnonzero(last[: len(at)])
        rows = arrived.rows.take(places)
        return Batch(rows.payload, at[places], at[places] + 1, rows.w)

    def _held(self) -> Batch:
        """The last rows of series, each where it counts."""
        stored = self._last.due(BEGINNING, INFINITY)
        if stored is None:
            return concat(self._node.schema, [])
        at = integers(stored.column(TIME)) - self._longest
        return Batch(self._columns.payload_of(stored), at, at + 1, integers(stored.column(WEIGHT)))

    def _together(self, held: Batch, new: Batch) -> _Rows:
        batch = concat(self._node.schema, [held, new])
        if not len(batch):
            none = np.empty(0, dtype=np.int64)
            return _Rows(batch.payload, none, none, none > 0)
        arrived = Arrived.of(batch, self._columns.keys_of(batch))
        order = arrived.order
        codes, at = arrived.codes[order], batch.ts[order]
        following = np.append(np.where(np.diff(codes) == 0, at[1:], INFINITY), INFINITY)
        return _Rows(batch.take(order).payload, at, following, order >= len(held))

    def _keep(self, rows: _Rows, now: int) -> None:
        """Store the last row of each series, unless the longest gap after it has passed."""
        ends = rows.at + self._longest
        places = np.flatnonzero((rows.following == INFINITY) & (ends > now))
        ones = np.ones(len(places), dtype=np.int64)
        kept = Batch(take_rows(rows.payload, places), ends[places], ends[places] + 1, ones)
        self._last.runs = []
        self._last.insert(self._columns.of(kept) | {WEIGHT: pa.array(ones)})

    def _filled(self, rows: _Rows, before: int, now: int) -> Batch:
        """The rows at multiples after one and up to another, and on lines that have come to an end.

        Args:
            rows: the rows of the series.
            before, now: the last multiples that the heartbeats were beyond, and are (instants).
        """
        step, longest = self._step, rows.at + self._longest
        last = np.minimum(rows.following - step, MAX_INSTANT)
        if self._node.filling is Filling.LINEAR:
            lows = np.where(rows.fresh, rows.at, rows.at + step)
            highs = np.where(rows.following <= longest, last, rows.at)
        else:
            lows = np.where(rows.fresh, rows.at, np.maximum(rows.at, before) + step)
            highs = np.minimum(np.minimum(last, longest), now)
        counts = np.maximum((highs - lows) // step + 1, rows.fresh)
        places, numbers = spread(np.zeros(len(counts), dtype=np.int64), counts)
        return self._answers(rows, places, lows[places] + numbers * step)

    def _answers(self, rows: _Rows, places: Int64Array, at: Int64Array) -> Batch:
        """Rows, each at an instant, with the values that it has there."""
        taken = take_rows(rows.payload, places)
        columns = list(taken.columns)
        own = at == rows.at[places]
        columns[self._node.time] = pa.array(at).cast(instant_type(self._node))
        if self._node.filling is not Filling.LAST and not own.all():
            for column in self._node.filled:
                columns[column] = self._in_gaps(rows, column, places, at, own)
        ones = np.ones(len(at), dtype=np.int64)
        return Batch(record_batch(columns, self._node.schema, len(at)), at, at + 1, ones)

    def _in_gaps(
        self, rows: _Rows, column: int, places: Int64Array, at: Int64Array, own: BoolArray
    ) -> pa.Array:
        """A column with the values of rows where these are their own, and others in gaps."""
        stored = rows.payload.column(column)
        if self._node.filling is Filling.NULL:
            return stored.take(pa.array(places, mask=~own))
        assert stored.type == DOUBLE
        following = np.where(own, places, places + 1)
        one, other = (stored.take(pa.array(ends)) for ends in (places, following))
        begin, end = rows.at[places], rows.at[following]
        # Numbers of steps, so that the quotient is rounded once.
        part = ((at - begin) // self._step) / np.where(own, 1, (end - begin) // self._step)
        missing = _is_null(one) | _is_null(other)
        values = np.where(own, _doubles(one), _between(_doubles(one), _doubles(other), part))
        return pa.array(values, type=DOUBLE, mask=missing)


def _after(instant: int) -> int:
    """The instant after one; the beginning and the end are themselves."""
    return instant if instant in (BEGINNING, INFINITY) else instant + 1


def _between(one: Float64Array, other: Float64Array, part: Float64Array) -> Float64Array:
    """The values at parts of the ways from some to others, also where these are far apart."""
    with np.errstate(all="ignore"):
        rise = other - one
        found: Float64Array = one + rise * part
        far = np.isinf(rise) & np.isfinite(one) & np.isfinite(other)
        return np.where(far, one * (1 - part) + other * part, found)


def _doubles(values: pa.Array) -> Float64Array:
    found: Float64Array = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    return found


def _is_null(values: pa.Array) -> BoolArray:
    found: BoolArray = values.is_null().to_numpy(zero_copy_only=False)
    return found
