"""Sums of keys as step functions of time, whose differences are the sums over frames.

A row (key, t, sums) says what had been added up for the key before t, back to its row before. Behind the last
instant of a key that a run knows there is one row more, with all that was added up by then. Rows are only
ever appended, later instants after earlier ones, so that the runs of an area follow each other in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import LIMB, BoolArray, Int64Array, concat_rows, integers, limbs_of, widened
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import encode_keys, equal_rows, order_by
from headrace.operators.state.runs import HASH, TIER, TIME, SortedRun, is_tier_full, unindexed
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of some keys.

    Attributes:
        times: when they are, ascending within a key.
        lows, highs: int64[k], where those of each key start and end.
        rows: the sums, a row for each step, as they are stored; a limb that is not there is 0.
    """

    times: Int64Array
    lows: Int64Array
    highs: Int64Array
    rows: pa.RecordBatch

    @property
    def limbs(self) -> tuple[str, ...]:
        """The names of the sums that are limbs."""
        return limbs_of(self.rows)

    def sums(self, names: tuple[str, ...], steps: Int64Array) -> Int64Array:
        """The sums of those names at some steps; int64[len(names), len(steps)]."""
        result = np.zeros((len(names), len(steps)), dtype=np.int64)
        known, places = set(self.rows.schema.names), pa.array(steps)
        for row, name in zip(result, names, strict=True):
            if name in known:
                row[:] = integers(widened(self.rows.select([name]).take(places)).column(0))
        return result


class StepArea:
    """The steps of one bucket, as runs from the oldest to the newest.

    Args:
        keys: the names of the key columns.
        ints: the columns that are added up, besides limbs; the first one counts rows.
        runs: the runs of the last commit.
    """

    def __init__(self, keys: tuple[str, ...], ints: tuple[str, ...]) -> None:
        self._keys, self._ints = keys, ints
        self.runs: list[SortedRun] = []
        self._instant = BEGINNING

    def __len__(self) -> int:
        return sum(run.rows for run in self.runs)

    def stored(self, hashes: Int64Array, keys: list[pa.Array]) -> list[Steps]:
        """The steps of those keys, older ones first.

        Args:
            hashes: int64[k], the keys' hashes.
            keys: the key columns, k rows.
        """
        found = []
        for run in self.runs:
            lows, highs = (np.searchsorted(run.hashes, hashes, side=side) for side in ("left", "right"))
            self._exclude_others(run, keys, lows, highs)
            if (lows < highs).any():
                found.append(Steps(run.times, lows, highs, self._sums(run.stored)))
        return found

    def _exclude_others(
        self, run: SortedRun, keys: list[pa.Array], lows: Int64Array, highs: Int64Array
    ) -> None:
        """Narrow what has a key's hash to what has the key. The rows of a key follow each other in a run."""
        present = np.flatnonzero(lows < highs)
        ends = np.concatenate([lows[present], highs[present] - 1])
        same = self._have_keys(run, ends, keys, np.tile(present, 2)).reshape(2, -1).all(axis=0)
        for key in present[~same]:
            alike = np.arange(lows[key], highs[key])
            mine = alike[self._have_keys(run, alike, keys, np.full(len(alike), key))]
            lows[key], highs[key] = (mine[0], mine[-1] + 1) if len(mine) else (0, 0)

    def _have_keys(
        self, run: SortedRun, rows: Int64Array, keys: list[pa.Array], places: Int64Array
    ) -> BoolArray:
        """Whether rows of a run have the keys at those places; bool[len(rows)]."""
        return equal_rows(keys, places, run.take(rows, self._keys).columns, np.arange(len(rows)))

    def _sums(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select([*self._ints, *limbs_of(batch)])

    def append(self, columns: dict[str, pa.Array]) -> None:
        """Append later steps: `__hash`, `__t`, keys and sums, sorted by hash, key and time."""
        if len(columns[HASH]):
            zero = [name for name in columns if name.startswith(LIMB) and not integers(columns[name]).any()]
            kept = {name: column for name, column in columns.items() if name not in zero}
            self.runs.append(_run(pa.RecordBatch.from_pydict(kept)))

    def expire(self, instant: int) -> None:
        """Forget the steps up to an instant; runs are merged as in a sweep area."""
        self._instant = instant
        self.runs = [run for run in self.runs if run.last > instant]
        while is_tier_full(self.runs):
            merged = self._merge(self.runs[-TIER:], instant)
            self.runs[-TIER:] = [merged] if merged.rows else []

    def content(self) -> pa.RecordBatch | None:
        """The steps that are left, with what was added up since the first one of their key; None without any.

        Only differences of sums are ever used, so that what was added up before makes no difference.
        """
        if not self.runs:
            return None
        rows = self._merge(self.runs, self._instant).batch
        names = (*self._ints, *limbs_of(rows))
        keys = [rows.column(name) for name in self._keys]
        codes = encode_keys(keys, integers(rows.column(HASH)))
        first = pa.array(codes.first[codes.codes])
        sums = {name: pc.subtract(rows.column(name), rows.column(name).take(first)) for name in names}
        others = {name: rows.column(name) for name in rows.schema.names if name not in sums}
        return unindexed(pa.RecordBatch.from_pydict(others | sums))

    def _merge(self, runs: list[SortedRun], instant: int) -> SortedRun:
        rows = concat_rows([run.batch for run in runs])
        rows = rows.take(pa.array(np.flatnonzero(integers(rows.column(TIME)) > instant)))
        hashes = integers(rows.column(HASH))
        codes = encode_keys([rows.column(name) for name in self._keys], hashes)
        by_hash = stable_order(hashes[codes.first])
        rank = np.empty_like(by_hash)
        rank[by_hash] = np.arange(len(by_hash))
        ranks = rank[codes.codes]
        order = order_by(ranks, integers(rows.column(TIME)), len(codes))
        # What was behind the last instant of a run is followed by a step of the next one with the same sums.
        counts, ranks = integers(rows.column(self._ints[0]))[order], ranks[order]
        followed = np.zeros(len(order), dtype=np.bool_)
        followed[:-1] = (np.diff(ranks) == 0) & (np.diff(counts) == 0)
        return _run(rows.take(pa.array(order[~followed])))


def _run(rows: pa.RecordBatch) -> SortedRun:
    times = integers(rows.column(TIME))
    span = (int(times.min()), int(times.max()), 0) if len(times) else (INFINITY, BEGINNING, 0)
    return SortedRun(None, lambda: rows, rows.num_rows, span)
