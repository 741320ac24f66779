"""The schedule: changes to come, kept in order of time until the horizon passes them.

The other half of the sweep area (PIPES' secondary structure) as a structure of its own. Its runs are sorted
by time, so that what is due is a slice; an index of rows by (key hash, time) finds a key's next change.

Columns: `__hash` int64, the keys, `__t` int64, the sums, and `__order` int32, the rows by (hash, time). Runs
that are not short have marks (`headrace.operators.state.marks`), unless two of their keys have one hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.elements import Int64Array, concat_rows, concat_stored, integers
from headrace.kernels.instants.schedule import index_schedule, key_ranges, net_schedule, next_rows
from headrace.kernels.instants.timeline import add_by_code
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import Codes, encode_keys, equal_rows, ranks
from headrace.operators.state.marks import STRIDE, is_marked, marked, range_sums, spread, with_marks
from headrace.operators.state.runs import HASH, ORDER, TIER, TIME, Area, SortedRun, is_tier_full, unindexed
from headrace.operators.state.sum_columns import SumColumns, all_limbs, concat_sums, sum_arrays, sums_of
from headrace.operators.state.sweep_area import Layout
from headrace.time import BEGINNING, INFINITY

Endpoints: TypeAlias = tuple[Int64Array, Int64Array, SumColumns]
"""Changes: for each the row that it belongs to, its time (int64[n] each), and its sums."""


class Deltas(Protocol):
    """Keeps the changes that are to come of a timeline's keys."""

    layout: Layout

    @property
    def areas(self) -> dict[str, Area]:
        """Where they are, by name."""
        ...

    def wait(
        self, keys: list[pa.Array], hashes: Int64Array, codes: Codes, starts: Endpoints, ends: Endpoints
    ) -> None:
        """Add the starts and the ends of elements that are rows of the keys."""
        ...

    def due(self, start: int, end: int) -> pa.RecordBatch | None:
        """The changes of [start, end); None without any."""
        ...

    def next_times(self, hashes: Int64Array, keys: list[pa.Array], bound: int) -> Int64Array:
        """For each key the smallest time not below the bound, INFINITY where there is none; int64[k]."""
        ...

    def expire(self, horizon: int) -> None:
        """Forget what the horizon has passed."""
        ...


