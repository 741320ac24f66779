"""The experiments of chapter 24 of the thesis, small: what its text says of them holds here."""

from __future__ import annotations

import pytest

from papers.chapter24 import THESIS, WINDOW, granularity, reductions, seen, window_sizes


@pytest.mark.slow("runs a join for 230 seconds of application time, and two more")
def test_changes_of_windows_are_seen_and_whole_when_the_thesis_says() -> None:
    found = window_sizes(rate=4, step=10)
    assert seen(found) == list(THESIS) == [(110, 140), (180, 210)]
    assert [found[second].valid for second in (79, 145, 215)] == [480, 240, 480]
    # What is gone is kept for a while; it is let go of by itself.
    assert found[149].kept < 0.7 * found[79].kept


def test_coarser_granules_yield_fewer_rows_as_the_equation_says() -> None:
    found = granularity(600, ("1 SECOND", "60 SECONDS"))
    assert found["1 SECOND"][0] > 1 > 0.2 > found["60 SECONDS"][0]
    for measured, expected in found.values():
        assert measured == pytest.approx(expected, rel=0.3)


def test_shorter_windows_keep_all_results_of_close_rows_and_shedding_a_quarter_of_all() -> None:
    found = reductions(seconds=60, rate=40)
    assert all(one.kept == pytest.approx(0.5, rel=0.1) for one in found.values())
    shorter, shed = found["windows of 5 s"].results, found["every other row"].results
    assert shorter == (1.0,) * 5 + (0.0,) * 5
    assert len(shed) == WINDOW
    assert shed == pytest.approx([0.25] * WINDOW, rel=0.3)
