"""Rows in state: those that wait above the heartbeat, and the last ones of each partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, Int64Array, concat, integers, record_batch
from headrace.expressions.tree import Column
from headrace.kernels.instants.timeline import smallest_per_code
from headrace.operators.state.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import HASH, TIME, WEIGHT
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.operators.windows.arrived import Arrived
from headrace.schema import DOUBLE, Schema

NUMBER = "__number"
GONE = "__gone"
"""The rows of the partition that had left when the row came, where the window's size may change."""


@dataclass(frozen=True)
class RowColumns:
    """Rows as columns of state: `p*` the payload, and `__k*` a key that is not in the payload as it is.

    Attributes:
        schema: the rows.
        keys: the columns that make the partitions.
    """

    schema: Schema
    keys: tuple[Column, ...]

    @property
    def payload(self) -> tuple[str, ...]:
        """The names of the payload's columns."""
        return tuple(f"p{place}" for place in range(len(self.schema)))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the keys."""
        return tuple(
            f"__k{place}" if key.type == DOUBLE else f"p{key.index}" for place, key in enumerate(self.keys)
        )

    def of(self, batch: Batch) -> dict[str, pa.Array]:
        """The columns of elements, with their hashes and their instants."""
        keys = self.keys_of(batch)
        columns = {HASH: pa.array(hash_rows(keys, len(batch))), TIME: pa.array(batch.ts)}
        columns |= dict(zip(self.payload, batch.payload.columns, strict=True))
        return columns | dict(zip(self.key_names, keys, strict=True))

    def keys_of(self, batch: Batch) -> list[pa.Array]:
        """The normalised keys of elements."""
        return [normalise(batch.payload.column(key.index)) for key in self.keys]

    def touched(
        self, batch: Batch, due: pa.RecordBatch | None
    ) -> tuple[list[pa.Array], Int64Array, Int64Array]:
        """The keys that have new rows, or for which an instant has come.

        Args:
            batch: the new rows.
            due: the rows of state for the keys whose instant has come, if there are any.

        Returns:
            The columns of k different keys, their hashes (int64[k]), and the number of each new row's key.
        """
        keys = self.keys_of(batch)
        hashes = hash_rows(keys, len(batch))
        if due is not None:
            stored = [due.column(name) for name in self.key_names]
            keys = [pa.concat_arrays(pair) for pair in zip(keys, stored, strict=True)]
            hashes = np.concatenate([hashes, integers(due.column(HASH))])
        codes = encode_keys(keys, hashes)
        first = pa.array(codes.first)
        return [key.take(first) for key in keys], hashes[codes.first], codes.codes[: len(batch)]

    def payload_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The payload of rows of state."""
        columns = [rows.column(name) for name in self.payload]
        return record_batch(columns, self.schema, rows.num_rows)


class WaitingRows:
    """The chronons of one bucket above the heartbeat.

    Args:
        columns: what the rows are in state.
    """

    def __init__(self, columns: RowColumns) -> None:
        self._columns = columns
        self.area = SweepArea(Layout(columns.key_names, columns.payload, (WEIGHT,)))

    def due(self, inputs: list[Batch], window: tuple[int, int]) -> Batch:
        """The elements below the new horizon; the others wait.

        Args:
            inputs: the new elements, from the old horizon on.
            window: the old and the new horizon.
        """
        before, horizon = window
        waited = self.area.due(before, horizon)
        parts = [_cut(batch, horizon) for batch in inputs]
        waiting = concat(self._columns.schema, [late for _, late in parts])
        if len(waiting):
            self.area.insert(self._columns.of(waiting) | {WEIGHT: pa.array(waiting.w)})
        self.area.expire(horizon)
        return concat(self._columns.schema, [*self._chronons(waited), *(due for due, _ in parts)])

    def left(self, inputs: list[Batch], window: tuple[int, int]) -> Batch:
        """The elements below the new horizon that nothing takes back; the others wait. As `due`."""
        batch = self.due(inputs, window)
        if (batch.w < 0).any():
            return netted(Batch(batch.payload, batch.ts, batch.ts + 1, batch.w))
        return batch

    def _chronons(self, rows: pa.RecordBatch | None) -> list[Batch]:
        if rows is None:
            return []
        ts = integers(rows.column(TIME))
        return [Batch(self._columns.payload_of(rows), ts, ts + 1, integers(rows.column(WEIGHT)))]


def _cut(batch: Batch, horizon: int) -> tuple[Batch, Batch]:
    """The elements below the horizon, and the others; as views where the others all come last."""
    early = batch.ts < horizon
    count = int(np.count_nonzero(early))
    if early[:count].all():
        return batch.slice(0, count), batch.slice(count, len(batch) - count)
    return batch.take(np.flatnonzero(early)), batch.take(np.flatnonzero(~early))


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of some partitions that state holds and that are still needed.

    `counts` is how many rows each of the k partitions ever had; `starts` has k + 1 places; `rows` is None
    if nothing is kept.
    """

    counts: Int64Array
    starts: Int64Array
    rows: pa.RecordBatch | None

    def __len__(self) -> int:
        return int(self.starts[-1])


class LastRows:
    """The last rows of each partition, by number, for ever, since a partition may come again.

    Args:
        columns: what the rows are in state.
        rows: how many are needed, up to the last one whose number `slide` divides.
        slide: the rows since then are kept too.
        live: the place of the column that says of a row whether its partition has to be kept; None if always.
        bounded: whether fewer may be needed, as many as are left when others have gone.
    """

    def __init__(
        self, columns: RowColumns, rows: int, slide: int = 1, live: int | None = None, bounded: bool = False
    ) -> None:
        self._columns, self._last, self._slide, self._bounded = columns, rows, slide, bounded
        name = None if live is None else columns.payload[live]
        latest = rows + slide - 1
        ints = (NUMBER, GONE) if bounded else (NUMBER,)
        self.area = SweepArea(
            Layout(columns.key_names, ints=ints, netting=Netting.LATEST, latest=latest, live=name)
        )

    def of(self, arrived: Arrived) -> KeptRows:
        """What state has of the partitions of new rows."""
        count = len(arrived.hashes)
        places, rows = self.area.gather(arrived.hashes, arrived.keys)
        if rows is None:
            zeros = np.zeros(count + 1, dtype=np.int64)
            return KeptRows(zeros[1:], zeros, None)
        numbers = integers(rows.column(NUMBER))
        counts = -smallest_per_code(places, -numbers, count)
        counts[counts < 0] = 0
        # Older runs still hold rows that have left since.
        needed = counts // self._slide * self._slide - self._last
        if self._bounded:
            gone = -smallest_per_code(places, -integers(rows.column(GONE)), count)
            needed = np.maximum(needed, gone)
        present = np.flatnonzero(numbers > needed[places])
        order = present[order_by(places[present], numbers[present], count)]
        starts = np.searchsorted(places[order], np.arange(count + 1)).astype(np.int64)
        return KeptRows(counts, starts, rows.take(pa.array(order)))

    def keep(self, batch: Batch, numbers: Int64Array, gone: Int64Array | None = None, left: int = 0) -> None:
        """Add rows with their numbers, and forget what they push out.

        Args:
            batch: n rows.
            numbers: int64[n].
            gone: int64[n], up to which number the rows of their partitions have left; where sizes may change.
            left: so many of those that were kept have left.
        """
        added = {NUMBER: pa.array(numbers)}
        if self._bounded:
            added[GONE] = pa.array(gone)
        self.area.insert(self._columns.of(batch) | added)
        self.area.expire(0, left - len(batch) if self._bounded else 0)
