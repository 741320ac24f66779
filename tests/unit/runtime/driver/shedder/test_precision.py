"""How far bounds are from estimates, and the smallest share that keeps what was promised of that."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.tunings.loss import Loss
from headrace.elements import Batch
from headrace.runtime.driver.shedder.policy import LEAST
from headrace.runtime.driver.shedder.precision import FIRST, least_share, widest, widest_of
from headrace.steps import WHOLE
from how_many import examples

FIVE = Loss(tolerance=Decimal(5))
NAMES = ("k", "n", "n_low", "n_high")


def rows(*given: tuple[int | None, ...]) -> pa.RecordBatch:
    columns = list(zip(*given, strict=True))
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], names=list(NAMES))


def width_of(share: int, values: list[float]) -> float:
    """By brute force: two standard errors of the estimated sum of values, in parts of the sum."""
    p = share / WHOLE
    variance = sum(value * value * (1 - p) / p for value in values)
    return 2 * math.sqrt(variance) / sum(values)


@examples(40, 300)
@given(
    st.lists(st.floats(0.1, 100), min_size=1, max_size=30),
    st.integers(LEAST, WHOLE - 1000),
    st.integers(LEAST, WHOLE - 1000),
)
def test_widths_at_other_shares_are_those_of_the_sum_of_variances(
    values: list[float], share: int, other: int
) -> None:
    width = width_of(share, values)
    assert FIVE.width_at(width, share, other) == pytest.approx(width_of(other, values))
    least = FIVE.least(width, share)
    assert width_of(least, values) <= 0.05 * (1 + 1e-9)
    if least > 2:
        assert width_of(least - 2, values) > 0.05 * (1 - 1e-9)


def test_the_widest_bound_of_all_rows_counts() -> None:
    assert widest_of(rows((1, 100, 90, 110), (2, 100, 80, 105), (3, 0, 0, 0)), [1]) == pytest.approx(0.2)
    assert widest_of(rows((1, 100, 100, 100)), [1]) == 0
    assert widest_of(rows((1, 100, None, None)), [1]) == math.inf
    assert widest_of(rows((1, None, None, None)), [1]) == 0
    assert widest_of(rows((1, 0, 0, 5)), [1]) == math.inf


def test_only_what_was_said_since_an_instant_counts() -> None:
    said = Batch(
        rows((1, 100, 50, 150), (1, 100, 90, 110), (1, 100, 10, 300)),
        np.array([5, 10, 10]),
        np.array([10, 20, 20]),
        np.array([1, 1, -1]),
    )
    assert widest([said], [1], 10) == pytest.approx(0.1)
    assert widest([said], [1], 0) == pytest.approx(0.5)
    # What began before and goes on counts as well.
    assert widest([said], [1], 11) == pytest.approx(0.1)
    assert widest([said], [1], 20) is None
    assert widest([], [1], 0) is None
    assert widest([said], [], 0) is None


def test_the_smallest_share_of_a_promise() -> None:
    assert least_share(FIVE, WHOLE, None) == FIRST
    assert least_share(FIVE, FIRST, None) == FIRST
    assert least_share(FIVE, 500_000, math.inf) == WHOLE
    assert least_share(FIVE, 500_000, 0.0) == LEAST
    # Twice as wide as promised: four times the odds have to go.
    assert least_share(FIVE, 500_000, 0.1) > 800_000
    assert least_share(FIVE, 500_000, 0.049) == 500_000
    assert least_share(FIVE, 500_000, 0.01) < 100_000
    assert least_share(Loss(), 500_000, math.inf) == LEAST
    assert least_share(Loss(), 5_000, None) == 5_000
