"""Bounds between streams: the examples of Srivastava and Widom, PODS 2004."""

from __future__ import annotations

import pytest

from headrace.heartbeats.skew import (
    LONGEST,
    STRICT,
    Bound,
    SkewMatrix,
    within,
    without_redundant,
)
from headrace.reference.generation import obeys


def pair(wait: int, delta: int) -> Bound:
    """A time-based pair, written as the paper writes it."""
    return Bound(delta, wait)


def test_the_closure_example() -> None:
    """Section 3.2: the path over the second source gives (2, 2), which (1, 3) does not imply."""
    bounds = {(0, 1): (pair(1, 1),), (0, 2): (pair(1, 3),), (1, 2): (pair(1, 1),)}
    matrix = SkewMatrix((0, 0, 0), bounds)
    assert matrix.closure() != matrix
    closed = matrix.closure()
    assert closed.between(0, 2) == (pair(2, 2), pair(1, 3))
    assert closed.between(0, 1) == closed.between(1, 2) == (pair(1, 1),)
    assert len(closed.bounds) == 3
    assert closed.closure() == closed


def test_the_example_that_needs_a_timeout() -> None:
    """Section 3.4: S1 is at most 5 ahead of S2 and nothing is known of the other way."""
    matrix = SkewMatrix((0, 0), {(0, 0): (STRICT,), (0, 1): (Bound(5),), (1, 1): (STRICT,)})
    assert matrix.closure() == matrix
    assert matrix.stalling() == ((0, 1), (1, 0))
    assert matrix.needs_timeout()


def test_at_most_k_duplicates_needs_both_pairs() -> None:
    """Section 3.1: neither of (0, 1) and (k, 0) implies the other; counted rows end no pause."""
    ordered, duplicates = within(0), Bound(0, rows=3)
    assert without_redundant((ordered, duplicates)) == (duplicates, ordered)
    matrix = SkewMatrix((0,), {(0, 0): (ordered, duplicates)})
    assert matrix.closure() == matrix
    assert matrix.needs_timeout()
    assert not SkewMatrix((0,), {(0, 0): (STRICT,)}).needs_timeout()


def global_counter(shortest: tuple[int, ...], longest: tuple[int, ...]) -> SkewMatrix:
    """Section 4.1, for sources that take between so long and so long for each token."""
    places = range(len(shortest))
    behind = {
        (i, j): (pair(max(longest[j] - shortest[i], 0), 0), Bound(0, rows=1))
        for i in places
        for j in places
        if i != j
    }
    return SkewMatrix((7, 0, 2), behind | {(i, i): (STRICT,) for i in places})


def test_a_global_counter_needs_no_timeout() -> None:
    matrix = global_counter((2, 3, 20), (9, 5, 30))
    assert matrix.between(2, 0) == (pair(0, 0),)
    assert matrix.between(0, 1) == (Bound(0, 0, 1), pair(3, 0))
    assert not matrix.needs_timeout()
    assert not matrix.closure().needs_timeout()


def sensors(deviations: tuple[int, ...], rates: tuple[int, ...] | None) -> SkewMatrix:
    """Section 4.2, for clocks that are at most so far off; with the rates that they at least run at."""
    found: dict[tuple[int, int], tuple[Bound, ...]] = {}
    for i, one in enumerate(deviations):
        for j, other in enumerate(deviations):
            apart = one if i == j else one + other
            caught_up = (pair(-(-apart // rates[j]), 0),) if rates else ()
            found[i, j] = (pair(0, apart), *caught_up)
    return SkewMatrix((0,) * len(deviations), found)


def test_sensors_need_a_timeout_unless_their_clocks_run() -> None:
    matrix = sensors((4, 1, 2), None)
    assert matrix.closure() == matrix
    assert sensors((4, 1, 2), None).needs_timeout()
    running = sensors((4, 1, 2), (1, 2, 3))
    assert running.between(0, 1) == (pair(3, 0), pair(0, 5))
    assert running.between(2, 2) == (pair(1, 0), pair(0, 2))
    assert not running.needs_timeout()


def test_a_counted_step_can_end_a_path_and_not_begin_it() -> None:
    matrix = SkewMatrix((0, 0, 0), {(0, 1): (pair(4, 1),), (1, 2): (Bound(2, rows=3),)})
    assert matrix.closure().between(0, 2) == (Bound(3, 4, 3),)
    matrix = SkewMatrix((0, 0, 0), {(0, 1): (Bound(2, rows=3),), (1, 2): (pair(4, 1),)})
    assert matrix.closure() == matrix


def test_a_path_that_is_too_long_says_nothing() -> None:
    matrix = SkewMatrix((0, 0, 0), {(0, 1): (Bound(LONGEST),), (1, 2): (Bound(1),)})
    assert matrix.closure() == matrix


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not between"):
        Bound(-1)
    with pytest.raises(ValueError, match="latency"):
        SkewMatrix((-1,))
    with pytest.raises(ValueError, match="stream"):
        SkewMatrix((0,), {(0, 1): (STRICT,)})


def test_the_closure_of_a_hundred_streams_in_a_chain_has_all_paths() -> None:
    steps = {(i, i + 1): (pair(1, 2),) for i in range(99)}
    closed = SkewMatrix((0,) * 100, steps).closure()
    assert closed.between(0, 99) == (pair(99, 198),)
    assert len(closed.bounds) == 99 * 100 // 2


def test_closure_is_of_clocks_and_not_of_rows() -> None:
    """A source that stays silent still keeps its bounds: without that, nothing would follow from them.

    The first source sends 10, the second nothing, and the third -100 later. No row of the first or second
    breaks a bound; but the clock of the second has passed 9, and so must that of the third have passed 8.
    """
    bounds = {(0, 1): [(1, 1)], (1, 2): [(1, 1)]}
    sent = [(0, 0, 10), (5, 2, -100)]
    assert not obeys(bounds, sent, 6)
    assert obeys({(0, 1): bounds[0, 1]}, sent, 6)
    assert obeys({(1, 2): bounds[1, 2]}, sent, 6)
