"""The variance that is estimated of a join by keys, over all that its keys may draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product

import pytest

Key = Sequence[tuple[Fraction, int]]
"""The pairs of a key: the share of each, and what it adds."""
HALF, FIFTH, ALL = Fraction(1, 2), Fraction(1, 5), Fraction(1)


def draws(key: Key) -> Iterator[tuple[Fraction, Key]]:
    """The pairs that are kept, each time with its probability: those of a share above what the key draws."""
    steps = sorted({Fraction(0), ALL, *(share for share, _ in key)})
    for low, high in pairwise(steps):
        yield high - low, [pair for pair in key if pair[0] > low]


def sums(kept: Key) -> tuple[Fraction, Fraction]:
    """The estimate of a key, and the estimate of its variance."""
    more = sum(((1 / share - 1) * value for share, value in kept if share < 1), Fraction(0))
    own = sum((Fraction(value) for share, value in kept if share < 1), Fraction(0))
    whole = sum((value / share for share, value in kept), Fraction(0))
    return whole, (own + more) * more


def moments(keys: Sequence[Key]) -> tuple[Fraction, Fraction, Fraction]:
    """The mean and the variance of the estimate, and the mean of the estimated variance."""
    mean = square = estimated = Fraction(0)
    for drawn in product(*(list(draws(key)) for key in keys)):
        chance = Fraction(1)
        found = Fraction(0)
        variance = Fraction(0)
        for one, kept in drawn:
            chance *= one
            whole, spread = sums(kept)
            found, variance = found + whole, variance + spread
        mean, square, estimated = (
            mean + chance * found,
            square + chance * found**2,
            estimated + chance * variance,
        )
    return mean, square - mean**2, estimated


@pytest.mark.parametrize("value", [1, -3])
def test_of_pairs_of_one_share_it_is_the_variance(value: int) -> None:
    keys = [[(HALF, 1), (HALF, value), (HALF, 2)], [(HALF, 5)], [(FIFTH, 2), (FIFTH, value)], [(ALL, 7)]]
    mean, variance, estimated = moments(keys)
    assert mean == 17 + 2 * value
    assert variance == estimated


def test_where_a_share_has_changed_it_is_no_less_and_little_more() -> None:
    keys = [[(HALF, 1), (FIFTH, 3)], [(FIFTH, 2), (HALF, 2), (ALL, 4)], [(HALF, 1), (HALF, 1), (FIFTH, 1)]]
    mean, variance, estimated = moments(keys)
    assert mean == 15
    assert variance < estimated < Fraction(3, 2) * variance
