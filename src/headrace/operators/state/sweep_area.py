"""The sweep area: where an operator keeps elements, deltas or bases until the heartbeat has passed them.

PIPES' abstract data type (thesis, section 11.2) and STREAM's synopsis, on immutable runs: inserting appends a
run, probing binary-searches every run, expiry reads the endpoint index, and runs are merged in tiers.
Merging nets: rows that are equal up to their sums become one, and what is dead is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, concat_rows, integers
from headrace.kernels.instants.timeline import count_before, net_points, smallest_per_code
from headrace.kernels.rows.joins import match_hashes, sorted_ranges
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import encode_keys, equal_rows, hash_rows, order_by
from headrace.operators.state.marks import spread
from headrace.operators.state.runs import (
    END,
    HASH,
    ORDER,
    TIER,
    TIME,
    SortedRun,
    is_tier_full,
    new_run,
    unindexed,
)
from headrace.operators.state.sum_columns import sum_arrays, sums_of
from headrace.time import BEGINNING, INFINITY

_MANY: Final = 8
"""An eighth of the rows of an area are many, if all of them are written again for these to go."""


class Netting(Enum):
    """What merging does with the rows of a key."""

    EXPIRE = "expire"
    """Rows of one time are added up; a row that expired before the heartbeat is dead.

    Elements, which have an end among `same`, are trimmed to the heartbeat, so that what came open-ended and
    was taken back later cancels, and are dropped at zero.
    """
    ACCUMULATE = "accumulate"
    """Rows below the heartbeat still count: they are trimmed to BEGINNING, added up, and dropped at zero."""
    REPLACE = "replace"
    """The newest row of a key is the only one that counts; it is dropped when its first sum is zero."""
    LATEST = "latest"
    """The rows of a key are numbered, and only those with its largest numbers count."""


@dataclass(frozen=True)
class Layout:
    """What the rows of an area mean.

    Attributes:
        keys: the columns that identify a key; their hash is `__hash`.
        same: further columns that must be equal for two rows of one time to be netted.
        ints: the columns that are added up, besides limbs.
        netting: what merging does with the rows of a key.
        latest: for `Netting.LATEST`, so many numbers count; the first column of `ints` is the number, and a
            second one a number up to which the rows of the key do not count any more.
        live: for `Netting.LATEST`, the BOOLEAN column of which a row that counts must have TRUE: others only
            hide the rows of their key in older runs. Without it all rows count.
    """

    keys: tuple[str, ...]
    same: tuple[str, ...] = ()
    ints: tuple[str, ...] = ()
    netting: Netting = Netting.EXPIRE
    latest: int = 0
    live: str | None = None


class SweepArea:
    """The rows of one bucket of one operator input, as runs from the oldest to the newest.

    Args:
        layout: what the rows mean.
        runs: the runs of the last commit.
    """

    def __init__(self, layout: Layout, runs: Iterable[SortedRun] = ()) -> None:
        self.layout = layout
        self.runs = list(runs)
        self._heartbeat = BEGINNING

    def __len__(self) -> int:
        return sum(run.rows for run in self.runs)

    @property
    def _holds_elements(self) -> bool:
        return END in self.layout.same

    def insert(self, columns: dict[str, pa.Array]) -> None:
        """Append rows, given as `__hash`, `__t`, keys and the rest, in any order."""
        if len(columns[HASH]):
            self.runs.append(self._new_run(columns))

    def due(self, start: int, end: int) -> pa.RecordBatch | None:
        """The rows that expire in [start, end), by run and expiry; None if there are none."""
        found = []
        for run in self.runs:
            if run.first >= end and run.reach == 0:
                continue
            low = count_before(run.expiries, run.order, start)
            high = count_before(run.expiries, run.order, end)
            if high > low:
                found.append(run.take(run.order[low:high]))
        return concat_rows(found) if found else None

    def gather(self, hashes: Int64Array, keys: list[pa.Array]) -> tuple[Int64Array, pa.RecordBatch | None]:
        """All rows of those keys, oldest run first.

        Args:
            hashes: int64[k], the keys' hashes, in any order.
            keys: the key columns, k rows.

        Returns:
            For each row found the position of its key (int64[rows]), and the rows, or None.
        """
        probes, found = [], []
        by_hash = stable_order(hashes)
        for run in self.runs:
            sorted_places, rows = match_hashes(hashes[by_hash], run.hashes)
            places = by_hash[sorted_places]
            taken = run.take(rows)
            columns = [taken.column(name) for name in self.layout.keys]
            same = np.flatnonzero(equal_rows(keys, places, columns, np.arange(len(rows))))
            if len(same):
                probes.append(places[same])
                found.append(taken if len(same) == len(rows) else taken.take(pa.array(same)))
        if not found:
            return np.empty(0, dtype=np.int64), None
        return np.concatenate(probes), concat_rows(found)

    def between(
        self, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, pa.RecordBatch | None]:
        """The rows of keys that take effect from an instant to before another one, oldest run first.

        What takes effect later is not looked at, however much of it there is.

        Args:
            hashes: int64[k], the keys' hashes, in any order; one may be there more than once.
            keys: the key columns, k rows.
            starts, ends: int64[k].

        Returns:
            For each row found the position of its key (int64[rows]), and the rows, or None.
        """
        parts = [self._ranges(run, hashes, keys, starts, ends) for run in self.runs]
        found = [rows for _, rows in parts if rows.num_rows]
        if not found:
            return np.empty(0, dtype=np.int64), None
        return np.concatenate([places for places, _ in parts]), concat_rows(found)

    def overlapping(
        self, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, pa.RecordBatch | None]:
        """The elements of keys that are valid somewhere in an interval, oldest run first.

        Args:
            hashes, keys, starts, ends: as of `between`.

        Returns:
            For each element found the position of its key (int64[rows]), and the elements, or None.
        """
        positions, found = [], []
        for run in self.runs:
            # What begins earlier has ended by then.
            first = np.where(starts < BEGINNING + run.reach, BEGINNING, starts - run.reach + 1)
            since = first if run.reach < INFINITY else np.full(len(starts), BEGINNING)
            places, rows = self._ranges(run, hashes, keys, since, ends)
            valid = np.flatnonzero(integers(rows.column(END)) > starts[places])
            if len(valid):
                positions.append(places[valid])
                found.append(rows.take(pa.array(valid)))
        return (
            (np.concatenate(positions), concat_rows(found)) if found else (np.empty(0, dtype=np.int64), None)
        )

    def _ranges(
        self, run: SortedRun, hashes: Int64Array, keys: list[pa.Array], starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, pa.RecordBatch]:
        """The rows of a run that are of keys and take effect in intervals, with the keys' positions."""
        lows, highs = sorted_ranges(run.hashes, run.times, hashes, starts, np.maximum(starts, ends))
        places, rows = spread(lows, highs)
        found = run.take(rows)
        columns = [found.column(name) for name in self.layout.keys]
        same = np.flatnonzero(equal_rows(keys, places, columns, np.arange(len(rows))))
        return (places, found) if len(same) == len(rows) else (places[same], found.take(pa.array(same)))

    def expire(self, heartbeat: int, dead: int = 0) -> None:
        """Forget what the heartbeat has passed, and merge runs where it pays.

        A run that is dead goes; one that is more than half dead is written again; the newest `TIER`
        runs are merged where they are alike in size.

        Args:
            heartbeat: the heartbeat (instant).
            dead: so many more rows do not count any more than have come since the last time: where these are
                many of all, all runs are merged. With `Netting.LATEST`.
        """
        self._heartbeat = heartbeat
        if self.layout.netting is not Netting.EXPIRE:
            if len(self.runs) > 1 and dead * _MANY > len(self):
                self.runs = [self._merge(self.runs, heartbeat)]
            self._merge_when_grown(heartbeat)
            return
        alive = [run for run in self.runs if run.last >= heartbeat]
        self.runs = [self._without_dead(run, heartbeat) for run in alive]
        self._merge_full_tiers(heartbeat)

    def forget(self, gone: Callable[[SortedRun], BoolArray]) -> None:
        """Let go of elements that nobody asks for any more, run by run where these are many.

        Args:
            gone: says of a run which of its rows those are.
        """
        kept = []
        for run in self.runs:
            left_out = gone(run)
            if _MANY * np.count_nonzero(left_out) <= run.rows:
                kept.append(run)
            elif not left_out.all():
                rows = run.batch.filter(pa.array(~left_out)).drop_columns([ORDER])
                kept.append(self._new_run(dict(zip(rows.schema.names, rows.columns, strict=True))))
        self.runs = kept

    def content(self) -> pa.RecordBatch | None:
        """What it holds, netted, without what the heartbeat has passed; None if that is nothing."""
        return unindexed(self._merge(self.runs, self._heartbeat).batch) if self.runs else None

    def _without_dead(self, run: SortedRun, heartbeat: int) -> SortedRun:
        if run.first >= heartbeat:
            return run
        dead = count_before(run.expiries, run.order, heartbeat)
        if 2 * dead <= run.rows:
            return run
        return self._merge([run], heartbeat)

    def _merge_when_grown(self, heartbeat: int) -> None:
        if len(self.runs) > 1 and sum(run.rows for run in self.runs[1:]) >= self.runs[0].rows:
            self.runs = [self._merge(self.runs, heartbeat)]
        self._merge_full_tiers(heartbeat)

    def _merge_full_tiers(self, heartbeat: int) -> None:
        self.runs = [run for run in self.runs if run.rows]
        while is_tier_full(self.runs):
            merged = self._merge(self.runs[-TIER:], heartbeat)
            self.runs[-TIER:] = [merged] if merged.rows else []

    def _merge(self, runs: list[SortedRun], heartbeat: int) -> SortedRun:
        """The netted rows of some adjacent runs as one run, which may be empty."""
        rows = concat_rows([run.batch for run in runs])
        if ORDER in rows.schema.names:
            rows = rows.drop_columns([ORDER])
        match self.layout.netting:
            case Netting.REPLACE:
                columns = self._newest(rows, drop_empty=runs[0] is self.runs[0])
            case Netting.LATEST:
                columns = self._latest(rows, drop_dead=runs[0] is self.runs[0])
            case Netting.ACCUMULATE:
                times = integers(rows.column(TIME))
                columns = self._netted(rows, np.where(times < heartbeat, BEGINNING, times))
            case Netting.EXPIRE:
                expiries = np.concatenate([run.expiries for run in runs])
                rows = rows.take(pa.array(np.flatnonzero(expiries >= heartbeat)))
                times = integers(rows.column(TIME))
                if self._holds_elements:
                    # The last instant below the heartbeat stays: its answer may have to be taken back.
                    times = np.maximum(times, max(heartbeat - 1, BEGINNING))
                columns = self._netted(rows, times)
        return self._new_run(columns)

    def _new_run(self, columns: dict[str, pa.Array]) -> SortedRun:
        return new_run(columns, indexed=self.layout.netting is Netting.EXPIRE)

    def _newest(self, rows: pa.RecordBatch, drop_empty: bool) -> dict[str, pa.Array]:
        """The last row of each key; a key whose first sum is zero needs no row where none lies below."""
        codes = encode_keys([rows.column(name) for name in self.layout.keys], integers(rows.column(HASH)))
        last = np.zeros(len(codes), dtype=np.int64)
        last[codes.codes] = np.arange(rows.num_rows)
        if drop_empty:
            last = last[integers(rows.column(self.layout.ints[0]))[last] != 0]
        newest = rows.take(pa.array(last))
        return dict(zip(newest.schema.names, newest.columns, strict=True))

    def _latest(self, rows: pa.RecordBatch, drop_dead: bool) -> dict[str, pa.Array]:
        """The rows of each key with its largest numbers, as many as count; dead ones only above others."""
        codes = encode_keys([rows.column(name) for name in self.layout.keys], integers(rows.column(HASH)))
        numbers = integers(rows.column(self.layout.ints[0]))
        last = -smallest_per_code(codes.codes, -numbers, len(codes))
        before = last - self.layout.latest
        for name in self.layout.ints[1:]:
            gone = -smallest_per_code(codes.codes, -integers(rows.column(name)), len(codes))
            before = np.maximum(before, gone)
        rows = rows.take(pa.array(np.flatnonzero(numbers > before[codes.codes])))
        if drop_dead and self.layout.live is not None:
            rows = rows.filter(rows.column(self.layout.live))
        return dict(zip(rows.schema.names, rows.columns, strict=True))

    def _netted(self, rows: pa.RecordBatch, times: Int64Array) -> dict[str, pa.Array]:
        layout = self.layout
        identity = [rows.column(name) for name in (*layout.keys, *layout.same)]
        hashes = hash_rows(identity, len(times)) if layout.same else integers(rows.column(HASH))
        codes = encode_keys(identity, hashes)
        order = order_by(codes.codes, times, len(codes))
        sums = sums_of(rows, layout.ints)
        first, netted = net_points(order, codes.codes, times, sums.values)
        kept = np.arange(len(first))
        if layout.netting is Netting.ACCUMULATE or self._holds_elements:
            kept = np.flatnonzero((netted != 0).any(axis=1))
        others = rows.drop_columns([*sums.limbs]).take(pa.array(first[kept]))
        columns = dict(zip(others.schema.names, others.columns, strict=True))
        columns[TIME] = pa.array(times[first[kept]])
        return columns | sum_arrays(layout.ints, sums.limbs, netted[kept].T)
