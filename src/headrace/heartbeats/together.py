"""Streams that queries read together, and what is smallest or largest among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.elements import Int64Array


@dataclass(frozen=True, eq=False)
class Together:
    """Sets of streams, each of which some query reads; without a matrix of all pairs that meet.

    Attributes:
        members, sets: int64[n] and int64[sets], the streams of the sets one after the other, and where each
            set begins.
        found_in, streams: int64[n] and int64[streams], the sets of the streams one after the other, and where
            those of each stream begin; every stream is in one at least.
    """

    members: Int64Array
    sets: Int64Array
    found_in: Int64Array
    streams: Int64Array

    @classmethod
    def of(cls, sets: Iterable[Sequence[int]], size: int) -> Together:
        """So many streams in some sets; those in none are alone.

        Args:
            sets: the numbers of their streams; none is empty.
            size: how many streams there are.
        """
        known = [*sets]
        alone = set(range(size)).difference(*known)
        known += [(stream,) for stream in sorted(alone)]
        members = np.array([stream for one in known for stream in one], dtype=np.int64)
        sizes = np.array([len(one) for one in known], dtype=np.int64)
        numbers = np.repeat(np.arange(len(known)), sizes)
        order = np.argsort(members, kind="stable")
        starts = np.searchsorted(members[order], np.arange(size))
        return cls(members, np.cumsum(sizes) - sizes, numbers[order], starts)

    def least(self, numbers: Int64Array) -> Int64Array:
        """Per stream the smallest number of it and of those that are read with it."""
        return self._reduced(np.minimum, numbers)

    def largest(self, numbers: Int64Array) -> Int64Array:
        """Per stream the largest number of it and of those that are read with it."""
        return self._reduced(np.maximum, numbers)

    def _reduced(self, function: np.ufunc, numbers: Int64Array) -> Int64Array:
        found = function.reduceat(numbers[self.members], self.sets)[self.found_in]
        is_partition = len(found) == len(self.streams)
        reduced: Int64Array = found if is_partition else function.reduceat(found, self.streams)
        return reduced
