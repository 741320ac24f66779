"""A schedule for several windows of which each lies in the longest: what ends is kept once for all.

An element of the longest window `[ts, te)` is `[ts, te - d)` in a window that is shorter by d. So the ends in
all windows follow from those in the longest one, and are looked up d later there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, concat_rows, integers
from headrace.operators.state.keys import Codes, encode_keys, hash_rows
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.schedule import Endpoints, Schedule
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.sweep_area import Layout
from headrace.time import INFINITY


class NestedSchedule:
    """The changes to come of keys in several windows; the last key column is the window's number.

    Args:
        keys: the names of the key columns, without the number's.
        number: the name of the number's.
        ints: the names of the sums.
        less: for each window by how much it is shorter (instants), 0 for the first.

    Attributes:
        layout: the names of the columns that it speaks of.
        starts, ends: when elements begin, and when they end in the first window.
    """

    def __init__(self, keys: tuple[str, ...], number: str, ints: tuple[str, ...], less: Int64Array) -> None:
        self._number = number
        self._less = less
        self.layout = Layout((*keys, number), ints=ints)
        self.starts = Schedule(Layout(keys, ints=ints))
        self.ends = Schedule(Layout(keys, ints=ints))

    @property
    def areas(self) -> dict[str, Area]:
        """What begins, and what ends in the first window."""
        return {"starts": self.starts, "ends": self.ends}

    def wait(
        self, keys: list[pa.Array], hashes: Int64Array, codes: Codes, starts: Endpoints, ends: Endpoints
    ) -> None:
        """Add the starts and the ends of elements that are rows of the keys, each there in every window."""
        *own, number = keys
        in_first = integers(number) == 0
        for schedule, (rows, times, sums) in ((self.starts, starts), (self.ends, ends)):
            chosen = np.flatnonzero(in_first[rows])
            if len(chosen):
                columns = [column.take(pa.array(rows[chosen])) for column in own]
                alone = hash_rows(columns, len(chosen))
                kept = SumColumns(sums.values[chosen], sums.limbs)
                changes = np.arange(len(chosen)), times[chosen], kept
                schedule.insert(columns, alone, encode_keys(columns, alone), changes)

    def due(self, start: int, end: int) -> pa.RecordBatch | None:
        """The changes of [start, end) in all windows; None without any."""
        begun = self.starts.due(start, end)
        found = []
        for number, less in enumerate(self._less.tolist()):
            ended = self.ends.due(_later(start, less), _later(end, less))
            found += [
                self._in_window(rows, number, later)
                for rows, later in ((begun, 0), (ended, less))
                if rows is not None
            ]
        return concat_rows(found) if found else None

    def _in_window(self, rows: pa.RecordBatch, number: int, less: int) -> pa.RecordBatch:
        columns = {name: rows.column(name) for name in rows.schema.names}
        columns[TIME] = pa.array(integers(rows.column(TIME)) - less)
        columns[self._number] = pa.array(np.full(rows.num_rows, number))
        keys = [columns[name] for name in self.layout.keys]
        columns[HASH] = pa.array(hash_rows(keys, rows.num_rows))
        return pa.RecordBatch.from_pydict(columns)

    def next_times(self, hashes: Int64Array, keys: list[pa.Array], bound: int) -> Int64Array:
        """For each key the smallest time not below the bound, INFINITY where there is none; int64[k]."""
        *own, number = keys
        numbers = integers(number)
        alone = hash_rows(own, len(numbers))
        result = self.starts.next_times(alone, own, bound)
        for place, less in enumerate(self._less.tolist()):
            rows = np.flatnonzero(numbers == place)
            columns = [column.take(pa.array(rows)) for column in own]
            times = self.ends.next_times(alone[rows], columns, _later(bound, less))
            times = np.where(times == INFINITY, INFINITY, times - less)
            result[rows] = np.minimum(result[rows], times)
        return result

    def expire(self, horizon: int) -> None:
        """Forget what the horizon has passed in the first window, and so in all."""
        self.starts.expire(horizon)
        self.ends.expire(horizon)


def _later(instant: int, less: int) -> int:
    """An instant of a shorter window as one of the first."""
    return min(instant, INFINITY - less) + less
