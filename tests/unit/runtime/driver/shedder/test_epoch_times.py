"""What is the same for each epoch is told from what grows with its rows."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.elements import Float64Array
from headrace.runtime.driver.shedder.recent import _epoch_times, _with_epoch_time


def told(work: Float64Array, took: Float64Array) -> tuple[float, float]:
    found = _epoch_times(work, took)
    assert found is not None
    return found


def test_a_line_is_found_again() -> None:
    work = np.array([0.01, 0.05, 0.02, 0.08, 0.03, 0.06])
    each, factor = told(work, 0.2 + 1.5 * work)
    assert each == pytest.approx(0.2)
    assert factor == pytest.approx(1.5)


def test_where_all_epochs_are_alike_it_is_as_was_told_last() -> None:
    work = np.array([0.05, 0.051, 0.049, 0.05, 0.05, 0.052])
    assert _epoch_times(work, 0.2 + work) is None
    each, factor = _with_epoch_time(0.0, work, 0.2 + work)
    assert each == 0
    assert factor == pytest.approx((0.2 * 6 + work.sum()) / work.sum())
    each, factor = _with_epoch_time(0.2, work, 0.2 + 1.5 * work)
    assert each == pytest.approx(0.2)
    assert factor == pytest.approx(1.5)
    each, factor = _with_epoch_time(7.0, work, 0.2 + work)
    assert each < 0.25
    assert factor > 0, "an epoch that takes less than was told takes less for each of its rows, too"


def test_times_that_fall_with_rows_are_the_same_for_each() -> None:
    work = np.array([0.01, 0.05, 0.02, 0.08, 0.03, 0.06])
    each, factor = told(work, 0.3 - work)
    assert factor == 0
    assert each == pytest.approx(0.3 - work.mean())


def test_nothing_is_known_of_epochs_without_rows() -> None:
    assert _epoch_times(np.zeros(8), np.ones(8)) is None