class Schedule:
    """Keyed changes by the time at which they take effect.

    Args:
        layout: the names of its columns.
        runs: the runs of the last commit, from the oldest to the newest.
    """

    def __init__(self, layout: Layout, runs: Iterable[SortedRun] = ()) -> None:
        self.layout = layout
        self.runs = list(runs)
        self._horizon = BEGINNING

    def __len__(self) -> int:
        return sum(run.rows for run in self.runs)

    @property
    def areas(self) -> dict[str, Area]:
        """The schedule alone."""
        return {"deltas": self}

    def wait(
        self, keys: list[pa.Array], hashes: Int64Array, codes: Codes, starts: Endpoints, ends: Endpoints
    ) -> None:
        """Add the starts and the ends of elements that are rows of the keys."""
        (first, begin, added), (last, end, taken) = starts, ends
        rows, times = np.concatenate([first, last]), np.concatenate([begin, end])
        self.insert(keys, hashes, codes, (rows, times, concat_sums([added, taken])))

    def insert(self, keys: list[pa.Array], hashes: Int64Array, codes: Codes, changes: Endpoints) -> None:
        """Add changes; those of one key at one time are added up.

        Args:
            keys, hashes, codes: of the rows that changes belong to.
            changes: for each change its row, its time (int64[n]), and its sums.
        """
        rows, times, sums = changes
        if len(rows):
            self.runs.append(self._made(keys, hashes, codes, rows, (codes.codes[rows], times, sums)))

    def _made(
        self,
        keys: list[pa.Array],
        hashes: Int64Array,
        codes: Codes,
        rows: Int64Array | None,
        changes: Endpoints,
    ) -> SortedRun:
        """A run of changes; those of one key at one time are added up.

        Args:
            keys, hashes, codes: of the rows that changes belong to.
            rows: int64[n], the row of each change; None if each has its own, in order.
            changes: for each the code of its key, its time (int64[n] each), and its sums.
        """
        owners, times, sums = changes
        by_time = stable_order(times)
        count, first, owners, netted = net_schedule(by_time, owners, times, sums.values, len(codes))
        first, owners = first[:count], owners[:count]
        netted = netted if count == len(times) else np.ascontiguousarray(netted[:, :count])
        rank, distinct = ranks(hashes[codes.first])
        order, marks = index_schedule(owners, rank, distinct, netted, STRIDE)
        places = first if rows is None else rows[first]
        columns = {HASH: pa.array(hashes[places]), TIME: pa.array(times[first])}
        kept = pa.array(places)
        columns |= {name: key.take(kept) for name, key in zip(self.layout.keys, keys, strict=True)}
        columns |= sum_arrays(self.layout.ints, sums.limbs, netted)
        batch = pa.RecordBatch.from_pydict(columns | {ORDER: pa.array(order)})
        if count > STRIDE and distinct == len(rank):
            names = (*self.layout.ints, *sums.limbs)
            held = [place for place, name in enumerate(names) if name in columns]
            batch = with_marks(batch, marks if len(held) == len(names) else marks[:, held])
        return _run(batch)

    def due(self, start: int, end: int) -> pa.RecordBatch | None:
        """The changes of [start, end), by run and time; None if there are none."""
        found = []
        for run in self.runs:
            if run.last < start or run.first >= end:
                continue
            low, high = np.searchsorted(run.times, (start, end))
            if high > low:
                found.append(run.slice(int(low), int(high - low)))
        return concat_rows(found) if found else None

    def next_times(self, hashes: Int64Array, keys: list[pa.Array], bound: int) -> Int64Array:
        """For each key the smallest time not below the bound, INFINITY where there is none; int64[k]."""
        result = np.full(len(hashes), INFINITY, dtype=np.int64)
        for run in self.runs:
            if run.last < bound:
                continue
            rows = next_rows(*_index(run), hashes, bound)
            hit = np.flatnonzero(rows >= 0)
            found_keys = run.take(rows[hit], self.layout.keys).columns
            same = equal_rows(keys, hit, found_keys, np.arange(len(hit)))
            good = hit[same]
            result[good] = np.minimum(result[good], run.times[rows[good]])
            for probe in hit[~same].tolist():
                found = self._next_among_collisions(run, hashes[probe], keys, probe, bound)
                result[probe] = min(result[probe], found)
        return result

    def count(self, start: int, end: int) -> int:
        """How many changes there are in [start, end)."""
        found = 0
        for run in self.runs:
            if run.last >= start and run.first < end:
                low, high = np.searchsorted(run.times, (start, end))
                found += int(high - low)
        return found

    def sums_between(
        self, hashes: Int64Array, keys: list[pa.Array], start: int, ends: Int64Array
    ) -> SumColumns:
        """What a key's changes from an instant on, and below another one, add up to.

        Args:
            hashes, keys: of k keys, in any order, also of one more than once.
            start: the first instant; ends: int64[k].
        """
        starts = np.full(len(ends), start, dtype=np.int64)
        empty = SumColumns(np.zeros((len(ends), len(self.layout.ints)), dtype=np.int64))
        parts = [empty]
        for run, probes, lows, highs in self._ranges(hashes, keys, starts, ends):
            if is_marked(run):
                found = range_sums(run, self.layout.ints, lows, highs)
            else:
                places, rows = self._rows_of(run, keys, probes, lows, highs)
                sums = sums_of(run.take(rows), self.layout.ints)
                found = SumColumns(add_by_code(places, sums.values, len(probes)), sums.limbs)
            part = np.zeros((len(ends), found.values.shape[1]), dtype=np.int64)
            part[probes] = found.values
            parts.append(SumColumns(part, found.limbs))
        limbs = all_limbs(parts)
        return SumColumns(np.sum([part.with_limbs(limbs).values for part in parts], axis=0), limbs)

    def between(
        self, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, pa.RecordBatch | None]:
        """Changes of keys, from an instant on, and below another one.

        Args:
            hashes, keys: of k keys, in any order, also of one more than once.
            starts, ends: int64[k] each.

        Returns:
            For each change found the position of its key (int64[n]), and the changes, or None.
        """
        positions, found = [], []
        for run, probes, lows, highs in self._ranges(hashes, keys, starts, ends):
            places, rows = self._rows_of(run, keys, probes, lows, highs)
            positions.append(probes[places])
            found.append(run.take(rows))
        if not found:
            return np.empty(0, dtype=np.int64), None
        return np.concatenate(positions), concat_rows(found)

    def _ranges(
        self, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> Iterator[tuple[SortedRun, Int64Array, Int64Array, Int64Array]]:
        """For each run the keys that may have changes there, and their ranges of its index."""
        for run in self.runs:
            near = np.flatnonzero((ends > run.first) & (starts <= run.last) & (starts < ends))
            if not len(near):
                continue
            lows, highs = key_ranges(*_index(run), hashes[near], starts[near], ends[near])
            hit = np.flatnonzero(lows < highs)
            if is_marked(run):
                found = run.take(run.order[lows[hit]], self.layout.keys).columns
                hit = hit[equal_rows(keys, near[hit], found, np.arange(len(hit)))]
            if len(hit):
                yield run, near[hit], lows[hit], highs[hit]

    def _rows_of(
        self, run: SortedRun, keys: list[pa.Array], probes: Int64Array, lows: Int64Array, highs: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """The rows of ranges that have the ranges' keys, each with the number of its range."""
        places, found = spread(lows, highs)
        rows = run.order[found].astype(np.int64)
        if not is_marked(run):
            columns = run.take(rows, self.layout.keys).columns
            same = equal_rows(keys, probes[places], columns, np.arange(len(rows)))
            places, rows = places[same], rows[same]
        return places, rows

    def expire(self, horizon: int) -> None:
        """Forget what the horizon has passed.

        A run that is dead goes; one that is more than half dead is cut; the newest `TIER` runs are merged
        where they are alike in size.
        """
        self._horizon = horizon
        self.runs = [self._cut(run, horizon) for run in self.runs if run.last >= horizon]
        while is_tier_full(self.runs):
            merged = self.runs[-TIER:]
            del self.runs[-TIER:]
            self._insert_rows(concat_stored([_left(run, horizon) for run in merged]))

    def content(self) -> pa.RecordBatch | None:
        """The changes from the horizon on, those of one key and time added up; None without any."""
        rows = self.due(self._horizon, INFINITY)
        if rows is None:
            return None
        whole = Schedule(self.layout)
        whole._insert_rows(rows)
        return unindexed(whole.runs[0].batch)

    def _insert_rows(self, rows: pa.RecordBatch) -> None:
        keys, hashes = [rows.column(name) for name in self.layout.keys], integers(rows.column(HASH))
        codes = encode_keys(keys, hashes)
        changes = codes.codes, integers(rows.column(TIME)), sums_of(rows, self.layout.ints)
        self.runs.append(self._made(keys, hashes, codes, None, changes))

    def _next_among_collisions(
        self, run: SortedRun, wanted: int, keys: list[pa.Array], probe: int, bound: int
    ) -> int:
        rows = np.flatnonzero((run.hashes == wanted) & (run.times >= bound))
        same = equal_rows(keys, np.full(len(rows), probe), run.columns(self.layout.keys), rows)
        times = run.times[rows[same]]
        return int(times.min()) if len(times) else INFINITY

    def _cut(self, run: SortedRun, horizon: int) -> SortedRun:
        """The run without what lies below the horizon, if that is more than half of it."""
        dead = _dead(run, horizon)
        if 2 * dead <= run.rows:
            return run
        rows = run.slice(dead, run.rows - dead)
        columns = {name: rows.column(name) for name in rows.schema.names if name != ORDER}
        order = run.order[run.order >= dead] - np.int32(dead)
        rows = pa.RecordBatch.from_pydict(columns | {ORDER: pa.array(order)})
        return _run(marked(rows, self.layout.ints, order) if is_marked(run) else rows)


def _dead(run: SortedRun, horizon: int) -> int:
    """How many rows of a run lie below the horizon."""
    return int(np.searchsorted(run.times, horizon)) if run.first < horizon else 0


def _left(run: SortedRun, horizon: int) -> pa.RecordBatch:
    """What a run holds from the horizon on, as it is stored, without the index."""
    dead = _dead(run, horizon)
    return run.stored.select([name for name in run.names if name != ORDER]).slice(dead)


def _run(rows: pa.RecordBatch) -> SortedRun:
    """A run of rows in order of time, with their index."""
    times = integers(rows.column(TIME))
    return SortedRun(None, lambda: rows, rows.num_rows, (int(times[0]), int(times[-1]), 0))


def _index(run: SortedRun) -> tuple[Int64Array, Int64Array, npt.NDArray[np.int32], Int64Array]:
    """What keys are looked up by: hashes, times, the order by both, and the hashes of some rows in it."""
    return run.hashes, run.times, run.order, run.tops
