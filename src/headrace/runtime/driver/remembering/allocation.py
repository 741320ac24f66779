"""Memory is spread over the rows that joins remember so that most pairs are found (STREAM, section 5.3).

A pair of rows of several streams is found if all but the newest are remembered. So of pairs of which row j
is the newest the part that is found is the product of the shares of the others; and how often row j is the
newest grows with the lengths of the windows of the others. What a side of a join keeps is in proportion to
the product of the shares of its rows. The largest part of pairs within some memory is a problem that is
linear in each share. With two streams the one is remembered first of which fewer bytes come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from headrace.runtime.driver.facts.remembered import JoinedRows, KeptSide, part_found

Allocation = tuple[float, ...]
"""The part of rows that is remembered, above 0 and up to 1, of each number."""

FLOOR: Final = 0.01
"""So much is remembered of all rows where there is room: it tells how many pairs are missed."""
LEAST: Final = 1e-6
"""No share is smaller."""
_PARTS: Final = (0.0, 0.5, 0.8, 0.95)
"""So much is left of one share when room is made for another one."""
_ROUNDS: Final = 50


def size_at(shares: Sequence[float], kept: Sequence[KeptSide], now: Sequence[float]) -> float:
    """The bytes that joins are expected to keep.

    Args:
        shares: of the rows of each number.
        kept: what they keep now.
        now: the shares by which they do.
    """
    return sum(
        side.waiting
        + (side.size - side.waiting) * math.prod(shares[number] / now[number] for number in side.numbers)
        for side in kept
    )


def allocated(
    kept: Sequence[KeptSide], spans: Sequence[float], now: Allocation, most: Sequence[float], room: float,
    joined: Sequence[JoinedRows] | None = None,
) -> Allocation:  # fmt: skip
    """The shares with which most pairs are found, of those that fit.

    Where what waits for heartbeats does not fit by itself, as little is remembered as tells what is missed.

    Args:
        kept: what joins keep now.
        spans: for how long rows are in their windows (instants).
        now: the shares by which they do.
        most: no share is to be larger than this.
        room: so much they may keep (bytes).
        joined: which rows are joined with each other; all if None.
    """
    problem = _Problem(kept, spans, now, tuple(most), room, joined)
    floors = tuple(map(problem.floor, range(len(now))))
    found = floors if sum(side.waiting for side in kept) >= room else _fitting(problem)
    return tuple(min(max(share, LEAST), 1.0) for share in found)


@dataclass(frozen=True)
class _Problem:
    kept: Sequence[KeptSide]
    spans: Sequence[float]
    now: Allocation
    most: Allocation
    room: float
    joined: Sequence[JoinedRows] | None = None

    def size(self, shares: Sequence[float]) -> float:
        return size_at(shares, self.kept, self.now)

    def fits(self, shares: Sequence[float]) -> bool:
        return self.size(shares) <= self.room * (1 + 1e-9)

    def found(self, shares: Sequence[float]) -> float:
        return part_found(shares, self.spans, self.joined)

    def largest(self, place: int, shares: Allocation) -> Allocation:
        """The shares where one of them is as large as fits, and no smaller than its floor."""
        least, most = self.floor(place), self.most[place]
        low, high = (self.size(_with(shares, place, share)) for share in (least, most))
        if high <= self.room or high <= low:
            return _with(shares, place, most)
        fits = least + (most - least) * (self.room - low) / (high - low)
        return _with(shares, place, min(max(fits, least), most))

    def floor(self, place: int) -> float:
        return min(FLOOR, self.most[place])


def _fitting(problem: _Problem) -> Allocation:
    places = range(len(problem.most))
    floors = tuple(map(problem.floor, places))
    if not problem.fits(floors):
        return _scaled(problem, floors)
    shares = problem.most
    while not problem.fits(shares):
        lower = [problem.largest(place, shares) for place in places]
        useful = [found for found in lower if problem.size(found) < problem.size(shares)]
        if not useful:
            return _scaled(problem, floors)
        shares = min(useful, key=lambda other: _price(problem, shares, other))
    return _exchanged(problem, shares)


def _price(problem: _Problem, shares: Allocation, other: Allocation) -> float:
    """The part of pairs that is lost for each byte."""
    lost = problem.found(shares) - problem.found(other)
    return lost / (problem.size(shares) - problem.size(other))


def _exchanged(problem: _Problem, shares: Allocation) -> Allocation:
    """The shares when room was made for one by another as long as more pairs are found."""
    for _ in range(_ROUNDS):
        tried = [
            problem.largest(other, _with(shares, place, max(part * shares[place], problem.floor(place))))
            for place, other in permutations(range(len(shares)), 2)
            for part in _PARTS
        ]
        tried = list(filter(problem.fits, tried))
        best = max(tried, key=problem.found, default=shares)
        if problem.found(best) <= problem.found(shares) + 1e-6:
            break
        shares = best
    return shares


def _scaled(problem: _Problem, shares: Allocation) -> Allocation:
    """All shares made smaller by one factor until they fit."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if problem.size([share * middle for share in shares]) <= problem.room:
            low = middle
        else:
            high = middle
    return tuple(share * low for share in shares)


def _with(shares: Allocation, place: int, share: float) -> Allocation:
    return (*shares[:place], share, *shares[place + 1 :])
