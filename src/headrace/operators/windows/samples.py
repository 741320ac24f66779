"""Samples of the values of groups in state: those that are or may come to be among the first by hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.expressions.aggregates.aggregates import effective_argument
from headrace.expressions.aggregates.within import sample_size
from headrace.expressions.tree import AggregateCall, Expression
from headrace.kernels.instants.timeline import smallest_per_code
from headrace.kernels.rows.sampling import SALT, folded
from headrace.kernels.values.inputs import CountChanges
from headrace.kernels.values.samples import Drawn, are_passed, may_enter, sample_changes
from headrace.operators.state.keys import hash_rows, normalise, order_by
from headrace.operators.state.runs import HASH, TIME
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.time import INFINITY

_NUMBER: Final = "__number"
_LIVE: Final = "__live"
_DRAW: Final = "__draw"
_VALUE: Final = "__value"
_NO_BAR: Final = 2**63 - 1
"""Above all hashes, which have 63 bits."""
_SLACK: Final = 32
"""So many rows, and half as many again as are needed, may be kept before a key is written anew."""


@dataclass(frozen=True)
class BottomK:
    """A sample of the values with the smallest hashes.

    Attributes:
        argument: the values, NULL where a row does not count; None for all rows, which are one value.
        limit: how many the sample has at most.
        distinct: whether equal values are one; else each row has a hash of its own.
    """

    argument: Expression | None
    limit: int
    distinct: bool


PRESENCE: Final = BottomK(None, 1, distinct=True)
"""A sample of one row: a group that has none is not there."""


def sample_of(call: AggregateCall) -> BottomK:
    """The sample that an aggregate reads."""
    return BottomK(effective_argument(call), sample_size(call), call.function == "COUNT")


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys that an operator looks at.

    Attributes:
        columns: the key columns of k keys.
        hashes: int64[k].
    """

    columns: list[pa.Array]
    hashes: Int64Array

    def of(self, names: Sequence[str], places: Int64Array) -> dict[str, pa.Array]:
        """Some of the keys as columns of state."""
        taken = pa.array(places)
        named = zip(names, self.columns, strict=True)
        return {HASH: pa.array(self.hashes[places])} | {name: key.take(taken) for name, key in named}


@dataclass(frozen=True, eq=False)
class NewRows:
    """New rows below the horizon.

    Attributes:
        codes: int64[n], their keys.
        starts: int64[n], when they begin (instants).
        counts: int64[n], how often each is there.
    """

    codes: Int64Array
    starts: Int64Array
    counts: Int64Array


@dataclass(frozen=True, eq=False)
class Elements:
    """The known elements of a sample of k keys, key after key, in the order in which they begin.

    Attributes:
        drawn: the elements.
        codes, draws: int64[n], their keys and hashes.
        values: n values; None where the hashes suffice.
        numbers: int64[k], how often the elements of each key were written, 0 for a new one.
        stored: int64[k], how many rows of each key are in state.
    """

    drawn: Drawn
    codes: Int64Array
    draws: Int64Array
    values: pa.Array | None
    numbers: Int64Array
    stored: Int64Array

    def changes(self, limit: int, before: int, horizon: int) -> tuple[CountChanges, Int64Array]:
        """The elements that enter and leave the samples, numbered by hash; and of each change the element.

        Args:
            limit: how many a sample has at most.
            before, horizon: as `sample_changes` takes them.
        """
        codes, times, elements, signs = sample_changes(self.drawn, limit, before, horizon)
        numbers = self.drawn.begins[codes] + self.drawn.ranks[elements]
        return CountChanges(codes, times, numbers, signs), elements

    def first_end(self, since: int, kept: BoolArray, keys: int) -> Int64Array:
        """When the first of each key's elements ends from an instant on, INFINITY if none does; int64[k]."""
        rows = np.flatnonzero(kept & (self.drawn.ends >= since))
        return smallest_per_code(self.codes[rows], self.drawn.ends[rows], keys)


