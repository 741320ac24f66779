"""Changes of a relation that come late, and the deletions that are remembered for their sake."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, BoolArray, Int64Array, concat, integers
from headrace.kernels.rows.grouping import order_by_code
from headrace.operators.state.order import break_ties
from headrace.operators.state.runs import TIME
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.operators.windows.arrived import Arrived
from headrace.operators.windows.kept_rows import KeptRows, RowColumns
from headrace.time import INFINITY

COUNT = "__count"


def late_changes(new: Arrived) -> BoolArray:
    """bool[n], which changes come after their own instant, which is the first column."""
    late: BoolArray = integers(new.rows.payload.column(0)) != new.rows.ts
    return late


class Deletions:
    """The deletions of one bucket, each for so long as an older change of its key may come.

    Args:
        columns: what the rows are in state.
        remembered: for how long after its own instant one is remembered (instants).
    """

    def __init__(self, columns: RowColumns, remembered: int) -> None:
        self._columns, self._remembered = columns, remembered
        self.area = SweepArea(Layout(columns.key_names, columns.payload, (COUNT,)))

    def keep(self, rows: Batch, heartbeat: int) -> None:
        """Remember deletions, and forget those that no change can be older than any more.

        Args:
            rows: the deletions.
            heartbeat: no change counts that is further below it than is remembered (instant).
        """
        own = integers(rows.payload.column(0))
        until = np.minimum(own, INFINITY - self._remembered - 1) + self._remembered
        kept = np.flatnonzero(until >= heartbeat)
        if len(kept):
            columns = self._columns.of(rows.take(kept))
            ones = np.ones(len(kept), dtype=np.int64)
            self.area.insert(columns | {TIME: pa.array(until[kept]), COUNT: pa.array(ones)})
        self.area.expire(heartbeat)

    def without_older(self, new: Arrived, old: KeptRows, late: BoolArray) -> Arrived:
        """The changes that are newer than all of their key before them.

        Args:
            new: changes that are final, in order.
            old: the last row of each key.
            late: bool[n], which of them come late: the others are newer.
        """
        codes, known = self._known(new, old)
        ranks = _ranks(concat(self._columns.schema, [new.rows, known]), np.append(new.codes, codes))
        of_new, of_known = ranks[: len(late)], ranks[len(late) :]
        newest = np.full(len(new.hashes), -1)
        np.maximum.at(newest, codes, of_known)
        # Ranks rise from key to key, so that the keys before do not count.
        before = np.maximum.accumulate(np.append(-1, of_new[:-1]))
        kept = np.flatnonzero(~late | (of_new > np.maximum(before, newest[new.codes])))
        present, numbers = np.unique(new.codes[kept], return_inverse=True)
        keys = [key.take(pa.array(present)) for key in new.keys]
        return Arrived(new.rows.take(kept), numbers.astype(np.int64), keys, new.hashes[present])

    def _known(self, new: Arrived, old: KeptRows) -> tuple[Int64Array, Batch]:
        """The rows and the deletions of some keys, and the number of the key of each."""
        codes, found = [], []
        if old.rows is not None:
            codes.append(np.repeat(np.arange(len(new.hashes)), np.diff(old.starts)))
            found.append(old.rows)
        places, deleted = self.area.gather(new.hashes, new.keys)
        if deleted is not None:
            codes.append(places)
            found.append(deleted)
        payloads = [self._columns.payload_of(rows) for rows in found]
        batches = [_at_once(payload) for payload in payloads]
        return np.concatenate([np.empty(0, dtype=np.int64), *codes]), concat(self._columns.schema, batches)


def _at_once(payload: pa.RecordBatch) -> Batch:
    count = payload.num_rows
    return Batch(payload, *(np.full(count, number, dtype=np.int64) for number in (0, 1, 1)))


def _ranks(rows: Batch, codes: Int64Array) -> Int64Array:
    """int64[n], the place of each row in the order of its key and its columns; one for equal rows."""
    order = order_by_code(codes, np.arange(len(codes)), int(codes.max(initial=-1)) + 1)
    tied = np.append(False, np.diff(codes[order]) == 0)[: len(order)]
    order, equal = break_ties(rows.payload, order, tied)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.cumsum(~equal)
    return ranks
