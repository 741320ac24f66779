"""Bounds on how far streams are behind each other, and what follows from them.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, sections 2 and 3. A skew
bound from a source to another says: when the first emits a row of timestamp `tau`, the second emits rows
above `tau - delta` only, once some wall-clock time has passed or it has emitted some rows. From a source to
itself it says how far its rows are out of order. Their heartbeat `tau` ("all later rows are above") is our
`tau + 1`.

A bound is one between the *clocks* of two sources: it holds for a timestamp that the first has promised not
to fall back to, as it does for one that it has emitted (section 3.2 calls such a promise a virtual tuple).
Without that nothing would follow from a bound to a source that stays silent, and `closure` would infer too
much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from headrace.kernels.rows.paths import best_paths
from headrace.time import MAX_INSTANT

LONGEST: Final = MAX_INSTANT
"""The largest number in a bound; one that would be larger is left out, as if nothing were known."""


@dataclass(frozen=True, order=True)
class Bound:
    """A pair `(t, delta)` or `(n, delta)` of a skew bound set.

    When the first source emits `tau`, then once `wait` has passed, and once the second has emitted `rows`
    further rows after that, it emits rows above `tau - delta` only. A path whose last step counts rows may
    need both numbers. A path with an earlier step that counts rows cannot be written as a bound; `generation`
    finds what follows from it as the rows come.

    Attributes:
        delta: how far behind (instants).
        wait: wall-clock time (microseconds).
        rows: a number of rows of the second source.

    Raises:
        ValueError: a number is negative or larger than `LONGEST`.
    """

    delta: int
    wait: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        numbers = (self.delta, self.wait, self.rows)
        if min(numbers) < 0 or max(numbers) > LONGEST:
            raise ValueError(f"a number in {numbers} is not between 0 and {LONGEST}")

    def implies(self, other: Bound) -> bool:
        """Whether the other bound says nothing besides this one (footnote 1: it is redundant)."""
        return self.delta <= other.delta and self.wait <= other.wait and self.rows <= other.rows


STRICT: Final = Bound(0)
"""From a stream to itself: timestamps rise strictly."""


def within(disorder: int) -> Bound:
    """From a stream to itself: rows are at most that much older than the newest before them (instants).

    A disorder of 0 allows ties, so that it is the paper's `delta = 1`.
    """
    return Bound(disorder + 1)


Bounds = tuple[Bound, ...]
"""A skew bound set without redundant pairs, sorted; what is not in it is not known."""


def without_redundant(bounds: Iterable[Bound]) -> Bounds:
    """The set without what others in it imply: the paper's `S-`."""
    if len(known := set(bounds)) < 2:
        return tuple(known)
    kept: list[Bound] = []
    # A bound is implied by smaller ones only, which come first.
    for bound in sorted(known):
        if not any(before.implies(bound) for before in kept):
            kept.append(bound)
    return tuple(kept)


@dataclass(frozen=True)
class Rate:
    """That the clock of a source gains so much in some time: it makes up what it is behind (section 4.2).

    A bound `(t, delta)` to the source then implies `(t + delta / rate, 0)`.

    Attributes:
        gain: by how much its timestamps rise at least (instants).
        time: in how much wall-clock time (microseconds).
    """

    gain: int
    time: int

    def implied(self, bound: Bound) -> Bound | None:
        """The bound that follows from one that counts no rows; None if its wait would be too long."""
        wait = bound.wait - bound.delta * self.time // -self.gain
        return Bound(0, wait) if wait <= LONGEST else None


@dataclass(frozen=True)
class SkewMatrix:
    """Bounds from each of some streams to each, and on the way of each stream to us.

    Attributes:
        latencies: per stream, how long its rows travel at most (microseconds of wall-clock time). 0 also says
            that the bounds hold for the rows as they arrive (the paper's `B'`, section 6).
        bounds: by pair of streams, from and to, as their numbers; a pair without bounds is not in it.
        rates: by stream, as far as they are known.
    """

    latencies: tuple[int, ...]
    bounds: Mapping[tuple[int, int], Bounds] = field(default_factory=dict)
    rates: Mapping[int, Rate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = range(len(self.latencies))
        if not all(first in places and second in places for first, second in self.bounds):
            raise ValueError(f"a bound is of a stream that is not one of {len(places)}")
        if not all(0 <= latency <= LONGEST for latency in self.latencies):
            raise ValueError(f"a latency is not between 0 and {LONGEST}")
        found = {pair: without_redundant(bounds) for pair, bounds in sorted(self.bounds.items()) if bounds}
        object.__setattr__(self, "bounds", found)

    @property
    def size(self) -> int:
        """How many streams there are."""
        return len(self.latencies)

    def between(self, first: int, second: int) -> Bounds:
        """The bounds from one stream to another, or to itself."""
        return self.bounds.get((first, second), ())

    def closure(self) -> SkewMatrix:
        """`B*`: everything that follows along paths (section 3.2), and from rates.

        Never needed for safety: heartbeats made without it hold too, but some come later.
        """
        closed = replace(self, bounds=_along_paths(self))
        if not self.rates:
            return closed
        # What a path makes up after its last stream with a rate is made up by that of the path from there, so
        # that what follows from the rates has to be joined along paths once only.
        return replace(self, bounds=_along_paths(replace(self, bounds=closed._with_rates())))

    def _with_rates(self) -> dict[tuple[int, int], Bounds]:
        """The bounds, and what each implies by the rate of the stream that it is to."""
        found = {}
        for (first, second), bounds in self.bounds.items():
            rate = self.rates.get(second)
            timed = () if rate is None else (rate.implied(one) for one in bounds if not one.rows)
            found[first, second] = (*bounds, *(one for one in timed if one is not None))
        return found

    def stalling(self) -> tuple[tuple[int, int], ...]:
        """The pairs of streams, from and to, for which a timeout is needed; to be asked of a closure.

        If all streams pause, rows of the first stay above the heartbeat of the second: nothing makes it reach
        the newest of them (theorem 3.3). Bounds that count rows do not help there, since none come.
        """
        return tuple(
            (first, second)
            for first in range(self.size)
            for second in range(self.size)
            if not any(bound.delta == 0 == bound.rows for bound in self.between(first, second))
        )

    def needs_timeout(self) -> bool:
        """Whether rows can wait for ever if all streams pause (theorem 3.3); to be asked of a closure."""
        return bool(self.stalling())


def _along_paths(matrix: SkewMatrix) -> dict[tuple[int, int], Bounds]:
    """The bounds along all paths, some of which may be redundant.

    A path ends where it has counted rows, so that each number of rows has nodes of its own: node `stream` for
    bounds without rows, and `stream + size * place` for those with the number of rows at that place.
    """
    counts = sorted({0} | {bound.rows for bounds in matrix.bounds.values() for bound in bounds})
    size = matrix.size
    steps = sorted(
        (first, second + size * counts.index(bound.rows), bound.delta, bound.wait)
        for (first, second), bounds in matrix.bounds.items()
        for bound in bounds
    )
    edges = np.array(steps, dtype=np.int64).reshape(-1, 4)
    starts = np.searchsorted(edges[:, 0], np.arange(size * len(counts) + 1))
    targets, deltas, waits = np.ascontiguousarray(edges[:, 1:].T)
    found: dict[tuple[int, int], list[Bound]] = {}
    for first, node, delta, wait in best_paths(starts, targets, deltas, waits, size, LONGEST).tolist():
        bound = Bound(delta, wait, counts[node // size])
        found.setdefault((first, node % size), []).append(bound)
    return {pair: tuple(bounds) for pair, bounds in found.items()}
