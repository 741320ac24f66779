"""The rows that the heartbeat has passed, by partition and instant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import Frame
from headrace.elements import Batch, BoolArray, Int64Array
from headrace.expressions.tree import AggregateCall
from headrace.kernels.instants.frames import number_instants
from headrace.kernels.rows.grouping import order_by_code
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.order import break_ties

FrameValues = dict[tuple[Frame, AggregateCall], pa.Array]
"""For aggregates over frames a column each, with a value for each row that has arrived."""


@dataclass(frozen=True, eq=False)
class Instants:
    """The different instants of each partition, partition after partition.

    Attributes:
        numbers: int64[n], the number of each row's instant.
        times: int64[m], the instants.
        first: int64[k + 1], where those of each partition start.
    """

    numbers: Int64Array
    times: Int64Array
    first: Int64Array

    @cached_property
    def codes(self) -> Int64Array:
        """int64[m], the partition of each instant."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def steps(self) -> Int64Array:
        """int64[m], the number of each instant where one more follows those of each partition."""
        return np.arange(len(self.times)) + self.codes

    @cached_property
    def _of_row(self) -> pa.Array | None:
        """The number of each row's instant, unless that is the row's own."""
        same = len(self.numbers) == len(self.times) and (np.diff(self.numbers) == 1).all()
        return None if same else pa.array(self.numbers)

    def per_row(self, values: pa.Array) -> pa.Array:
        """The values of instants, for each row that of its own."""
        return values if self._of_row is None else values.take(self._of_row)


@dataclass(frozen=True, eq=False)
class Arrived:
    """Rows of a stream of chronons that are final, each a positive number of times.

    Attributes:
        rows: n rows.
        codes: int64[n], the partition of each.
        keys: the normalised key columns of the k partitions, in order of their hashes.
        hashes: int64[k], ascending.
    """

    rows: Batch
    codes: Int64Array
    keys: list[pa.Array]
    hashes: Int64Array

    @classmethod
    def of(cls, batch: Batch, keys: list[pa.Array]) -> Arrived:
        """All chronons of some instants, of which those that were retracted cancel.

        Args:
            batch: the elements.
            keys: the normalised key columns, a row for each element.
        """
        hashes = hash_rows(keys, len(batch)) if keys else np.zeros(len(batch), dtype=np.int64)
        codes = encode_keys(keys, hashes)
        by_hash = stable_order(hashes[codes.first])
        rank = np.empty_like(by_hash)
        rank[by_hash] = np.arange(len(by_hash))
        first = codes.first[by_hash]
        of_partitions = [key.take(pa.array(first)) for key in keys]
        numbers = rank[codes.codes] if keys else codes.codes
        arrived = cls(batch, numbers, of_partitions, hashes[first])
        return arrived if (batch.w > 0).all() else arrived._netted()

    @cached_property
    def by_time(self) -> Int64Array:
        """The rows sorted by instant, stably; int64[n]."""
        return stable_order(self.rows.ts)

    @cached_property
    def order(self) -> Int64Array:
        """The rows sorted by partition and instant, stably; int64[n]."""
        return order_by_code(self.codes, self.by_time, len(self.hashes))

    @cached_property
    def instants(self) -> Instants:
        """The instants of each partition."""
        return Instants(*number_instants(self.by_time, self.codes, self.rows.ts, len(self.hashes)))

    @property
    def starts(self) -> Int64Array:
        """Of rows in order, where each partition starts and the last one ends; int64[k + 1]."""
        return np.searchsorted(self.codes, np.arange(len(self.hashes) + 1)).astype(np.int64)

    def in_order(self) -> Arrived:
        """The rows, each once per multiplicity, by partition, instant and payload."""
        order, _ = break_ties(self.rows.payload, self.order, self._tied())
        order = np.repeat(order, self.rows.w[order])
        rows = self.rows.take(order)
        once = Batch(rows.payload, rows.ts, rows.te, np.ones(len(rows), dtype=np.int64))
        return Arrived(once, self.codes[order], self.keys, self.hashes)

    def _tied(self) -> BoolArray:
        """For each row in order whether it is of the partition and the instant of the one before."""
        tied: BoolArray = np.zeros(len(self.order), dtype=np.bool_)
        tied[1:] = (np.diff(self.codes[self.order]) == 0) & (np.diff(self.rows.ts[self.order]) == 0)
        return tied

    def _netted(self) -> Arrived:
        """Equal rows of an instant as one, with the sum of their multiplicities, if that is not 0."""
        order, equal = break_ties(self.rows.payload, self.order, self._tied())
        first = np.flatnonzero(~equal)
        counts = np.add.reduceat(self.rows.w[order], first)
        kept, counts = order[first[counts > 0]], counts[counts > 0]
        rows = self.rows.take(kept)
        present, codes = np.unique(self.codes[kept], return_inverse=True)
        keys = [key.take(pa.array(present)) for key in self.keys]
        return Arrived(Batch(rows.payload, rows.ts, rows.te, counts), codes, keys, self.hashes[present])
