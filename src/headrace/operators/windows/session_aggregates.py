"""Aggregates of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import SessionAggregate, instant_type
from headrace.elements import Batch, Int64Array, concat, integers, limbs_of, record_batch
from headrace.kernels.instants.sessions import number_sessions
from headrace.kernels.instants.timeline import add_by_code
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.contract import OperatorProgress, Report, evaluate_predicate
from headrace.operators.state.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import END, HASH, TIME, WEIGHT, Area
from headrace.operators.state.sum_columns import SumColumns, sum_arrays, sums_of
from headrace.operators.state.sweep_area import Layout, SweepArea
from headrace.operators.windows.sessions import lengths_of, session_bounds

_FIRST: Final = "__first"
_LAST: Final = "__last"


class SessionAggregateOperator:
    """Aggregates of sessions (a family of its own; on sweep areas).

    Definition:
        At t, one row per group of the rows that `SessionOperator` has at t: the keys, then the aggregates.

    Retractions:
        Cancel their row while it waits for the heartbeat. A session is answered once, when that has passed
        its end.

    State:
        The rows that the heartbeat has not passed. For each session that is not over its first and its last
        instant, and for each of its groups what its rows add up to, with a row for each first or last value.
        When a session gets a row, a second row of state cancels what was kept of it, and both go as soon as
        their runs are merged. The groups of the sessions that are shown, as in `AggregateOperator`.

    Example:
        `SELECT k, window_end, COUNT(*) AS n ... GROUP BY k, window_start, window_end`, gap 5, heartbeat 20:

        ====== ======= ==        ============== ======= ==
        k      [ts,te)  w        k, end, n      [ts,te)  w
        ====== ======= ==        ============== ======= ==
        a      [1,2)    +        a, 10, 2       [9,14)   +
        a      [5,6)    +        a, 15, 1       [14,19)  +
        a      [10,11)  +
        a      [18,19)  +
        ====== ======= ==        ============== ======= ==
    """

    def __init__(self, node: SessionAggregate, report: Report) -> None:
        self._node, self._report = node, report
        self._lengths = lengths_of(node)
        self._form = Accumulation.of(node.written_out)
        self._payload = tuple(f"p{place}" for place in range(len(node.input.schema)))
        self._waiting = SweepArea(Layout((), self._payload, (WEIGHT,)))
        names = tuple(f"s{place}" for place in range(len(node.by)))
        self._sessions = _Kept(SweepArea(Layout(names, (_FIRST, _LAST, END), (WEIGHT,))))
        of_session = {key.index: place for place, (_, key) in enumerate(node.keys) if key in node.by}
        names = tuple(self._form.key_names[of_session[key.index]] for key in node.by)
        same = (name for name in self._form.schema.names if name not in (*names, *self._form.int_names))
        self._parts = _Kept(SweepArea(Layout(names, (*same, END), self._form.int_names)))
        self._groups = AggregateOperator(node.written_out, combined=True, insert_only=True, report=report)
        self._inputs: list[Batch] = []

    @property
    def areas(self) -> dict[str, Area]:
        """Rows that wait, sessions that are not over, what they add up to, and the groups that are shown."""
        kept = {"waiting": self._waiting, "sessions": self._sessions.area, "parts": self._parts.area}
        return kept | {f"groups_{name}": area for name, area in self._groups.areas.items()}

    def process(self, port: int, batch: Batch) -> None:
        """Take in chronons."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The groups of the sessions that the new heartbeat has ended."""
        self._groups.process(0, self._ended(self._final(*progress.window), *progress.window))
        self._sessions.area.expire(progress.window[1])
        self._parts.area.expire(progress.window[1])
        return self._groups.advance(progress)

    def _final(self, before: int, heartbeat: int) -> Batch:
        """The rows that the heartbeat has passed; the others wait."""
        schema = self._node.input.schema
        batch = concat(schema, self._inputs)
        columns = {HASH: pa.array(np.zeros(len(batch), dtype=np.int64)), TIME: pa.array(batch.ts)}
        columns |= dict(zip(self._payload, map(normalise, batch.payload.columns), strict=True))
        self._waiting.insert(columns | {WEIGHT: pa.array(batch.w)})
        due = self._waiting.due(before, heartbeat)
        self._waiting.expire(heartbeat)
        if due is None:
            return concat(schema, [])
        payload = record_batch([due.column(name) for name in self._payload], schema, due.num_rows)
        ts = integers(due.column(TIME))
        rows = netted(Batch(payload, ts, ts + 1, integers(due.column(WEIGHT))))
        return rows.filter(rows.w > 0)

    def _ended(self, final: Batch, before: int, heartbeat: int) -> Batch:
        """The sums of the sessions that are over; those of the others are kept."""
        keys, codes = self._touched(final, before, heartbeat)
        open_ones = self._sessions.of(keys, before)
        parts = self._parts.of(keys, before)
        found = _Sessions.of(open_ones, codes, final.ts, self._lengths)
        of_key = np.zeros(len(keys), dtype=np.int64)
        of_key[open_ones.places] = found.numbers[: len(open_ones.places)]
        rows = self._form.combine(
            concat(
                self._form.schema,
                [
                    self._again(parts.rows, found, of_key[parts.places]),
                    self._entered(final, found, found.numbers[len(open_ones.places) :]),
                ],
            )
        )
        on = np.flatnonzero(found.end > heartbeat)
        named = {name: key.take(pa.array(found.keys[on])) for name, key in keys.named(self._sessions.keys)}
        named |= {_FIRST: pa.array(found.start[on]), _LAST: pa.array(found.last[on])}
        named |= {TIME: pa.array(found.start[on]), END: pa.array(found.end[on] - 1)}
        self._sessions.replace(open_ones, named | {WEIGHT: pa.array(np.ones_like(on))}, heartbeat)
        going = rows.filter(rows.te > heartbeat)
        named = dict(zip(going.payload.schema.names, going.payload.columns, strict=True))
        named |= {TIME: pa.array(going.ts), END: pa.array(going.te - 1)}
        self._parts.replace(parts, named, heartbeat)
        return self._shown(rows.filter(rows.te <= heartbeat))

    def _touched(self, final: Batch, before: int, heartbeat: int) -> tuple[_Keys, Int64Array]:
        """The keys of final rows and of sessions whose end has passed; the number of each final row's key."""
        columns = [normalise(final.payload.column(key.index)) for key in self._node.by]
        due = self._sessions.area.due(before, heartbeat)
        count = len(final)
        if due is not None:
            older = [due.column(name) for name in self._sessions.keys]
            columns = [pa.concat_arrays(pair) for pair in zip(columns, older, strict=True)]
            count += due.num_rows
        hashes = hash_rows(columns, count)
        codes = encode_keys(columns, hashes)
        first = pa.array(codes.first)
        keys = _Keys([column.take(first) for column in columns], hashes[codes.first])
        return keys, codes.codes[: len(final)]

    def _again(self, parts: pa.RecordBatch | None, found: _Sessions, numbers: Int64Array) -> Batch:
        """The sums of sessions so far, as elements from the start to the end of their session."""
        if parts is None:
            return concat(self._form.schema, [])
        payload = parts.select([*self._form.schema.names, *limbs_of(parts)])
        ones = np.ones(len(numbers), dtype=np.int64)
        return Batch(payload, found.start[numbers], found.end[numbers], ones)

    def _entered(self, final: Batch, found: _Sessions, numbers: Int64Array) -> Batch:
        """The sums of new rows, as such elements. No group's key reads a bound yet, so that each is 0."""
        zeros = pa.array(np.zeros(len(final), dtype=np.int64)).cast(instant_type(self._node))
        schema = self._node.written_out.input.schema
        payload = record_batch([*final.payload.columns, zeros, zeros], schema, len(final))
        rows = Batch(payload, found.start[numbers], found.end[numbers], final.w)
        if self._node.condition is not None:
            rows = evaluate_predicate(self._node.condition, rows, self._report)
        return self._form.accumulate(rows, self._report)

    def _shown(self, rows: Batch) -> Batch:
        """The sums of sessions that are over, with their bounds, for as long as they are shown."""
        bounds = [pa.array(ends).cast(instant_type(self._node)) for ends in (rows.ts, rows.te)]
        payload = rows.payload
        for place, bound in self._node.bounds.items():
            payload = payload.set_column(place, self._form.key_names[place], bounds[bound])
        return Batch(payload, rows.te - 1, rows.te - 1 + self._lengths[0], rows.w)


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keys of sessions: their columns, k rows, and int64[k] hashes."""

    columns: list[pa.Array]
    hashes: Int64Array

    def __len__(self) -> int:
        return len(self.hashes)

    def named(self, names: tuple[str, ...]) -> list[tuple[str, pa.Array]]:
        """The columns under names."""
        return list(zip(names, self.columns, strict=True))


@dataclass(frozen=True, eq=False)
class _Stored:
    """Rows of state: the key of each, int64[n], and n rows, or None for none."""

    places: Int64Array
    rows: pa.RecordBatch | None

    def times(self, name: str) -> Int64Array:
        """A column of instants."""
        return np.empty(0, dtype=np.int64) if self.rows is None else integers(self.rows.column(name))


class _Kept:
    """Rows of state of which the newest count: a row that cancels an older one takes its place.

    Args:
        area: holds them until their `__te`.
    """

    def __init__(self, area: SweepArea) -> None:
        self.area = area
        self.keys = area.layout.keys

    def of(self, keys: _Keys, before: int) -> _Stored:
        """The rows of keys that have not gone before an instant."""
        places, rows = self.area.gather(keys.hashes, keys.columns)
        if rows is None:
            return _Stored(places, None)
        alive = np.flatnonzero(integers(rows.column(END)) >= before)
        places, rows = places[alive], rows.take(pa.array(alive))
        layout = self.area.layout
        identity = [*(rows.column(name) for name in layout.same), pa.array(places)]
        codes = encode_keys(identity, hash_rows(identity, len(places)))
        sums = sums_of(rows, layout.ints)
        added = SumColumns(add_by_code(codes.codes, sums.values, len(codes)), sums.limbs)
        kept = np.flatnonzero((added.values != 0).any(axis=1))
        others = [HASH, TIME, *layout.keys, *layout.same]
        first = codes.first[kept]
        netted_rows = rows.select(others).take(pa.array(first))
        columns = dict(zip(others, netted_rows.columns, strict=True))
        columns |= sum_arrays(layout.ints, sums.limbs, added.values[kept].T)
        return _Stored(places[first], pa.RecordBatch.from_pydict(columns))

    def replace(self, old: _Stored, new: dict[str, pa.Array], heartbeat: int) -> None:
        """Put rows, which have all columns but the hash, in the place of those that were found."""
        layout = self.area.layout
        if old.rows is not None:
            lasting = np.flatnonzero(integers(old.rows.column(END)) >= heartbeat)
            rows = old.rows.take(pa.array(lasting))
            sums = sums_of(rows, layout.ints)
            columns = dict(zip(rows.schema.names, rows.columns, strict=True))
            self._insert(columns | sum_arrays(layout.ints, sums.limbs, -sums.values.T))
        hashes = hash_rows([new[name] for name in self.keys], len(new[TIME]))
        self._insert({HASH: pa.array(hashes)} | new)

    def _insert(self, columns: dict[str, pa.Array]) -> None:
        """Append rows, whose columns have one order in all runs."""
        layout = self.area.layout
        names = [HASH, TIME, *layout.keys, *layout.same, *layout.ints]
        names += sorted(name for name in columns if name not in names)
        self.area.insert({name: columns[name] for name in names})


@dataclass(frozen=True, eq=False)
class _Sessions:
    """Sessions of touched keys.

    Attributes:
        numbers: the session of each that was open and of each final row.
        keys, start, last, end: of each session.
    """

    numbers: Int64Array
    keys: Int64Array
    start: Int64Array
    last: Int64Array
    end: Int64Array

    @classmethod
    def of(cls, open_ones: _Stored, codes: Int64Array, ts: Int64Array, lengths: tuple[int, int]) -> _Sessions:
        """Those that were open and those that final rows make.

        Args:
            open_ones: at most one of each key.
            codes, ts: the keys and the instants of final rows, all of them after those that came before.
            lengths: the gap and the longest length (instants).
        """
        keys = np.concatenate([open_ones.places, codes])
        first = np.concatenate([open_ones.times(_FIRST), ts])
        last = np.concatenate([open_ones.times(_LAST), ts])
        order = order_by(keys, first, int(keys.max(initial=-1)) + 1)
        in_order = number_sessions(keys[order], first[order], last[order], *lengths)
        numbers = np.empty_like(in_order)
        numbers[order] = in_order
        start, end = session_bounds(in_order, first[order], last[order], lengths)
        closing = np.flatnonzero(np.diff(in_order, append=len(start)))
        return cls(numbers, keys[order][closing], start, last[order][closing], end)