class SampleArea:
    """The elements of a sample in state.

    Those of a key are numbered by how often all of them were written; new ones are added with the number of
    the last time, until half as many again are kept as are needed.

    Args:
        sample: which values.
        keys: the names of the key columns.
        size: how long each element lasts (instants).
    """

    def __init__(self, sample: BottomK, keys: tuple[str, ...], size: int) -> None:
        self._sample, self._keys, self._size = sample, keys, size
        value = () if sample.distinct else (_VALUE,)
        self.area = SweepArea(Layout(keys, (_DRAW, *value, _LIVE), (_NUMBER,), Netting.LATEST, 1, _LIVE))

    def elements(
        self, keys: Keys, rows: NewRows, values: pa.Array | None, before: int, horizon: int
    ) -> Elements:
        """The elements that are there or were just before an instant, and new ones that may be in a sample.

        Args:
            keys: the keys that are looked at.
            rows: the new rows.
            values: their values, n rows; None for all the same.
            before: the instant.
            horizon: up to which samples are wanted (instant).
        """
        count = len(keys.hashes)
        numbers, stored, places, held = self._held(keys, before)
        known = integers(held.column(_DRAW))
        codes, starts, draws, taken = self._drawn(rows, values)
        lasting = np.flatnonzero(self._ends(integers(held.column(TIME))) >= horizon)
        bars = self._bars(places[lasting], known[lasting], count)
        kept = self._that_matter(bars, codes, starts, draws)
        codes, starts, draws, taken = (part[kept] for part in (codes, starts, draws, taken))
        owners = np.concatenate([places, codes])
        begins_at = np.concatenate([integers(held.column(TIME)), starts])
        hashes = np.concatenate([known, draws])
        order = order_by(owners, begins_at, count)
        owners, begins_at, hashes = owners[order], begins_at[order], hashes[order]
        found = None
        if not self._sample.distinct:
            assert values is not None
            before_them = held.column(_VALUE) if held.num_rows else values.slice(0, 0)
            found = pa.concat_arrays([before_them, values.take(pa.array(taken))]).take(pa.array(order))
        begins = np.searchsorted(owners, np.arange(count + 1)).astype(np.int64)
        ends = self._ends(begins_at)
        ranks = _ranks_by_key(owners, hashes, begins, count)
        drawn = Drawn(begins, begins_at, ends, ranks)
        return Elements(drawn, owners, hashes, found, numbers, stored)

    def keep(self, keys: Keys, elements: Elements, before: int, horizon: int) -> Int64Array:
        """Store what may be in a sample from just before the horizon on.

        Returns:
            When the first element that is kept of each key ends, INFINITY if none does; int64[k].
        """
        count, drawn = len(keys.hashes), elements.drawn
        alive = drawn.ends >= horizon
        needed = self._needed(elements, alive)
        fresh = drawn.starts >= before
        wanted = np.bincount(elements.codes[needed], minlength=count)
        added = np.bincount(elements.codes[needed & fresh], minlength=count)
        anew = elements.stored + added > wanted + wanted // 2 + _SLACK
        anew |= (wanted == 0) & (elements.stored > 0)
        written = needed & (fresh | anew[elements.codes])
        numbers = np.maximum(elements.numbers + anew, 1)
        rows = np.flatnonzero(written)
        gone = np.flatnonzero(anew & (wanted == 0))
        owners = np.concatenate([elements.codes[rows], gone])
        zeros = np.zeros(len(gone), dtype=np.int64)
        columns = {
            TIME: pa.array(np.concatenate([drawn.starts[rows], zeros])),
            _DRAW: pa.array(np.concatenate([elements.draws[rows], zeros])),
            _NUMBER: pa.array(numbers[owners]),
            _LIVE: pa.array(np.arange(len(owners)) < len(rows)),
        }
        if elements.values is not None:
            missing = pa.nulls(len(gone), elements.values.type)
            columns[_VALUE] = pa.concat_arrays([elements.values.take(pa.array(rows)), missing])
        self.area.insert(keys.of(self._keys, owners) | columns)
        self.area.expire(horizon)
        return elements.first_end(horizon, written | (~fresh & ~anew[elements.codes]), count)

    def _ends(self, starts: Int64Array) -> Int64Array:
        if self._size == INFINITY:
            return np.full(len(starts), INFINITY, dtype=np.int64)
        return np.where(starts > INFINITY - self._size, INFINITY, starts + self._size)

    def _held(self, keys: Keys, before: int) -> tuple[Int64Array, Int64Array, Int64Array, pa.RecordBatch]:
        """Per key the last number and how many rows have it; which of them are there, and their keys."""
        count = len(keys.hashes)
        numbers, stored = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        places, rows = self.area.gather(keys.hashes, keys.columns)
        if rows is None:
            empty = {name: pa.array([], pa.int64()) for name in (TIME, _DRAW)}
            return numbers, stored, places, pa.RecordBatch.from_pydict(empty)
        found = integers(rows.column(_NUMBER))
        np.maximum.at(numbers, places, found)
        last = (found == numbers[places]) & rows.column(_LIVE).to_numpy(zero_copy_only=False)
        stored += np.bincount(places[last], minlength=count)
        there = np.flatnonzero(last & (self._ends(integers(rows.column(TIME))) >= before))
        return numbers, stored, places[there], rows.take(pa.array(there))

    def _bars(self, owners: Int64Array, draws: Int64Array, keys: int) -> Int64Array:
        """The largest hash in a sample of each key's elements; above all hashes where it has room; int64[k].

        Args:
            owners, draws: the key and the hash of each element.
            keys: their number.
        """
        bars = np.full(keys, _NO_BAR, dtype=np.int64)
        if np.bincount(owners, minlength=1).max() < self._sample.limit:
            return bars
        order = order_by(owners, draws, keys)
        owners, draws = owners[order], draws[order]
        differs = np.ones(len(order), dtype=np.bool_)
        differs[1:] = (owners[1:] != owners[:-1]) | (draws[1:] != draws[:-1])
        owners, draws = owners[differs], draws[differs]
        begins = np.searchsorted(owners, np.arange(keys + 1))
        last = begins[:-1] + self._sample.limit - 1
        full = last < begins[1:]
        bars[full] = draws[last[full]]
        return bars

    def _that_matter(
        self, bars: Int64Array, codes: Int64Array, starts: Int64Array, draws: Int64Array
    ) -> Int64Array:
        """The new elements but for those that are in no sample now, and in none later, by key and start.

        Those that are beyond the elements that last are in none now, nor is it seen whether one is there once
        more; those that are passed are in none later.

        Args:
            bars: the largest hash in a sample of the elements of each key that last as long as is looked at.
            codes, starts, draws: of the new elements.
        """
        if (bars == _NO_BAR).all():
            return np.arange(len(codes))
        order = order_by(codes, starts, len(bars)) if len(bars) > 1 else np.argsort(starts, kind="stable")
        codes, draws = codes[order], draws[order]
        beyond = draws >= bars[codes] if self._sample.distinct else draws > bars[codes]
        if not beyond.any():
            return order
        begins = np.searchsorted(codes, np.arange(len(bars) + 1)).astype(np.int64)
        return order[~(beyond & are_passed(begins, draws, self._sample.limit))]

    def _drawn(
        self, rows: NewRows, values: pa.Array | None
    ) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Of the new elements the keys, the starts, the hashes, and the rows that they are of."""
        taken = np.arange(len(rows.codes))
        if values is None:
            return rows.codes, rows.starts, np.zeros(len(taken), dtype=np.int64), taken
        taken = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        hashes = hash_rows([normalise(values.take(pa.array(taken)))], len(taken))
        hashes = folded(hashes, np.full(len(taken), SALT, dtype=np.int64))
        if not self._sample.distinct:
            hashes = folded(hashes, rows.starts[taken])
            copies = rows.counts[taken]
            taken, hashes = np.repeat(taken, copies), np.repeat(hashes, copies)
            hashes = folded(hashes, _numbers(rows.codes[taken], hashes))
        draws = (hashes.view(np.uint64) >> np.uint64(1)).view(np.int64)
        return rows.codes[taken], rows.starts[taken], draws, taken

    def _needed(self, elements: Elements, alive: BoolArray) -> BoolArray:
        drawn, rows = elements.drawn, np.flatnonzero(alive)
        count = len(drawn.begins) - 1
        if self._size == INFINITY:
            # All end together, so that those with the smallest hashes are enough.
            rows = rows[order_by(elements.codes[rows], -elements.draws[rows], count)]
        begins = np.searchsorted(elements.codes[rows], np.arange(count + 1)).astype(np.int64)
        ranks = _ranks_by_key(elements.codes[rows], elements.draws[rows], begins, count)
        part = Drawn(begins, drawn.starts[rows], drawn.ends[rows], ranks)
        needed = np.zeros(len(alive), dtype=np.bool_)
        needed[rows] = may_enter(part, self._sample.limit)
        return needed


def _ranks_by_key(codes: Int64Array, draws: Int64Array, begins: Int64Array, keys: int) -> Int64Array:
    """Of elements that are sorted by key the places of their hashes among those of their key; int64[n]."""
    order = order_by(codes, draws, keys)
    differs = np.ones(len(order), dtype=np.int64)
    differs[1:] = (codes[order[1:]] != codes[order[:-1]]) | (draws[order[1:]] != draws[order[:-1]])
    ranks = np.empty(len(order), dtype=np.int64)
    running = np.cumsum(differs) - 1
    ranks[order] = running - running[begins[codes[order]]]
    return ranks


def _numbers(codes: Int64Array, hashes: Int64Array) -> Int64Array:
    """The number of each row, from 0, among those of its key that have the same hash; int64[n]."""
    order = np.lexsort([hashes, codes])
    differs = np.ones(len(order), dtype=np.bool_)
    differs[1:] = (codes[order[1:]] != codes[order[:-1]]) | (hashes[order[1:]] != hashes[order[:-1]])
    first = np.flatnonzero(differs)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return numbers
