"""The values of a column that have bounds of their own, as a task of level 0 keeps them.

How far each value has come is one part of a segment, written anew in every epoch that brings rows of the
stream. The driver knows when the smallest will rise, and that is all: a commit is as small with 100,000
values as with one.
"""

from __future__ import annotations

import pyarrow as pa

from headrace.elements import Int64Array, decode_rows, encode_rows, integers
from headrace.heartbeats.bounded import Arrivals, Judgement
from headrace.heartbeats.per_value import (
    ValuesState,
    forgettable,
    judge_by_value,
    rises,
    rules_of,
)
from headrace.heartbeats.timing import PerValue
from headrace.operators.state.numbers import Numbers
from headrace.runtime.store.segments import SegmentWriter, read_part
from headrace.runtime.tasks.messages import EpochWork, ValuesPoint


class Values:
    """The values of one stream's column.

    One task has all rows of the stream in an epoch, in order.

    Args:
        work: the epoch.
        stream: the stream's name.
        per: what it declares.
    """

    def __init__(self, work: EpochWork, stream: str, per: PerValue) -> None:
        found = work.streams[stream]
        self._per = per
        self._rules = rules_of(found.timing, per)
        self._heartbeat = found.heartbeat
        self._clock = int(work.time.clocks.counted[work.time.names.index(stream)])
        self._begun: int | None = None
        known = pa.array([], found.schema[found.schema.names.index(per.column)].type)
        self._state = ValuesState.listed(0)
        self._came = False
        if found.values is not None:
            rows = decode_rows(read_part(work.store, found.values.part))
            known, self._begun = rows.column("value"), found.values.begun
            self._state = ValuesState(integers(rows.column("newest")), integers(rows.column("heard")))
        self._numbers = Numbers(known)
        self._listed = self._number(pa.array(list(per.listed), known.type))

    def judge(self, rows: pa.RecordBatch, times: Int64Array) -> Judgement:
        """Judge consecutive rows, each by the rows of its value before it.

        Args:
            rows: the rows.
            times: int64[n], their timestamps, none out of range.
        """
        if not len(times):
            return Judgement(Arrivals(), times, times)
        self._came = True
        codes = self._number(rows.column(self._per.column))
        found = judge_by_value(self._rules, self._state, codes, times, self._heartbeat, self._clock)
        self._state = found.state
        late = len(found.late)
        drop = int((found.heartbeats - times[found.late]).max()) + self._rules.disorder if late else 0
        seen = Arrivals(len(times) - late, late, 0, int(times.max()), int(times.min()), drop)
        return Judgement(seen, found.late, found.heartbeats)

    def stored(self, writer: SegmentWriter) -> ValuesPoint | None:
        """Where the values lie after the epoch; None where no row came, so that nothing has changed.

        Args:
            writer: of the segment that they are appended to.
        """
        if not self._came:
            return None
        known = self._numbers.keys
        gone = forgettable(self._rules, self._state, self._heartbeat, self._clock)
        gone[self._listed] = False
        if gone.any():
            self._state = self._state.without(gone)
            known = known.filter(pa.array(~gone))
        begun = self._clock if self._begun is None else self._begun
        columns = {"value": known, "newest": self._state.newest, "heard": self._state.heard}
        part = writer.add(encode_rows(pa.RecordBatch.from_pydict(columns)))
        return ValuesPoint(self._per.column, part, begun, rises(self._rules, self._state, self._clock))

    def _number(self, column: pa.Array) -> Int64Array:
        """The number of each value, of which those that have none get one. NULL is a value."""
        found = self._numbers.of(column)
        self._state = self._state.joined_by(len(self._numbers) - len(self._state.newest), self._clock)
        return found
