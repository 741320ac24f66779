"""How the results of a task are written: each query's elements at one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Batch, Int64Array, encode, record_batch
from headrace.expressions.tree import Literal
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef
from headrace.schema import Schema

PART_ROWS = 1_000
"""About so many elements of a result with groups are written together; who reads one group reads them all."""


class GroupedResult:
    """A result with groups, in order of the groups.

    Args:
        batch: the result; its last column says which group an element is in.
        groups: the constant of each group by the group's number; elements with other constants are left out.

    Attributes:
        counts: how many elements each group has, if it has any, by its number.
    """

    def __init__(self, batch: Batch, groups: Mapping[int, Literal]) -> None:
        numbers = np.fromiter(groups, np.int64, len(groups))
        last = batch.payload.column(batch.payload.num_columns - 1)
        constants = pa.array([constant.value for constant in groups.values()], last.type)
        places = pc.fill_null(pc.index_in(last, constants, skip_nulls=True), -1).to_numpy()
        order = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
        self._rows = _without_last(batch).take(order)
        found = places[order]
        self._starts: Int64Array = np.flatnonzero(np.diff(found, prepend=-1))
        self._ends: Int64Array = np.append(self._starts[1:], len(found))
        self._numbers: Int64Array = numbers[found[self._starts]]
        sizes = self._ends - self._starts
        self.counts = dict(zip(self._numbers.tolist(), sizes.tolist(), strict=True))

    def write(self, writer: SegmentWriter) -> Iterator[ResultRef]:
        """Append the elements to a segment, a few groups at a time; where each group is."""
        first = 0
        while first < len(self._numbers):
            begin = int(self._starts[first])
            behind = max(first + 1, int(np.searchsorted(self._ends, begin + PART_ROWS, "right")))
            end = int(self._ends[behind - 1])
            rows = self._rows.slice(begin, end - begin)
            part = writer.add(encode(rows))
            starts = self._starts[first:behind] - begin
            latest = np.maximum.reduceat(rows.ts, starts)
            sizes = self._ends[first:behind] - self._starts[first:behind]
            columns = (self._numbers[first:behind], sizes, latest, starts)
            for number, size, last, start in zip(*(column.tolist() for column in columns), strict=True):
                yield ResultRef(number, part, size, last, start)
            first = behind


def _without_last(batch: Batch) -> Batch:
    """The elements without their last column."""
    rows = batch.payload
    names = rows.schema.names[:-1]
    if not names:
        return batch.with_payload(record_batch([], Schema(()), len(batch)))
    return batch.with_payload(rows.select(names))
