"""Arithmetic on double-doubles: pairs of a high and a low part with about 32 digits (Dekker 1971)."""

from __future__ import annotations

from typing import Final

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.timeline import Float64Array

Pair = tuple[Float64Array, Float64Array]
"""The high and the low part of each number; float64[n] each."""

_SPLITTER: Final = 134217729.0


def two_product(left: Float64Array, right: Float64Array) -> Pair:
    """The product of doubles and its rounding error (Veltkamp's splitting)."""
    product = left * right
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    error = (left_high * right_high - product) + left_high * right_low + left_low * right_high
    error = error + left_low * right_low
    return product, np.where(np.isfinite(error), error, 0.0)


def centred(left: Pair, right: Pair, products: Pair, count: Int64Array) -> Float64Array:
    """The sum of the products of the distances from the means.

    Args:
        left, right: the sums of both columns.
        products: the sum of their products.
        count: int64[n], how many values were summed.

    Returns:
        float64[n]; where the count is 0, anything.
    """
    mean_high = left[0] / count
    back, back_error = two_product(mean_high, count.astype(np.float64))
    # The mean's own rounding error: without it the difference below loses half its digits.
    mean_low = ((left[0] - back) - back_error + left[1]) / count
    product, error = two_product(mean_high, right[0])
    rest = right[1] * mean_high + error + mean_low * right[0]
    result: Float64Array = (products[0] - product) + (products[1] - rest)
    return result


def _halves(values: Float64Array) -> Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * _SPLITTER
        high = scaled - (scaled - values)
    return high, values - high
