"""The timeline mechanism: per key a step function over time that is changed pointwise.

A key's input is a *base*, the sums at the heartbeat, and a sorted list of endpoint *deltas* above it: an
element `[ts, te)` adds its sums at `ts` and takes them away at `te`. When the horizon moves, the deltas it
passed are applied; the mechanism hands the operator the points at which the sums changed, for the keys that
were touched, and remembers how far each key's last segment was emitted, so that a correction cancels exactly
what was said.

An element beyond the horizon is stored at once as its two deltas: it waits, but its endpoints are known and
close open segments early (decision 0003).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.kernels.timeline import Float64Array, net_points, running_sums, smallest_per_code
from headrace.operators.keys import Codes, encode_keys, hash_rows, order_by
from headrace.operators.runs import HASH, TIME
from headrace.operators.sweep_area import Layout, Netting, SweepArea, matrix
from headrace.time import BEGINNING, INFINITY

_UNTIL = "__until"


@dataclass(frozen=True, eq=False)
class Changes:
    """What enters a timeline: elements with what each adds to its key's sums.

    Attributes:
        keys: normalised key columns, n rows.
        ts, te: int64[n].
        ints: int64[n, c], column 0 the row count; floats: float64[n, 2 * f].
    """

    keys: list[pa.Array]
    ts: Int64Array
    te: Int64Array
    ints: Int64Array
    floats: Float64Array


def append_changes(first: Changes, more: Changes) -> Changes:
    """The elements of both, in order."""
    if len(more.ts) == 0:
        return first
    keys = [pa.concat_arrays(pair) for pair in zip(first.keys, more.keys, strict=True)]
    names = ("ts", "te", "ints", "floats")
    return Changes(keys, *(np.concatenate([getattr(first, name), getattr(more, name)]) for name in names))


@dataclass(frozen=True, eq=False)
class Points:
    """The instants at which the sums of the touched keys changed, sorted by key, then time.

    Attributes:
        keys: the key columns of the k touched keys, and hashes: their hashes (int64[k]).
        element_keys: int64[n], the touched key of each element that entered, -1 if it only waits.
        codes, times: int64[m], the key and the instant of each point.
        ints, floats: the sums from each point on, [m, c] and [m, 2 * f].
        base_ints, base_floats: the sums before the first point, [k, c] and [k, 2 * f].
        covered: int64[k], up to where the segment that was open before has been emitted; BEGINNING for a key
            that never had a row.
        until: int64[k], the next known endpoint after the last point, or INFINITY.
    """

    keys: list[pa.Array]
    hashes: Int64Array
    element_keys: Int64Array
    codes: Int64Array
    times: Int64Array
    ints: Int64Array
    floats: Float64Array
    base_ints: Int64Array
    base_floats: Float64Array
    covered: Int64Array
    until: Int64Array


class Timeline:
    """Bases and deltas of one bucket.

    Args:
        keys: the names of the key columns in state.
        int_width, float_width: the widths of the sums.
        keep_empty: whether a key is remembered after its last row has left.
    """

    def __init__(
        self, keys: tuple[str, ...], int_width: int, float_width: int, keep_empty: bool = False
    ) -> None:
        ints = tuple(f"__i{place}" for place in range(int_width))
        floats = tuple(f"__f{place}" for place in range(float_width))
        self.deltas = SweepArea(Layout(keys, ints=ints, floats=floats))
        self.bases = SweepArea(
            Layout(keys, ints=ints, floats=floats, netting=Netting.REPLACE, keep_empty=keep_empty)
        )

    def step(self, changes: Changes, before: int, horizon: int) -> Points | None:
        """Take in elements and move the horizon.

        Args:
            changes: elements with `ts >= before`.
            before, horizon: the old and the new horizon (instants).

        Returns:
            The points with `before <= t < horizon`, or None if there are none.
        """
        pool = _Pool.of(changes, self.deltas, self.deltas.due(before, horizon))
        due = np.flatnonzero(pool.times < horizon)
        order = due[order_by(pool.codes.codes[pool.rows[due]], pool.times[due], len(pool.codes))]
        row_codes = pool.codes.codes[pool.rows]
        first, ints, floats = net_points(order, row_codes, pool.times, pool.ints, pool.floats)
        points = None
        if len(first):
            points = self._points(pool, row_codes[first], pool.times[first], ints, floats, horizon)
        self._store_waiting(pool, horizon)
        self.deltas.expire(horizon)
        self.bases.expire(horizon)
        return points

    def _points(
        self,
        pool: _Pool,
        point_codes: Int64Array,
        times: Int64Array,
        ints: Int64Array,
        floats: Float64Array,
        horizon: int,
    ) -> Points:
        touched = point_codes[np.flatnonzero(np.diff(point_codes, prepend=-1))]
        rank = np.full(len(pool.codes), -1, dtype=np.int64)
        rank[touched] = np.arange(len(touched))
        representatives = pool.codes.first[touched]
        keys = [column.take(pa.array(representatives)) for column in pool.keys]
        hashes = pool.hashes[representatives]
        base_ints, base_floats, covered = self._bases(hashes, keys)
        codes = rank[point_codes]
        total_ints, total_floats = running_sums(codes, ints, floats, base_ints, base_floats)
        until = np.minimum(self.deltas.next_times(hashes, keys, horizon), pool.next_times(touched, horizon))
        last = np.flatnonzero(np.diff(codes, append=len(touched)))
        # A key whose rows all were taken back before they counted has never been there.
        fresh = np.flatnonzero(np.diff(codes, prepend=-1))
        begun = (covered != BEGINNING) | (np.maximum.reduceat(total_ints[:, 0], fresh) > 0)
        emitted = np.where(begun, until, BEGINNING)
        self._store_bases(hashes, keys, total_ints[last], total_floats[last], emitted)
        element_keys = rank[pool.codes.codes[: pool.elements]]
        return Points(
            keys, hashes, element_keys, codes, times, total_ints, total_floats,
            base_ints, base_floats, covered, until,
        )  # fmt: skip

    def _bases(self, hashes: Int64Array, keys: list[pa.Array]) -> tuple[Int64Array, Float64Array, Int64Array]:
        layout = self.bases.layout
        ints = np.zeros((len(hashes), len(layout.ints)), dtype=np.int64)
        floats = np.zeros((len(hashes), len(layout.floats)), dtype=np.float64)
        covered = np.full(len(hashes), BEGINNING, dtype=np.int64)
        places, rows = self.bases.gather(hashes, keys)
        if rows is not None:
            # Rows come oldest run first, so that the newest row of a key is the one that stays.
            ints[places] = matrix(rows, layout.ints, np.int64)
            floats[places] = matrix(rows, layout.floats, np.float64)
            covered[places] = integers(rows.column(_UNTIL))
        return ints, floats, covered

    def _store_bases(
        self,
        hashes: Int64Array,
        keys: list[pa.Array],
        ints: Int64Array,
        floats: Float64Array,
        until: Int64Array,
    ) -> None:
        zeros = pa.array(np.zeros(len(hashes), dtype=np.int64))
        columns = {HASH: pa.array(hashes), TIME: zeros, _UNTIL: pa.array(until)}
        self.bases.insert(columns | _sums(self.bases.layout, keys, ints, floats))

    def _store_waiting(self, pool: _Pool, horizon: int) -> None:
        waiting = np.flatnonzero(pool.times >= horizon)
        codes = pool.codes.codes[pool.rows]
        order = waiting[order_by(codes[waiting], pool.times[waiting], len(pool.codes))]
        first, ints, floats = net_points(order, codes, pool.times, pool.ints, pool.floats)
        rows = pool.rows[first]
        keys = [column.take(pa.array(rows)) for column in pool.keys]
        columns = {HASH: pa.array(pool.hashes[rows]), TIME: pa.array(pool.times[first])}
        self.deltas.insert(columns | _sums(self.deltas.layout, keys, ints, floats))


@dataclass(frozen=True, eq=False)
class _Pool:
    """Everything one step looks at: the endpoints of new elements, and the stored deltas that are due.

    `keys`, `hashes` and `codes` are per pooled row (elements first, then stored deltas); `rows`, `times`,
    `ints` and `floats` are per endpoint.
    """

    elements: int
    keys: list[pa.Array]
    hashes: Int64Array
    codes: Codes
    rows: Int64Array
    times: Int64Array
    ints: Int64Array
    floats: Float64Array

    @classmethod
    def of(cls, changes: Changes, area: SweepArea, due: pa.RecordBatch | None) -> _Pool:
        """Pool new elements with due deltas."""
        count = len(changes.ts)
        ends = np.flatnonzero(changes.te != INFINITY)
        keys, hashes = changes.keys, hash_rows(changes.keys, count)
        rows = [np.arange(count), ends]
        times = [changes.ts, changes.te[ends]]
        ints = [changes.ints, -changes.ints[ends]]
        floats = [changes.floats, -changes.floats[ends]]
        if due is not None:
            stored = [due.column(name) for name in area.layout.keys]
            keys = [pa.concat_arrays(pair) for pair in zip(keys, stored, strict=True)]
            hashes = np.concatenate([hashes, integers(due.column(HASH))])
            rows.append(np.arange(count, count + due.num_rows))
            times.append(integers(due.column(TIME)))
            ints.append(matrix(due, area.layout.ints, np.int64))
            floats.append(matrix(due, area.layout.floats, np.float64))
        codes = encode_keys(keys, hashes)
        return cls(
            count, keys, hashes, codes, np.concatenate(rows), np.concatenate(times),
            np.concatenate(ints), np.concatenate(floats),
        )  # fmt: skip

    def next_times(self, codes: Int64Array, horizon: int) -> Int64Array:
        """For some keys the first endpoint at or above the horizon, INFINITY where there is none."""
        later = np.flatnonzero(self.times >= horizon)
        smallest = smallest_per_code(self.codes.codes[self.rows[later]], self.times[later], len(self.codes))
        return smallest[codes]


def _sums(
    layout: Layout, keys: list[pa.Array], ints: Int64Array, floats: Float64Array
) -> dict[str, pa.Array]:
    columns = dict(zip(layout.keys, keys, strict=True))
    columns |= {name: pa.array(ints[:, place]) for place, name in enumerate(layout.ints)}
    return columns | {name: pa.array(floats[:, place]) for place, name in enumerate(layout.floats)}
