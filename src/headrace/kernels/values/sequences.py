"""Statistics of values in an order: how they go on, and averages in which the last ones count most."""

from __future__ import annotations

import math

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import FLOAT, FLOAT1, INT, INT1, TRUTH, kernel
from headrace.kernels.values.correlations import correlate


@kernel(INT1, FLOAT1, INT)
def autocorrelations(offsets: Int64Array, values: Float64Array, lag: int) -> Float64Array:
    """The correlation of each sequence with itself, so many places later.

    Args:
        offsets: int64[n + 1], where the sequences begin among the values, and where the last one ends.
        values: float64[v].
        lag: by how many places, 1 or more.

    Returns:
        float64[n]; NaN where a sequence does not vary, or is too short.
    """
    found = np.full(len(offsets) - 1, np.nan)
    for place in range(len(offsets) - 1):
        start, end = offsets[place], offsets[place + 1]
        if end - start >= lag + 2:
            found[place] = correlate(values[start : end - lag], values[start + lag : end])
    return found


@kernel(INT1, FLOAT1, FLOAT, TRUTH)
def weighted(offsets: Int64Array, values: Float64Array, alpha: float, deviation: bool) -> Float64Array:
    """The exponentially weighted mean of each sequence, or the deviation of a sample from it.

    The last value has weight 1, and each one before it `1 - alpha` times that of the one after it. The
    deviation is that of pandas' `ewm(alpha=alpha).std()`: unbiased where weights say how reliable values are.

    Args:
        offsets: int64[n + 1], where the sequences begin among the values, and where the last one ends.
        values: float64[v].
        alpha: above 0, and up to 1.
        deviation: whether the deviation is wanted.

    Returns:
        float64[n]; NaN for the mean of none, and for the deviation of fewer than two.
    """
    found = np.full(len(offsets) - 1, np.nan)
    rest = 1.0 - alpha
    for place in range(len(offsets) - 1):
        start, end = offsets[place], offsets[place + 1]
        if end == start:
            continue
        total, weight, squares = 0.0, 0.0, 0.0
        low, high = values[start], values[start]
        for at in range(start, end):
            total = total * rest + values[at]
            weight = weight * rest + 1.0
            squares = squares * rest * rest + 1.0
            low, high = min(low, values[at]), max(high, values[at])
        mean = total / weight
        if not deviation:
            found[place] = mean
            continue
        spare = weight * weight - squares
        if spare <= 0.0:
            continue
        spread = 0.0
        for at in range(start, end):
            spread = spread * rest + (values[at] - mean) * (values[at] - mean)
        found[place] = 0.0 if low == high else math.sqrt(spread * weight / spare)
    return found
