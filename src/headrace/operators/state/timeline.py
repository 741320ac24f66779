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

from headrace.elements import BoolArray, Int64Array, concat_rows, integers
from headrace.kernels.instants.timeline import running_points, touched_codes
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import Codes, encode_keys, hash_rows
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.schedule import Deltas, Endpoints, Schedule
from headrace.operators.state.sum_columns import (
    SumColumns,
    all_limbs,
    concat_sums,
    is_idle,
    sum_arrays,
    sums_of,
)
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.time import BEGINNING, INFINITY

_UNTIL = "__until"


@dataclass(frozen=True, eq=False)
class TimelineInput:
    """What enters a timeline: elements with what each adds to its key's sums.

    Attributes:
        keys: normalised key columns, n rows.
        ts, te: int64[n].
        sums: n rows, column 0 the row count.
    """

    keys: list[pa.Array]
    ts: Int64Array
    te: Int64Array
    sums: SumColumns


def append_changes(first: TimelineInput, more: TimelineInput) -> TimelineInput:
    """The elements of both, in order."""
    if len(more.ts) == 0:
        return first
    keys = [pa.concat_arrays(pair) for pair in zip(first.keys, more.keys, strict=True)]
    ts, te = np.concatenate([first.ts, more.ts]), np.concatenate([first.te, more.te])
    return TimelineInput(keys, ts, te, concat_sums([first.sums, more.sums]))


@dataclass(frozen=True, eq=False)
class Points:
    """The instants at which the sums of the touched keys changed, in order of time.

    Attributes:
        keys: the key columns of the k touched keys, and hashes: their hashes (int64[k]).
            In a settled timeline keys that are live are touched, and may have no point.
        element_keys: int64[n], the touched key of each element that entered, -1 if it only waits.
        codes, times: int64[m], the key and the instant of each point.
        previous: int64[m], the point before of the same key, or -1.
        sums: the sums from each point on, then those before the first point of each key, m + k rows.
        covered: int64[k], up to where the segment that was open before has been emitted; BEGINNING for a key
            without a row.
        until: int64[k], the next known endpoint after the last point, or INFINITY, and in a settled timeline
            the horizon; for keys of which a row is left.
    """

    keys: list[pa.Array]
    hashes: Int64Array
    element_keys: Int64Array
    codes: Int64Array
    times: Int64Array
    previous: Int64Array
    sums: SumColumns
    covered: Int64Array
    until: Int64Array

    @property
    def counts(self) -> Int64Array:
        """int64[m + k], how many rows there are: from each point on, then before each key's first point."""
        return self.sums.values[:, 0]


