"""A sample of the values of a Bloom filter that is kept exactly: by it is known what the filter misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.algebra.kinds import BloomKind
from headrace.algebra.nodes import BloomFilter
from headrace.algebra.tunings.bloom import PROBES
from headrace.elements import BoolArray, Float64Array, Int64Array
from headrace.kernels.rows.sampling import folded
from headrace.kernels.rows.watched import FACTS, NONE_KNOWN, PLACES, watch
from headrace.time import BEGINNING, INFINITY


class WatchedRows(NamedTuple):
    """Rows that a Bloom filter has looked at, those of a block together, in order of instants.

    Attributes:
        blocks: int64[n], the place of each row's block.
        instants: int64[n].
        looks, enters: bool[n], whether they are looked up, and whether they enter.
        hashes: int64[n], of their values.
        said: int64[n], for how long each was said to be there (instants).
    """

    blocks: Int64Array
    instants: Int64Array
    looks: BoolArray
    enters: BoolArray
    hashes: Int64Array
    said: Int64Array

    def of_blocks(self, chosen: BoolArray) -> WatchedRows:
        """Those of some of the blocks, bool[b], with their places among these."""
        rows, places = chosen[self.blocks], np.cumsum(chosen) - 1
        return WatchedRows(
            places[self.blocks[rows]],
            self.instants[rows],
            self.looks[rows],
            self.enters[rows],
            self.hashes[rows],
            self.said[rows],
        )


@dataclass(frozen=True, eq=False)
class WatchedValues:
    """The values of some blocks of a Bloom filter, as many as have a place, with until when they are there.

    Which values those are follows from them and their instants alone.

    Attributes:
        node: the plan node.
        values, ends: int64[b * PLACES].
        facts: int64[b * FACTS], what else is known of each block; see `watch`.
    """

    node: BloomFilter
    values: Int64Array
    ends: Int64Array
    facts: Int64Array

    @classmethod
    def of(cls, node: BloomFilter, packed: Sequence[bytes | None], since: Int64Array) -> WatchedValues:
        """Those of some blocks.

        Args:
            node: the plan node.
            packed: what is in state of each; None where that is nothing.
            since: int64[b], from which instant on it is known of all values of a block of which nothing is in
                state whether they are there: BEGINNING where none is.
        """
        count = len(packed)
        values, ends = (np.zeros((count, PLACES), dtype=np.int64) for _ in range(2))
        facts = np.zeros((count, FACTS), dtype=np.int64)
        facts[:, -1], facts[:, -2] = since, np.where(since == BEGINNING, 0, NONE_KNOWN)
        for place, content in enumerate(packed):
            if content is not None:
                known = np.frombuffer(content, dtype=np.int64)
                width = int(known[0])
                facts[place] = known[:FACTS]
                values[place, :width], ends[place, :width] = known[FACTS:].reshape(2, width)
        return cls(node, values.reshape(-1), ends.reshape(-1), facts.reshape(-1))

    def packed(self) -> list[bytes]:
        """The same as it is in state."""
        facts = self.facts.reshape(-1, FACTS)
        values, ends = (part.reshape(-1, PLACES) for part in (self.values, self.ends))
        return [
            np.concatenate([facts[place], values[place, :width], ends[place, :width]]).tobytes()
            for place, width in enumerate(facts[:, 0].tolist())
        ]

    def missed(self, rows: WatchedRows) -> Float64Array:
        """float64[2]: how much there was to say of the values that are known, and how much was missed.

        Of DISTINCT of a window that ends it is in parts of the window, of all else the number of rows. The
        values of the rows are known from then on.

        Args:
            rows: what was looked at, of these blocks.
        """
        node, size = self.node, self.node.size.length
        until = ends_of(rows.instants, size)
        hashes = folded(rows.hashes, np.full(len(rows.hashes), PROBES, dtype=np.int64))
        own, weights = watch(
            *(rows.blocks, rows.instants, until, rows.enters.view(np.uint8), hashes),
            *(int(node.kind is BloomKind.EXCEPT), size, self.values, self.ends, self.facts),
        )
        if node.kind is BloomKind.DISTINCT and size < INFINITY:
            due = (until - np.maximum(own, rows.instants)) / size
            given = rows.said / size
        else:
            due = (own <= rows.instants).astype(np.float64)
            given = due * (rows.said > 0)
        weights = weights * rows.looks
        return np.array([weights @ due, weights @ (due - given)])


def ends_of(instants: Int64Array, size: int) -> Int64Array:
    """int64[n]: up to when rows of instants are there for so long."""
    found: Int64Array = instants + np.minimum(size, INFINITY - np.maximum(instants, 0))
    return found
