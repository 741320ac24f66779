"""The rows of a stream as elements: for how long each is valid, and whether it adds or takes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.events import ADDITIONS, PROMISE, WITHDRAWALS, Events
from headrace.elements import Batch, BoolArray, Int64Array, integers, take_rows
from headrace.runtime.tasks.letters import DeadLetters
from headrace.schema import STRING
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT

_MOST: Final = 1_000_000
"""So often a row may add or take back at most: each time is a row of the answer."""

_WRITTEN: Final = "write insert or delete, + or -, or 1 or -1; an update needs KEY (column) before FROM"


def usable_events(
    name: str, events: Events, timestamp: str, rows: pa.RecordBatch, letters: DeadLetters
) -> pa.RecordBatch:
    """The rows that say whether they add or take back, and that have a lifetime; the others are set apart.

    Args:
        name: the stream.
        events: which columns say it.
        timestamp: the column it is timed by, where NULL is not judged here.
        rows: the rows.
        letters: takes what is set apart.
    """
    wrong = np.zeros(rows.num_rows, dtype=np.bool_)
    for fault, reason in _faults(events, timestamp, rows):
        _drop(name, rows, fault, reason, letters)
        wrong |= fault
    return take_rows(rows, np.flatnonzero(~wrong)) if wrong.any() else rows


def cannot_use(events: Events, timestamp: str, rows: pa.RecordBatch) -> BoolArray:
    """Which rows do not say whether they add or take back, or have no lifetime.

    Args:
        events: which columns say it.
        timestamp: the column they are timed by, where NULL is not judged here.
        rows: the rows.
    """
    wrong = np.zeros(rows.num_rows, dtype=np.bool_)
    for fault, _ in _faults(events, timestamp, rows):
        wrong |= fault
    return wrong


def _faults(events: Events, timestamp: str, rows: pa.RecordBatch) -> Iterator[tuple[BoolArray, str]]:
    """Which rows have a fault, and what it is; of each row the first one."""
    wrong = np.zeros(rows.num_rows, dtype=np.bool_)
    if events.change is not None:
        wrong = _unknown(rows.column(events.change))
        yield wrong, f"{events.change} is not a known change; {_WRITTEN}"
    if events.shortened is not None:
        new, begin = rows.column(events.shortened), rows.column(timestamp)
        after = _mask(pc.greater_equal(new, begin).fill_null(False))
        lengthened = _backwards(events, rows) & ~after & ~wrong
        yield lengthened, f"it shortens a row, and {events.shortened} is NULL or before {timestamp}"
        wrong = wrong | lengthened
    if events.ends is not None:
        begin, end = _begins(events, timestamp, rows), rows.column(events.ends)
        times, known = integers(end.fill_null(0)), _mask(end.is_valid())
        outside = known & ((times < MIN_INSTANT) | (times > MAX_INSTANT)) & ~wrong
        yield outside, f"the end {events.ends} is out of range"
        empty = known & (integers(begin.fill_null(MIN_INSTANT)) >= times) & ~wrong & ~outside
        yield empty & _mask(begin.is_valid()), f"the period {timestamp} TO {events.ends} is empty"


def promised_by(events: Events, rows: pa.RecordBatch, newest: int) -> tuple[pa.RecordBatch, int]:
    """The rows that are changes, and the largest heartbeat that the others promise (instant), if any do.

    Args:
        events: how rows say when they are valid.
        rows: the rows.
        newest: the largest heartbeat that counts (instant).
    """
    if events.shortened is None or events.change is None or events.ends is None:
        return rows, BEGINNING
    promises = _mask(pc.equal(pc.utf8_upper(rows.column(events.change)), PROMISE).fill_null(False))
    if not promises.any():
        return rows, BEGINNING
    ends = integers(take_rows(rows, np.flatnonzero(promises)).column(events.ends).drop_null())
    ends = ends[(ends >= MIN_INSTANT) & (ends <= newest)]
    return take_rows(rows, np.flatnonzero(~promises)), int(ends.max(initial=BEGINNING))


def sync_times(events: Events | None, rows: pa.RecordBatch, times: Int64Array) -> Int64Array:
    """From which instants on rows change what holds: a row that is shortened, from its new end on.

    Args:
        events: how they say when they are valid; None where each is for its instant.
        rows: usable rows.
        times: int64[n], their timestamps.
    """
    if events is None or events.shortened is None:
        return times
    new = rows.column(events.shortened)
    shortens = _mask(new.is_valid()) & _backwards(events, rows)
    return np.where(shortens, integers(new.fill_null(0)), times)


def elements_of(events: Events | None, rows: pa.RecordBatch, times: Int64Array) -> Batch:
    """Usable rows as elements.

    Args:
        events: how they say when they are valid; None where each is for its instant.
        rows: the rows.
        times: int64[n], their timestamps.
    """
    if events is None:
        return Batch(rows, times, times + 1, np.ones(len(times), dtype=np.int64))
    return Batch(rows, times, _ends(events, rows, times), _weights(events, rows))


def _ends(events: Events, rows: pa.RecordBatch, times: Int64Array) -> Int64Array:
    if not events.lasting:
        return times + 1
    if events.ends is None:
        return np.full(len(times), INFINITY)
    return integers(rows.column(events.ends).fill_null(INFINITY))


def _weights(events: Events, rows: pa.RecordBatch) -> Int64Array:
    if events.change is None:
        return np.ones(rows.num_rows, dtype=np.int64)
    column = rows.column(events.change)
    if column.type != STRING:
        return integers(column)
    return np.where(_backwards(events, rows), -1, 1)


def _backwards(events: Events, rows: pa.RecordBatch) -> BoolArray:
    """Which of some rows take others back, where words say so."""
    assert events.change is not None
    return _mask(pc.is_in(pc.utf8_upper(rows.column(events.change)), value_set=pa.array(WITHDRAWALS, STRING)))


def _begins(events: Events, timestamp: str, rows: pa.RecordBatch) -> pa.Array:
    """Where what rows add or take back begins."""
    begin = rows.column(timestamp)
    if events.shortened is None:
        return begin
    return pc.if_else(pa.array(_backwards(events, rows)), rows.column(events.shortened), begin)


def _unknown(change: pa.Array) -> BoolArray:
    if change.type == STRING:
        return ~_mask(pc.is_in(pc.utf8_upper(change), value_set=pa.array((*ADDITIONS, *WITHDRAWALS), STRING)))
    times = integers(change.fill_null(0))
    return np.asarray((times == 0) | ((times < -_MOST) | (times > _MOST)))


def _mask(values: pa.Array) -> BoolArray:
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _drop(name: str, rows: pa.RecordBatch, mask: BoolArray, reason: str, letters: DeadLetters) -> None:
    bad = np.flatnonzero(mask)
    letters.drop(name, take_rows(rows, bad), [reason] * len(bad))