class Timeline:
    """Bases and deltas of one bucket.

    Args:
        keys: the names of the key columns in state.
        width: how many columns the sums have without limbs.
        endless: whether no element ends, so that what is emitted of a key holds until more is known.
        settled: whether no key is spoken of from the horizon on, and each live one up to it.
        deltas: keeps what is to come; a schedule if None.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        width: int,
        endless: bool = False,
        settled: bool = False,
        deltas: Deltas | None = None,
    ) -> None:
        self._endless = endless
        ints = tuple(f"__i{place}" for place in range(width))
        self._settled = settled
        self.deltas = Schedule(Layout(keys, ints=ints)) if deltas is None else deltas
        self.bases = SweepArea(Layout(keys, ints=ints, netting=Netting.REPLACE))

    @property
    def areas(self) -> dict[str, Area]:
        """What is to come, and the bases."""
        return {**self.deltas.areas, "bases": self.bases}

    def step(self, changes: TimelineInput, before: int, horizon: int) -> Points | None:
        """Take in elements and move the horizon.

        Args:
            changes: elements with `ts >= before`.
            before, horizon: the old and the new horizon (instants).

        Returns:
            The points with `before <= t < horizon`, or None if there are none.
        """
        live = self._live() if self._settled and horizon > before else None
        pool = _Pool.of(changes, self.deltas, self.deltas.due(before, horizon), live)
        self.deltas.wait(pool.keys, pool.hashes, pool.codes, *pool.waiting(horizon))
        rows, times = pool.due(horizon)
        points = self._points(pool, rows, times, horizon) if len(rows) or live is not None else None
        self.deltas.expire(horizon)
        self.bases.expire(horizon)
        return points

    def _live(self) -> pa.RecordBatch | None:
        """The bases of a settled timeline, which are those of all live keys; None without live keys."""
        found = [run.batch for run in self.bases.runs]
        return concat_rows(found) if found else None

    def _points(self, pool: _Pool, rows: Int64Array, times: Int64Array, horizon: int) -> Points:
        live = pool.codes.codes[pool.elements + len(pool.times) :]
        codes, touched, rank = touched_codes(rows, pool.codes.codes, live, len(pool.codes))
        representatives = pool.codes.first[touched]
        keys = [column.take(pa.array(representatives)) for column in pool.keys]
        hashes = pool.hashes[representatives]
        bases, covered = self.bases_of(hashes, keys)
        limbs = all_limbs([pool.sums, bases])
        entering, known = pool.sums.with_limbs(limbs).values, bases.with_limbs(limbs).values
        used = [not (is_idle(one) and is_idle(other)) for one, other in zip(entering.T, known.T, strict=True)]
        sums = np.zeros((entering.shape[1], len(rows) + len(touched)), dtype=np.int64)
        count, codes, times, previous, last = running_points(
            *(stable_order(times), codes, rows, times, entering, known, np.flatnonzero(used), sums)
        )
        codes, times, previous = codes[:count], times[:count], previous[:count]
        sums = sums[:, : count + len(touched)]
        last = np.where(last < 0, count + np.arange(len(touched)), last)
        present = sums[0, last] > 0
        until = np.full(len(touched), INFINITY, dtype=np.int64)
        if self._settled:
            until[present] = horizon
        elif not self._endless:
            until[present] = self.deltas.next_times(hashes[present], _where(keys, present), horizon)
        stored = np.arange(len(touched))
        if self._settled:
            # All live keys are touched, so that these rows are all that is needed.
            self.bases.runs, stored = [], np.flatnonzero(present)
        latest = sum_arrays(self.bases.layout.ints, limbs, sums[:, last[stored]])
        self._store_bases(
            hashes[stored], [column.take(pa.array(stored)) for column in keys], latest, until[stored]
        )
        element_keys = rank[pool.codes.codes[: pool.elements]]
        return Points(
            keys, hashes, element_keys, codes, times, previous, SumColumns(sums.T, limbs), covered, until,
        )  # fmt: skip

    def held(self) -> Points | None:
        """The keys with a row at the horizon, and no point of theirs, where there are any."""
        rows = self.bases.content()
        if rows is None:
            return None
        none = np.empty(0, dtype=np.int64)
        keys, hashes = [rows.column(name) for name in self.bases.layout.keys], integers(rows.column(HASH))
        sums, covered = sums_of(rows, self.bases.layout.ints), integers(rows.column(_UNTIL))
        return Points(keys, hashes, none, none, none, none, sums, covered, covered)

    def bases_of(self, hashes: Int64Array, keys: list[pa.Array]) -> tuple[SumColumns, Int64Array]:
        """The sums of keys before the horizon, and up to where what they make has been emitted.

        Args:
            hashes, keys: of k keys.

        Returns:
            k rows, and int64[k], which is BEGINNING for a key without a row.
        """
        names = self.bases.layout.ints
        covered = np.full(len(hashes), BEGINNING, dtype=np.int64)
        places, rows = self.bases.gather(hashes, keys)
        if rows is None:
            return SumColumns(np.zeros((len(hashes), len(names)), dtype=np.int64)), covered
        found = sums_of(rows, names)
        sums = np.zeros((len(hashes), found.values.shape[1]), dtype=np.int64)
        # Rows come oldest run first, so that the newest row of a key is the one that stays.
        sums[places] = found.values
        covered[places] = integers(rows.column(_UNTIL))
        return SumColumns(sums, found.limbs), covered

    def _store_bases(
        self,
        hashes: Int64Array,
        keys: list[pa.Array],
        sums: dict[str, pa.Array],
        until: Int64Array,
    ) -> None:
        zeros = pa.array(np.zeros(len(hashes), dtype=np.int64))
        columns = {HASH: pa.array(hashes), TIME: zeros, _UNTIL: pa.array(until)}
        columns |= dict(zip(self.bases.layout.keys, keys, strict=True))
        self.bases.insert(columns | sums)


def _where(keys: list[pa.Array], mask: BoolArray) -> list[pa.Array]:
    return [column.filter(pa.array(mask)) for column in keys]


@dataclass(frozen=True, eq=False)
class _Pool:
    """Everything one step looks at: new elements, the stored deltas that are due, and perhaps live keys.

    `keys`, `hashes` and `codes` are per pooled row: elements first, then stored deltas, then live keys, which
    have no `sums`. `ts` and `te` are the elements' ends, `times` those of the deltas.
    """

    elements: int
    keys: list[pa.Array]
    hashes: Int64Array
    codes: Codes
    ts: Int64Array
    te: Int64Array
    times: Int64Array
    sums: SumColumns

    @classmethod
    def of(
        cls, changes: TimelineInput, schedule: Deltas, due: pa.RecordBatch | None, live: pa.RecordBatch | None
    ) -> _Pool:
        """Pool new elements with due deltas and with live keys."""
        count, layout = len(changes.ts), schedule.layout
        keys, hashes = changes.keys, hash_rows(changes.keys, count)
        times, sums = np.empty(0, dtype=np.int64), changes.sums
        for rows in (due, live):
            if rows is not None:
                stored = [rows.column(name) for name in layout.keys]
                keys = [pa.concat_arrays(pair) for pair in zip(keys, stored, strict=True)]
                hashes = np.concatenate([hashes, integers(rows.column(HASH))])
        if due is not None:
            times = integers(due.column(TIME))
            sums = concat_sums([sums, sums_of(due, layout.ints)])
        codes = encode_keys(keys, hashes)
        return cls(count, keys, hashes, codes, changes.ts, changes.te, times, sums)

    def due(self, horizon: int) -> tuple[Int64Array, Int64Array]:
        """The endpoints below the horizon: rows, -1 - row where an element ends, and times."""
        starts, ends = np.flatnonzero(self.ts < horizon), np.flatnonzero(self.te < horizon)
        stored = np.arange(self.elements, self.elements + len(self.times))
        rows = np.concatenate([starts, -1 - ends, stored])
        return rows, np.concatenate([self.ts[starts], self.te[ends], self.times])

    def waiting(self, horizon: int) -> tuple[Endpoints, Endpoints]:
        """The starts and the ends from the horizon on: rows, times, and what they add."""
        starts = np.flatnonzero(self.ts >= horizon)
        ends = np.flatnonzero((self.te >= horizon) & (self.te != INFINITY))
        values, limbs = self.sums.values, self.sums.limbs
        taken = values[ends]
        np.negative(taken, out=taken)
        return (
            (starts, self.ts[starts], SumColumns(values[starts], limbs)),
            (ends, self.te[ends], SumColumns(taken, limbs)),
        )
