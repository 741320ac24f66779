"""Session windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import SessionAggregate, SessionWindow, instant_type
from headrace.elements import Batch, Int64Array, concat, integers, record_batch, take_rows
from headrace.kernels.instants.sessions import number_sessions
from headrace.kernels.instants.timeline import net_points
from headrace.operators.contract import OperatorProgress
from headrace.operators.state.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.state.runs import HASH, TIME, WEIGHT
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.time import INFINITY

_INSTANT = "__instant"


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of some keys with the session of each, as far as it is known below the heartbeat.

    Attributes:
        payload: n normalised rows.
        ts, w: int64[n], instants and positive multiplicities.
        start, end: int64[n], where the row's session begins and ends.
        stored: int64[n], the last instant of the row's session as it was when the row was stored.
    """

    payload: pa.RecordBatch
    ts: Int64Array
    w: Int64Array
    start: Int64Array
    end: Int64Array
    stored: Int64Array


class SessionOperator:
    """Session windows (a family of its own; on sweep areas).

    Definition:
        The rows of a key are cut into sessions `[start, end)`: where `gap` or more lies between one and the
        next, and where the next would be `longest` or more after the first. `end` is `gap` after the last
        row, or `longest` after the first one. At t, every row of the sessions with
        `end - 1 <= t < end - 1 + gap`, and `start` and `end`.

    Retractions:
        Cancel their row while it waits. A session is answered once, when the heartbeat has passed its end.

    State:
        The rows of sessions that are not over, each with the end that its session had when it was stored. At
        that end it goes, with its session, or is stored again with the session's new end. A row of a session
        that ended by its length goes with a second row that cancels it.

    Example:
        Gap 5, heartbeat 20:

        ====== ======= ==        ============ ======= ==
        x      [ts,te)  w        x, start,end [ts,te)  w
        ====== ======= ==        ============ ======= ==
        a      [1,2)    +        a, 1, 10     [9,14)   +
        b      [5,6)    +        b, 1, 10     [9,14)   +
        a      [10,11)  +        a, 10, 15    [14,19)  +
        a      [18,19)  +
        ====== ======= ==        ============ ======= ==
    """

    def __init__(self, node: SessionWindow) -> None:
        self._node = node
        self._gap, self._longest = lengths_of(node)
        self._payload = tuple(f"p{place}" for place in range(len(node.input.schema)))
        keys = tuple(self._payload[key.index] for key in node.keys)
        self._area = SweepArea(Layout(keys, (*self._payload, _INSTANT), (WEIGHT,)))
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, SweepArea]:
        """The rows of sessions that are not over."""
        return {"rows": self._area}

    def process(self, port: int, batch: Batch) -> None:
        """Take in chronons."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The sessions that the new heartbeat has ended."""
        before, heartbeat = progress.window
        batch = concat(self._node.input.schema, self._inputs)
        columns = [normalise(column) for column in batch.payload.columns]
        payload = record_batch(columns, self._node.input.schema, len(batch))
        self._store(payload, batch.ts, batch.ts + self._gap - 1, batch.w)
        due = self._area.due(before, heartbeat)
        result = concat(self._node.schema, [])
        if due is not None:
            rows = self._sessions(due, before, heartbeat)
            result = self._answer(rows, heartbeat)
            self._keep(rows, heartbeat)
        self._area.expire(heartbeat)
        return result

    def _store(self, payload: pa.RecordBatch, ts: Int64Array, end: Int64Array, w: Int64Array) -> None:
        keys = [payload.column(key.index) for key in self._node.keys]
        columns = {HASH: pa.array(hash_rows(keys, len(ts)))}
        columns |= {TIME: pa.array(end), _INSTANT: pa.array(ts), WEIGHT: pa.array(w)}
        self._area.insert(columns | dict(zip(self._payload, payload.columns, strict=True)))

    def _sessions(self, due: pa.RecordBatch, before: int, heartbeat: int) -> _Rows:
        """All final rows of the keys that have something due, with their sessions."""
        keys, codes, stored = self._stored(due)
        alive = (integers(stored.column(TIME)) >= before) & (integers(stored.column(_INSTANT)) < heartbeat)
        rows, codes = stored.take(pa.array(np.flatnonzero(alive))), codes[alive]
        times = integers(rows.column(_INSTANT))
        payload = rows.select(list(self._payload))
        same = encode_keys(payload.columns, hash_rows(payload.columns, len(times)))
        weights = integers(rows.column(WEIGHT)).reshape(-1, 1)
        order = order_by(same.codes, times, len(same))
        first, sums = net_points(order, same.codes, times, weights)
        first, w = first[sums[:, 0] > 0], sums[sums[:, 0] > 0, 0]
        first, w = _by_key(codes, times, first, w, keys)
        ts = times[first]
        numbers = number_sessions(codes[first], ts, ts, self._gap, self._longest)
        start, end = session_bounds(numbers, ts, ts, (self._gap, self._longest))
        stored_with = integers(rows.column(TIME))[first]
        return _Rows(take_rows(payload, first), ts, w, start[numbers], end[numbers], stored_with)

    def _stored(self, due: pa.RecordBatch) -> tuple[int, Int64Array, pa.RecordBatch]:
        """The number of keys with something due, and all rows of these keys with the number of each's key."""
        columns = [due.column(name) for name in self._area.layout.keys]
        codes = encode_keys(columns, integers(due.column(HASH)))
        representatives = pa.array(codes.first)
        hashes = integers(due.column(HASH).take(representatives))
        places, rows = self._area.gather(hashes, [column.take(representatives) for column in columns])
        assert rows is not None
        return len(codes), places, rows

    def _answer(self, rows: _Rows, heartbeat: int) -> Batch:
        over = np.flatnonzero(rows.end <= heartbeat)
        start, end = rows.start[over], rows.end[over]
        bounds = [pa.array(instants).cast(instant_type(self._node)) for instants in (start, end)]
        columns = [*take_rows(rows.payload, over).columns, *bounds]
        payload = record_batch(columns, self._node.schema, len(over))
        return Batch(payload, end - 1, end - 1 + self._gap, rows.w[over])

    def _keep(self, rows: _Rows, heartbeat: int) -> None:
        """Store what is due but goes on, with the end its session has now; cancel what is over too soon."""
        due, over = rows.stored < heartbeat, rows.end <= heartbeat
        on = np.flatnonzero(due & ~over)
        self._store(take_rows(rows.payload, on), rows.ts[on], rows.end[on] - 1, rows.w[on])
        cut = np.flatnonzero(over & ~due)
        self._store(take_rows(rows.payload, cut), rows.ts[cut], rows.stored[cut], -rows.w[cut])


def _by_key(
    codes: Int64Array, times: Int64Array, rows: Int64Array, w: Int64Array, keys: int
) -> tuple[Int64Array, Int64Array]:
    """Rows and their multiplicities in the order of key and time."""
    order = order_by(codes[rows], times[rows], keys)
    return rows[order], w[order]


def lengths_of(node: SessionWindow | SessionAggregate) -> tuple[int, int]:
    """The gap and the longest length of a node's sessions (instants), INFINITY where there is none."""
    return node.gap.length, INFINITY if node.longest is None else node.longest.length


def session_bounds(
    numbers: Int64Array, first: Int64Array, last: Int64Array, lengths: tuple[int, int]
) -> tuple[Int64Array, Int64Array]:
    """Where each session begins and ends.

    Args:
        numbers, first, last: as `number_sessions` takes and returns them.
        lengths: the gap and the longest length (instants).
    """
    gap, longest = lengths
    opening = np.flatnonzero(np.diff(numbers, prepend=-1))
    start = first[opening]
    end = last[np.append(opening[1:], len(numbers)) - 1] + gap if len(opening) else start
    return start, np.minimum(end, start + longest) if longest < INFINITY else end
