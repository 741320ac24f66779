"""The rows of a stream with external CTIs, as a task of level 0 counts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.events import COUNTED, Events
from headrace.elements import Int64Array, take_rows
from headrace.heartbeats.bounded import Arrivals, Judgement
from headrace.heartbeats.tally import ExternalCti, is_cut
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.tasks.reading import Judge
from headrace.runtime.tasks.task import Task
from headrace.time import BEGINNING, MIN_INSTANT


class TalliedRows:
    """The rows of one stream, of which one task has all in an epoch, and the external CTIs among them.

    Args:
        task: takes the external CTIs that are set apart, and what the others wait for.
        stream: the stream's name.
    """

    def __init__(self, task: Task, stream: str) -> None:
        self._task = task
        self._name = stream
        self._stream = task.work.streams[stream]
        assert isinstance(self._stream.changes, Events)
        self._events = self._stream.changes
        self._promises: list[ExternalCti] = []
        self._times: list[Int64Array] = []
        self._rejected = 0

    def read(self, read: Read) -> Read:
        """The rows without external CTIs, which are kept apart."""
        change = self._events.change
        assert change is not None
        mask = pc.equal(pc.utf8_upper(read.rows.column(change)), COUNTED).fill_null(False)
        external = np.asarray(mask.to_numpy(zero_copy_only=False))
        if not external.any():
            return read
        self._take(take_rows(self._task.letters.numbered(read), np.flatnonzero(external)))
        kept = np.flatnonzero(~external)
        places = None if read.places is None else read.places.kept(kept)
        return replace(read, rows=take_rows(read.rows, kept), places=places)

    def _take(self, rows: pa.RecordBatch) -> None:
        ends, counts = self._events.ends, self._events.counts
        assert ends is not None
        assert counts is not None
        names = (self._stream.timestamp, ends, counts)
        named = (rows.column(name).cast(pa.int64()).to_pylist() for name in names)
        for row, (start, end, count) in enumerate(zip(*named, strict=True)):
            reason = self._problem(start, end, count)
            if reason is None:
                self._promises.append(ExternalCti(BEGINNING if start is None else start, end, count))
            else:
                self._rejected += 1
                self._task.letters.drop(self._name, rows.slice(row, 1), [reason])

    def _problem(self, start: int | None, end: int | None, count: int | None) -> str | None:
        """Why an external CTI cannot be used."""
        begin, last = self._stream.timestamp, self._events.ends
        if count is None or count < 0:
            return f"the count {self._events.counts} of an external CTI is NULL or negative"
        if end is None or not MIN_INSTANT <= end <= self._stream.newest:
            return f"the end {last} of an external CTI is NULL or out of range"
        if start is None:
            return None
        if start >= end:
            return f"the interval {begin} TO {last} of an external CTI is empty"
        if is_cut(ExternalCti(start, end, count), self._stream.heartbeat):
            return "a part of what the external CTI counts is final, and no longer counted"
        return None

    def watching(self, judge: Judge) -> Judge:
        """A judge that also counts the rows that are in time.

        Args:
            judge: which of the rows are late.
        """

        def run(rows: pa.RecordBatch, times: Int64Array) -> Judgement:
            found = judge(rows, times)
            self._times.append(np.delete(times, found.late))
            return found

        return run

    def counted(self, seen: Arrivals) -> Arrivals:
        """What arrived, with what external CTIs promise after it; the task gets what the others wait for.

        Args:
            seen: the rows, and what other CTIs promise.
        """
        state = self._task.work.time.state
        place = self._task.work.time.names.index(self._name)
        times = np.concatenate([np.empty(0, dtype=np.int64), *self._times])
        otherwise = max(seen.promise, int(state.heartbeats[place]))
        promise, self._task.tallies[self._name] = state.tallies[place].after(times, self._promises, otherwise)
        return replace(seen, promise=promise, rejected=seen.rejected + self._rejected)
