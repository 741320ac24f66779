"""The exponential histogram: the paper's example, its bound as it is mended, and that of the wave."""

from __future__ import annotations

import numpy as np
import pytest

from papers.exponential_histogram import Rule, estimate, of_wave, sizes, with_one, without_gone, worst


def test_the_papers_example() -> None:
    # Example 1, with k/2 = 1; its text says 2.
    assert sizes(76, Rule(1, 1)) == [32, 16, 8, 8, 4, 4, 2, 1, 1]
    assert sizes(77, Rule(1, 1)) == [32, 16, 8, 8, 4, 4, 2, 2, 1]
    assert sizes(79, Rule(1, 1)) == [32, 16, 16, 8, 4, 2, 1]


def test_a_merged_bucket_has_the_instant_of_the_newer_one() -> None:
    buckets = ((1, 1), (1, 2))
    assert with_one(buckets, 3, Rule(1, 1)) == ((2, 2), (1, 3))
    assert with_one(buckets, 3, Rule(1, 1, older=True)) == ((2, 1), (1, 3))
    assert without_gone(((2, 2), (1, 3)), 2) == ((1, 3),)


def test_a_last_bucket_of_one_counts_in_full() -> None:
    assert estimate(((1, 4),), Rule(1, 1)) == 1
    assert estimate(((4, 4), (1, 5)), Rule(1, 1)) == 3
    assert estimate((), Rule(1, 1)) == 0


@pytest.mark.parametrize("density", [0.9, 0.2])
@pytest.mark.parametrize("error", [0.25, 0.1])
def test_mended_it_keeps_its_bound_and_as_printed_it_does_not(density: float, error: float) -> None:
    instants = np.cumsum(np.random.default_rng(3).geometric(density, 1500)).tolist()
    assert (
        worst(instants, 200, Rule.within(error))[0] <= error < worst(instants, 200, Rule.as_printed(error))[0]
    )


def test_the_wave_keeps_the_same_bound() -> None:
    instants = np.cumsum(np.random.default_rng(3).geometric(0.5, 600)).tolist()
    found, kept = of_wave(instants, 200, "25")
    assert 0 < found <= 0.25
    assert kept > 0
