"""The values of a column that have bounds of their own, as a task of level 0 keeps them.

How far each value has come lies in runs, parts of segments. An epoch writes the values that have changed as a
new run, and into it those of the latest runs that are not larger together. So there are about as many runs as
the logarithm of the values, and each value is written about as often. The driver knows when the smallest will
rise and which values those are, and that is all: a commit is about as small with 100,000 values as with one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, decode_rows, encode_rows, integers
from headrace.heartbeats.bounded import Arrivals, Judgement
from headrace.heartbeats.per_value import ValuesState, forgettable, judge_by_value, rises, rules_of
from headrace.heartbeats.timing import PerValue
from headrace.kernels.instants.disorder import join_places, renew
from headrace.operators.state.numbers import Numbers
from headrace.runtime.store.segments import SegmentReader, SegmentWriter, Store
from headrace.runtime.tasks.messages import EpochWork, SlowValue, ValuesPoint, ValuesRun

_NONE: Final = np.empty(0, dtype=np.int64)

_SHOWN: Final = 40
"""So many characters of a value are shown at most."""


@dataclass(frozen=True, eq=False)
class WrittenValues:
    """What has been written of the values. Whoever has taken it changes it.

    Attributes:
        numbers: of the values.
        state: how far they have come, by their numbers.
        run: int64[values], in which run each lies as it is now.
        sizes: int64[runs], how many values lie in each.
    """

    numbers: Numbers
    state: ValuesState
    run: Int64Array
    sizes: Int64Array


class Recent:
    """What a process has written of late, which the next epoch then need not read.

    Whoever takes something has it alone: nothing of an epoch that fails is left here.

    Args:
        limit: how many values are kept at most.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._found: OrderedDict[tuple[ValuesRun, ...], WrittenValues] = OrderedDict()

    def take(self, runs: tuple[ValuesRun, ...]) -> WrittenValues | None:
        """What the runs say, if it is here. The names of segments are unique."""
        with self._lock:
            return self._found.pop(runs, None)

    def keep(self, runs: tuple[ValuesRun, ...], known: WrittenValues) -> None:
        """Keep what the runs say, in place of what was kept first if there is too much."""
        with self._lock:
            self._found[runs] = known
            while sum(len(known.numbers) for known in self._found.values()) > self._limit:
                self._found.popitem(last=False)


RECENT: Final = Recent(1_000_000)


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
        self._begun = self._clock if found.values is None else found.values.begun
        self._runs = () if found.values is None else found.values.runs
        self._came = False
        type_ = found.schema[found.schema.names.index(per.column)].type
        known = RECENT.take(self._runs) or read_values(work.store, self._runs, type_)
        self._numbers, self._state, self._run = known.numbers, known.state, known.run
        self._sizes = np.append(known.sizes, 0)
        self._listed = self._number(pa.array(list(per.listed), type_)) if per.listed else _NONE

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
        late, limits = judge_by_value(self._rules, self._state, codes, times, self._heartbeat, self._clock)
        renew(codes, len(self._runs), self._run, self._sizes)
        drop = int((limits - times[late]).max()) + self._rules.disorder if len(late) else 0
        seen = Arrivals(len(times) - len(late), len(late), 0, int(times.max()), int(times.min()), drop)
        return Judgement(seen, late, limits)

    def stored(self, writer: SegmentWriter) -> ValuesPoint | None:
        """Where the values lie after the epoch; None where no row came, so that nothing has changed.

        Args:
            writer: of the segment that they are appended to.
        """
        if not self._came:
            return None
        first = _first_rewritten(self._runs, self._sizes)
        if first == 0:
            self._forget()
        written = join_places(self._run, first)
        runs, sizes = self._runs[:first], self._sizes[:first]
        if len(written):
            runs += (ValuesRun(writer.add(encode_rows(self._rows(written))), len(written)),)
            sizes = np.append(sizes, len(written))
        RECENT.keep(runs, WrittenValues(self._numbers, self._state, self._run, sizes))
        steps = rises(self._rules, self._state, self._clock)
        return ValuesPoint(
            self._per.column,
            runs,
            self._begun,
            tuple((step.when, step.least) for step in steps),
            tuple(self._shown(step.value) for step in steps),
        )

    def _number(self, column: pa.Array) -> Int64Array:
        """The number of each value, of which those that have none get one. NULL is a value."""
        found = self._numbers.of(column)
        new = len(self._numbers) - len(self._run)
        if new:
            self._state = self._state.joined_by(new, self._clock)
            self._run = np.append(self._run, np.full(new, len(self._runs)))
            self._sizes[-1] += new
        return found

    def _forget(self) -> None:
        """Forget the values that make no difference."""
        gone = forgettable(self._rules, self._state, self._heartbeat, self._clock)
        gone[self._listed] = False
        if gone.any():
            self._state, self._run = self._state.without(gone), self._run[~gone]
            self._numbers = Numbers(self._numbers.keys.filter(pa.array(~gone)))

    def _rows(self, numbers: Int64Array) -> pa.RecordBatch:
        keys, newest, heard = self._numbers.keys, self._state.newest, self._state.heard
        if len(numbers) < len(keys):
            keys, newest, heard = keys.take(pa.array(numbers)), newest[numbers], heard[numbers]
        return pa.RecordBatch.from_pydict({"value": keys, "newest": newest, "heard": heard})

    def _shown(self, number: int) -> SlowValue:
        return SlowValue(_literal(self._numbers.keys[number]), int(self._state.newest[number]))


def read_values(store: Store, runs: tuple[ValuesRun, ...], type_: pa.DataType) -> WrittenValues:
    """What runs say of the values."""
    numbers, state = Numbers(pa.array([], type_)), ValuesState.listed(0)
    run = np.empty(0, dtype=np.int64)
    reader = SegmentReader(store)
    for number, place in enumerate(runs):
        rows = decode_rows(reader.read(place.part))
        codes = numbers.of(rows.column("value"))
        state = state.joined_by(len(numbers) - len(run))
        run = np.append(run, np.empty(len(numbers) - len(run), dtype=np.int64))
        state.newest[codes], state.heard[codes] = (
            integers(rows.column("newest")),
            integers(rows.column("heard")),
        )
        run[codes] = number
    return WrittenValues(numbers, state, run, np.bincount(run, minlength=len(runs)))


def _first_rewritten(runs: tuple[ValuesRun, ...], sizes: Int64Array) -> int:
    """From which run on all are written anew as one.

    Args:
        runs: the runs so far.
        sizes: int64[runs + 1], how many values lie in each of them, and at the end how many have changed.
    """
    first, size = len(runs), int(sizes[-1])
    while first and runs[first - 1].rows <= size:
        first -= 1
        size += int(sizes[first])
    return first


def _literal(value: pa.Scalar) -> str:
    """A value as a literal of SQL, or the beginning of it."""
    found = value.as_py()
    if isinstance(found, str):
        cut = found if len(found) <= _SHOWN else f"{found[: _SHOWN - 3]}..."
        return "'" + cut.replace("'", "''") + "'"
    return "NULL" if found is None else str(found)
