"""What a run has counted, smoothed."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.runtime.driver.facts.statistics import HALF_LIFE, KeyedSums


def test_an_epoch_counts_half_after_a_half_life() -> None:
    tally = KeyedSums.of(1).keyed(("a",)).after(1.0, np.array([[8.0]]))
    assert tally.recent.tolist() == [[1.0, 8.0]]
    tally = tally.after(HALF_LIFE, np.array([[2.0]]))
    assert tally.total.tolist() == [[1.0 + HALF_LIFE, 10.0]]
    assert tally.recent.tolist() == [[0.5 + HALF_LIFE, 6.0]]


def test_a_steady_rate_is_found_whatever_the_epochs_lengths() -> None:
    tally = KeyedSums.of(1).keyed(("a",))
    for passed in (0.1, 5.0, 0.0, 40.0, 3.0):
        tally = tally.after(passed, np.array([[7.0 * passed]]))
    passed, rows = tally.recent[0]
    assert rows / passed == pytest.approx(7.0)


def test_sums_follow_their_keys() -> None:
    tally = KeyedSums.of(1).keyed(("a", "b")).after(1.0, np.array([[1.0], [2.0]]))
    moved = tally.keyed(("b", "c"))
    assert moved.total.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert moved.recent.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert tally.keyed(("a", "b")) is tally


def test_what_was_dropped_begins_anew() -> None:
    tally = KeyedSums.of(1).keyed(("a",)).after(1.0, np.array([[1.0]]))
    assert tally.keyed(()).keyed(("a",)).total.tolist() == [[0.0, 0.0]]
