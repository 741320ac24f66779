"""The counts of rows by the time at which they came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.bounded import Arrivals, judge_in_order
from headrace.runtime.driver.manager.rows_by_time import RowsByTime
from headrace.time import BEGINNING, INFINITY


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=8))
def test_at_the_ends_of_epochs_all_rows_are_counted(epochs: list[list[int]]) -> None:
    known, seen, latest, times = RowsByTime(), Arrivals(), 0, list[int]()
    ends = []
    for steps in epochs:
        rows = (latest + np.cumsum(steps)).tolist()
        latest = rows[-1]
        times += rows
        seen = seen.then(judge_in_order(np.array(rows), BEGINNING, 0).arrivals)
        known.note(seen, latest)
        ends.append(latest)
    assert known.total == len(times)
    # An epoch that begins with rows of the newest instant before it takes these for later ones.
    for end in set(ends):
        exactly = sum(one <= end for one in times)
        first = next(number for number, one in enumerate(ends) if one == end)
        counted = float(known.until(np.array([end], dtype=np.float64))[0])
        later = sum(len(epoch) for epoch in epochs[: first + 1])
        assert later <= counted <= exactly
    assert known.until(np.array([times[0] - 1.0]))[0] == 0
    assert known.rate(latest - times[0] + 1) == pytest.approx(len(times) / (latest - times[0] + 1))


def test_time_without_rows_lowers_the_rate_and_heartbeats_are_time() -> None:
    known = RowsByTime()
    known.note(Arrivals(100, latest=99, earliest=0), 95)
    assert (known.now, known.lag, known.rate(50)) == (99, 4, 1.0)
    known.note(Arrivals(100, latest=99, earliest=0), 149)
    assert (known.now, known.lag, known.rate(100)) == (149, 0, 0.5)
    known.note(Arrivals(100, latest=99, earliest=0), INFINITY)
    assert (known.now, known.lag) == (149, 0)


def test_a_stream_of_which_few_rows_have_come_is_not_fast() -> None:
    known = RowsByTime()
    known.note(Arrivals(3, latest=10, earliest=10), 10)
    assert known.rate(1000) == pytest.approx(0.003)


def test_another_stream_of_the_name_begins_anew() -> None:
    known = RowsByTime()
    known.note(Arrivals(100, latest=99, earliest=0), 99)
    known.note(Arrivals(2, latest=20, earliest=10), 20)
    assert (known.now, known.total) == (20, 2)


def test_old_counts_are_remembered_less_exactly() -> None:
    known = RowsByTime()
    for epoch in range(1, 5_000):
        known.note(Arrivals(epoch * 3, latest=epoch, earliest=1), epoch)
    assert len(known.instants) <= 1025
    assert known.instants[0] == 0
    assert known.instants == sorted(set(known.instants))
    ends = np.array([0, 1, 100, 2_500, 4_999], dtype=np.float64)
    assert known.until(ends).tolist() == [0, 3, 300, 7_500, 14_997]


def test_rows_from_before_a_restart_have_come_as_those_after_it() -> None:
    known = RowsByTime()
    known.note(Arrivals(1_001, latest=100_000, earliest=0), 100_000)
    assert not known.waits(10)
    known.note(Arrivals(1_006, latest=100_005, earliest=0), 100_005)
    assert known.waits(10)
    known.note(Arrivals(1_016, latest=100_015, earliest=0), 100_015)
    assert not known.waits(10)
    assert known.settle()
    assert not known.settle()
    ends = np.array([-1, 0, 99_500, 100_000, 100_015], dtype=np.float64)
    # Without it a hundredth of that would be taken to have come lately.
    assert known.until(ends).tolist() == [0, 0, 501, 1_001, 1_016]


def test_rows_from_before_a_restart_are_as_many_as_they_are() -> None:
    known = RowsByTime()
    known.note(Arrivals(1_000, latest=999, earliest=0), 999)
    known.note(Arrivals(1_001, latest=1_009, earliest=0), 1_009)
    known.note(Arrivals(1_002, latest=1_019, earliest=0), 1_019)
    assert known.settle()
    assert known.until(np.array([-1, 0, 999, 1_019], dtype=np.float64)).tolist() == [0, 900, 1_000, 1_002]


def test_what_is_followed_from_its_beginning_waits_for_nothing() -> None:
    known = RowsByTime()
    known.note(Arrivals(), BEGINNING)
    known.note(Arrivals(10, latest=9, earliest=0), 9)
    known.note(Arrivals(11, latest=10, earliest=0), 10)
    assert not known.waits(1_000)
    assert not known.settle()


def test_a_stream_that_stays_quiet_after_a_restart_is_not_waited_for_without_end() -> None:
    known = RowsByTime()
    known.note(Arrivals(1_000, latest=999, earliest=0), 999)
    known.note(Arrivals(1_000, latest=999, earliest=0), 1_010)
    known.note(Arrivals(1_000, latest=999, earliest=0), 1_080)
    assert known.waits(10)
    known.note(Arrivals(1_000, latest=999, earliest=0), 1_090)
    assert not known.waits(10)
    assert known.settle()
    assert known.total == 1_000


def test_a_row_far_ahead_of_the_others_does_not_lower_the_rate() -> None:
    known = RowsByTime()
    for end in range(10, 1_001, 10):
        known.note(Arrivals(5 * end, latest=end - 1, earliest=0), end - 100)
    assert known.rate(20) == pytest.approx(5)
    known.note(Arrivals(5_001, latest=1_090, earliest=0), 990)
    for more in range(50, 500, 50):
        known.note(Arrivals(5_001 + more, latest=1_090, earliest=0), 990)
        assert known.rate(20) == pytest.approx(5, rel=0.1)


def test_a_rate_is_higher_as_soon_as_more_rows_come() -> None:
    known = RowsByTime()
    known.note(Arrivals(1_000, latest=999, earliest=0), 900)
    known.note(Arrivals(1_500, latest=1_099, earliest=0), 1_000)
    assert known.rate(50) == pytest.approx(5)
