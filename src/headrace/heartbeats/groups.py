"""Bounds between many streams, of which those with equal parameters make a group.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, section 5.2. In the paper
a group has one heartbeat, made with the weakest bounds of its streams (`reference.skew`), which may come
later than those of single streams. Here the streams of a group have *equal* bounds, and each keeps a
heartbeat of its own. What is shared is what would otherwise be worked out for each pair of streams: the
bounds and what follows from them, and how far the rows of a group have come. So the heartbeats are those of
the full matrix.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats.skew import Bound, Bounds, Rate, SkewMatrix


@dataclass(frozen=True)
class Skew:
    """Bounds from each of some streams to each of some others; not from a stream to itself.

    Attributes:
        firsts, seconds: the numbers of the streams, from and to.
        bounds: between each two of them.
    """

    firsts: tuple[int, ...]
    seconds: tuple[int, ...]
    bounds: Bounds


@dataclass(frozen=True)
class GroupedMatrix:
    """Bounds between streams of which some have equal ones, without a matrix of all of them.

    Attributes:
        groups: the numbers of the streams of each; every stream is in one of them.
        matrix: the bounds of at most two streams of each group, in the order of the groups. Between any two
            streams are the bounds of those that are in the matrix for their groups.
    """

    groups: tuple[tuple[int, ...], ...]
    matrix: SkewMatrix

    @classmethod
    def single(cls, matrix: SkewMatrix) -> GroupedMatrix:
        """Each stream in a group of its own."""
        return cls(tuple((place,) for place in range(matrix.size)), matrix)

    @classmethod
    def of(
        cls,
        latencies: Sequence[int],
        own: Sequence[Bounds],
        skews: Sequence[Skew],
        rates: Mapping[int, Rate] | None = None,
    ) -> GroupedMatrix:
        """Streams with equal parameters in one group.

        Args:
            latencies: of each stream (microseconds).
            own: bounds of each stream with itself.
            skews: the bounds between them.
            rates: by the number of a stream, where that is known.
        """
        rates = rates or {}
        sent: list[list[int]] = [[] for _ in latencies]
        heard: list[list[int]] = [[] for _ in latencies]
        for number, skew in enumerate(skews):
            for place in skew.firsts:
                sent[place].append(number)
            for place in skew.seconds:
                heard[place].append(number)
        known = map(rates.get, range(len(latencies)))
        groups = by_parameters(zip(latencies, own, known, map(tuple, sent), map(tuple, heard), strict=True))
        chosen = [place for group in groups for place in group[:2]]
        places = {stream: place for place, stream in enumerate(chosen)}
        found: dict[tuple[int, int], list[Bound]] = {}
        for skew in skews:
            firsts, seconds = ([one for one in side if one in places] for side in (skew.firsts, skew.seconds))
            for first in firsts:
                for second in seconds:
                    if first != second:
                        found.setdefault((places[first], places[second]), []).extend(skew.bounds)
        bounds = {pair: tuple(some) for pair, some in found.items()}
        bounds |= {(place, place): own[stream] for place, stream in enumerate(chosen)}
        gaining = {place: rates[stream] for place, stream in enumerate(chosen) if stream in rates}
        return cls(groups, SkewMatrix(tuple(latencies[stream] for stream in chosen), bounds, gaining))

    @property
    def size(self) -> int:
        """How many streams there are."""
        return sum(map(len, self.groups))

    @cached_property
    def latencies(self) -> Int64Array:
        """int64[streams], how long the rows of each travel at most (microseconds)."""
        found = [self.matrix.latencies[place] for place in self._places]
        return np.array(found, dtype=np.int64)[self.group_of]

    @cached_property
    def group_of(self) -> Int64Array:
        """int64[streams], the group that each is in."""
        found = np.zeros(self.size, dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[list(group)] = number
        return found

    def own(self, group: int) -> Bounds:
        """The bounds of a stream of a group with itself."""
        return self.matrix.between(self._places[group], self._places[group])

    def between(self, first: int, second: int) -> Bounds:
        """The bounds from a stream of a group to another stream, of a second group or of the same."""
        if first != second:
            return self.matrix.between(self._places[first], self._places[second])
        place = self._places[first]
        return self.matrix.between(place, place + 1) if len(self.groups[first]) > 1 else ()

    def closure(self) -> GroupedMatrix:
        """`B*` of all streams: everything that follows along paths (section 3.2).

        Two streams of a group are enough for it. A path that passes a second stream of a group is as good
        without what is between the two, since the bounds of one are those of the other. The exception is a
        path from a stream over another of its group back to itself.
        """
        return replace(self, matrix=self.matrix.closure())

    def needs_timeout(self) -> bool:
        """Whether rows can wait for ever if all streams pause (theorem 3.3); to be asked of a closure."""
        return self.matrix.needs_timeout()

    def stalling(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The streams for which a timeout is needed; to be asked of a closure.

        Returns:
            Those that the rows of some other stream never move, however many come; and all whose heartbeats
            stay behind the rows of some stream, perhaps by a bounded distance, if all streams pause.
        """
        group_at = [number for number, group in enumerate(self.groups) for _ in group[:2]]
        pairs = self.matrix.stalling()
        behind = {group_at[second] for _, second in pairs}
        unbounded = {
            group_at[second]
            for first, second in pairs
            if first != second and all(bound.rows for bound in self.matrix.between(first, second))
        }
        return self._streams_of(unbounded), self._streams_of(behind)

    def _streams_of(self, groups: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(stream for group in groups for stream in self.groups[group]))

    def expanded(self) -> SkewMatrix:
        """The full matrix."""
        group_of, size = self.group_of.tolist(), range(self.size)
        found = {
            (i, j): self.own(group_of[i]) if i == j else self.between(group_of[i], group_of[j])
            for i in size
            for j in size
        }
        return SkewMatrix(tuple(self.latencies.tolist()), found)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int, Bounds], ...]:
        """The pairs of groups with bounds from streams of one to others of the second."""
        group_at = [number for number, group in enumerate(self.groups) for _ in group[:2]]
        pairs = {(group_at[i], group_at[j]) for i, j in self.matrix.bounds if i != j}
        return tuple((*pair, self.between(*pair)) for pair in sorted(pairs))

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """Where the first stream of each group is in the matrix."""
        sizes = [min(len(group), 2) for group in self.groups]
        return tuple(np.cumsum([0, *sizes])[:-1].tolist())


def by_parameters(parameters: Iterable[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Groups of streams with equal parameters, in the order in which these come first."""
    found: dict[Hashable, list[int]] = {}
    for stream, value in enumerate(parameters):
        found.setdefault(value, []).append(stream)
    return tuple(map(tuple, found.values()))
