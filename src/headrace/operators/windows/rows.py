"""Windows of the last rows, of a stream or of each of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import RowWindow
from headrace.elements import Batch, Int64Array, concat, integers, record_batch, take_rows
from headrace.kernels.rows import slide_rows
from headrace.kernels.timeline import smallest_per_code
from headrace.operators.contract import Progress
from headrace.operators.state.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.state.order import break_ties
from headrace.operators.state.runs import HASH, TIME, WEIGHT, Area
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.schema import DOUBLE

NUMBER = "__number"


class RowWindowOperator:
    """Window over rows (row window family; thesis, sections 11.4.2, 11.4.3 and 17.1.2).

    Definition:
        At t, the last n rows up to t of each partition; with a slide m, up to the last row whose number m
        divides. Rows are numbered by instant, and rows of one instant by payload, not by arrival.

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and numbered for good.

    State:
        The rows above the heartbeat; and per partition its last n rows and those since its last slide, for
        ever, since the partition may come again.

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
        self._payload = tuple(f"p{place}" for place in range(len(node.schema)))
        keys = tuple(
            f"__k{place}" if key.type == DOUBLE else self._payload[key.index]
            for place, key in enumerate(node.keys)
        )
        self._waiting = SweepArea(Layout(keys, self._payload, (WEIGHT,)))
        latest = node.rows + node.slide - 1
        self._rows = SweepArea(Layout(keys, ints=(NUMBER,), netting=Netting.LATEST, latest=latest))
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """The rows above the heartbeat, and the last ones of each partition."""
        return {"waiting": self._waiting, "rows": self._rows}

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements."""
        self._inputs.append(batch)

    def advance(self, progress: Progress) -> Batch:
        """What the rows below the new heartbeat change in the windows."""
        batch = self._due(*progress.window)
        if not len(batch):
            return batch
        new = number_rows(batch, self._keys(batch))
        old = self._kept(new)
        row, ts, te, w, stay, numbers = slide_rows(
            old.counts, old.starts, new.starts, new.times, self._node.rows, self._node.slide
        )
        self._keep(batch.take(new.rows[stay]), numbers)
        border = len(old)
        of_old, of_new = np.flatnonzero(row < border), np.flatnonzero(row >= border)
        changes = [
            Batch(take_rows(batch.payload, new.rows[row[of_new] - border]), ts[of_new], te[of_new], w[of_new])
        ]
        if old.rows is not None:
            payload = self._payload_of(old.rows.take(pa.array(row[of_old])))
            changes.append(Batch(payload, ts[of_old], te[of_old], w[of_old]))
        return concat(self._node.schema, changes)

    def _due(self, before: int, horizon: int) -> Batch:
        """The elements below the new horizon; the others wait."""
        batch = concat(self._node.schema, self._inputs)
        due = self._waiting.due(before, horizon)
        later = batch.ts >= horizon
        if later.any():
            waiting = batch.take(np.flatnonzero(later))
            self._waiting.insert(self._columns(waiting) | {WEIGHT: pa.array(waiting.w)})
            batch = batch.take(np.flatnonzero(~later))
        self._waiting.expire(horizon)
        if due is None:
            return batch
        ts = integers(due.column(TIME))
        waited = Batch(self._payload_of(due), ts, ts + 1, integers(due.column(WEIGHT)))
        return concat(self._node.schema, [batch, waited])

    def _kept(self, new: NumberedRows) -> KeptRows:
        """What state has of the partitions of new rows."""
        count = len(new.hashes)
        places, rows = self._rows.gather(new.hashes, new.keys)
        if rows is None:
            zeros = np.zeros(count + 1, dtype=np.int64)
            return KeptRows(zeros[1:], zeros, None)
        numbers = integers(rows.column(NUMBER))
        counts = -smallest_per_code(places, -numbers, count)
        counts[counts < 0] = 0
        # Older runs still hold rows that have left since.
        present = np.flatnonzero(
            numbers > counts[places] // self._node.slide * self._node.slide - self._node.rows
        )
        order = present[order_by(places[present], numbers[present], count)]
        return KeptRows(counts, _starts(places[order], count), rows.take(pa.array(order)))

    def _keep(self, batch: Batch, numbers: Int64Array) -> None:
        self._rows.insert(self._columns(batch) | {NUMBER: pa.array(numbers)})
        self._rows.expire(0)

    def _columns(self, batch: Batch) -> dict[str, pa.Array]:
        """Elements as the columns of state that both areas have."""
        keys = self._keys(batch)
        columns = {HASH: pa.array(hash_rows(keys, len(batch))), TIME: pa.array(batch.ts)}
        columns |= dict(zip(self._payload, batch.payload.columns, strict=True))
        return columns | dict(zip(self._rows.layout.keys, keys, strict=True))

    def _keys(self, batch: Batch) -> list[pa.Array]:
        return [normalise(batch.payload.column(key.index)) for key in self._node.keys]

    def _payload_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [rows.column(name) for name in self._payload]
        return record_batch(columns, self._node.schema, rows.num_rows)


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """New rows by partition, in the order in which they are numbered; each multiplicity is a row.

    `rows` and `times` are per row: the element, and its instant. `starts` has k + 1 places, where each
    partition's rows start; `keys` and `hashes` are those of the k partitions.
    """

    rows: Int64Array
    times: Int64Array
    starts: Int64Array
    keys: list[pa.Array]
    hashes: Int64Array


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of some partitions that state holds and that are still needed.

    `counts` is how many rows each of the k partitions ever had; `starts` has k + 1 places; `rows` is None
    where there are none.
    """

    counts: Int64Array
    starts: Int64Array
    rows: pa.RecordBatch | None

    def __len__(self) -> int:
        return int(self.starts[-1])


def number_rows(batch: Batch, keys: list[pa.Array]) -> NumberedRows:
    """Sort elements by partition, instant and payload, and net those that are equal in all of them."""
    hashes = hash_rows(keys, len(batch))
    codes = encode_keys(keys, hashes)
    count = len(codes)
    order = order_by(codes.codes, batch.ts, count)
    counts = batch.w[order]
    tied = np.zeros(len(order), dtype=np.bool_)
    tied[1:] = (np.diff(codes.codes[order]) == 0) & (np.diff(batch.ts[order]) == 0)
    if tied.any():
        order, equal = break_ties(batch.payload, order, tied)
        first = np.flatnonzero(~equal)
        order, counts = order[first], np.add.reduceat(batch.w[order], first)
    if (counts != 1).any():
        order = np.repeat(order, np.maximum(counts, 0))
    first = codes.first
    return NumberedRows(
        order,
        batch.ts[order],
        _starts(codes.codes[order], count),
        [key.take(pa.array(first)) for key in keys],
        hashes[first],
    )


def _starts(codes: Int64Array, count: int) -> Int64Array:
    """Where each of the codes 0..count-1 starts among sorted ones, and where the last one ends."""
    return np.searchsorted(codes, np.arange(count + 1)).astype(np.int64)
