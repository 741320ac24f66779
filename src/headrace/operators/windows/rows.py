"""Windows of the last rows, of a stream or of each of its partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import BoundedRowWindow, LiveRow, RelationIndex, RowWindow
from headrace.elements import Batch, BoolArray, Int64Array, concat, empty, integers, take_rows
from headrace.kernels.rows.rows import slide_rows
from headrace.operators.contract import OperatorProgress
from headrace.operators.state.runs import TIME, Area
from headrace.operators.windows.arrived import Arrived
from headrace.operators.windows.deletions import Deletions, late_changes
from headrace.operators.windows.kept_rows import KeptRows, LastRows, RowColumns, WaitingRows
from headrace.steps import values_at
from headrace.time import INFINITY


class RowWindowOperator:
    """Window over rows (row window family; thesis, sections 11.4.2, 11.4.3 and 17.1.2).

    Definition:
        At t, the last n rows up to t of each partition; with a slide m, up to the last row whose number m
        divides. Rows are numbered by instant, and rows of one instant by payload, not by arrival. Of a
        `LiveRow` the last row of each partition, if it is live; of a `RelationIndex` the largest one. Of a
        `BoundedRowWindow` those that no row has pushed out by the size n at its own instant.

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and numbered for good.

    State:
        The rows above the heartbeat; and per partition its last n rows and those since its last slide, for
        ever, since the partition may come again. A row that is not live is kept only while an older run has
        rows of its partition, which it hides, and goes when the runs are merged. A `RelationIndex` remembers
        it besides for as long as older rows of its partition may come late.

    A row comes out open-ended and is closed by a negative element when the row comes that pushes it out;
    with its end, if that row is there already.

    Example:
        `ROWS 1`, heartbeat 5 and then 9:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        b      [1,2)    +        b      [1,3)    +
        a      [3,4)    +        a      [3,oo)   +
        c      [7,8)    +        a      [7,oo)   -
        ..                       c      [7,oo)   +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: RowWindow) -> None:
        self._node = node
        self._columns = RowColumns(node.schema, node.keys)
        self._waiting = WaitingRows(self._columns)
        self._live = node.live.index if isinstance(node, LiveRow) else None
        self._steps = node.steps if isinstance(node, BoundedRowWindow) else ()
        bounded = isinstance(node, BoundedRowWindow)
        self._rows = LastRows(self._columns, node.rows, node.slide, self._live, bounded)
        self._deleted = (
            Deletions(self._columns, node.remembered)
            if isinstance(node, RelationIndex) and node.remembered
            else None
        )
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """The rows above the heartbeat, the last ones of each partition, and remembered deletions."""
        areas: dict[str, Area] = {"waiting": self._waiting.area, "rows": self._rows.area}
        return areas if self._deleted is None else areas | {"deleted": self._deleted.area}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """What the rows below the new heartbeat change in the windows."""
        batch = self._waiting.due(self._inputs, progress.window)
        if not len(batch):
            return batch
        new = Arrived.of(batch, self._columns.keys_of(batch)).in_order()
        old = self._rows.of(new)
        if self._deleted is not None and (late := late_changes(new)).any():
            new = self._deleted.without_older(new, old, late)
            if not len(new.rows):
                return empty(self._node.schema)
            old = self._rows.of(new)
        sizes = values_at(self._node.rows, self._steps, new.rows.ts)
        row, ts, te, w, stay, numbers, gone = slide_rows(
            old.counts, old.starts, new.starts, new.rows.ts, sizes, self._node.slide
        )
        needed = self._needed(new, stay, old)
        left = int(np.count_nonzero(w < 0))
        self._rows.keep(new.rows.take(stay[needed]), numbers[needed], gone[needed], left)
        if self._deleted is not None:
            last = new.rows.take(stay)
            self._deleted.keep(last.take(np.flatnonzero(~self._are_live(last))), progress.window[0])
        border = len(old)
        of_old, of_new = np.flatnonzero(row < border), np.flatnonzero(row >= border)
        payload = take_rows(new.rows.payload, row[of_new] - border)
        changes = [Batch(payload, ts[of_new], te[of_new], w[of_new])]
        if old.rows is not None:
            payload = self._columns.payload_of(old.rows.take(pa.array(row[of_old])))
            changes.append(Batch(payload, ts[of_old], te[of_old], w[of_old]))
        changed = concat(self._node.schema, changes)
        return changed if self._live is None else changed.take(np.flatnonzero(self._are_live(changed)))

    def content(self) -> Batch:
        """The rows in the window at the heartbeat, each from the instant on at which it came into it.

        Only of the last row of each partition, which no later row has pushed out.
        """
        rows = self._rows.area.content()
        if rows is None:
            return empty(self._node.schema)
        ts, ones = integers(rows.column(TIME)), np.ones(rows.num_rows, dtype=np.int64)
        return Batch(self._columns.payload_of(rows), ts, np.full(len(ts), INFINITY), ones)

    def _needed(self, new: Arrived, stay: Int64Array, old: KeptRows) -> BoolArray:
        """Which of the last rows have to be kept: live ones, and others that hide what is kept already."""
        if self._live is None:
            return np.ones(len(stay), dtype=np.bool_)
        hides: BoolArray = np.diff(old.starts)[new.codes[stay]] > 0
        return self._are_live(new.rows.take(stay)) | hides

    def _are_live(self, rows: Batch) -> BoolArray:
        assert self._live is not None
        live: BoolArray = rows.payload.column(self._live).fill_null(False).to_numpy(zero_copy_only=False)
        return live
