"""Pearson's correlation of pairs of rows of a matrix, over the columns in which both have a value.

Every number is computed in one order of additions, which `headrace.reference.series` defines. Products of
matrices only tell which pairs are looked at: their rounding depends on the library that computes them.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import (
    BYTES2,
    FLOAT,
    FLOAT1,
    FLOAT2,
    INT,
    INT1,
    SINGLE2,
    TRUTH,
    inlined,
    inner,
    kernel,
)

_SMALLEST_SHIFT = -1000
_DOUBTFUL = 1e-4
"""Of a row so small a part of its squares, in the columns of a pair, that products say too little of it."""


@inner
def _scaled(values, both):  # type: ignore[no-untyped-def]
    """Scale the values that count by a power of two, so that the largest is between 1/2 and 1."""
    largest = 0.0
    for place in range(len(values)):
        if both[place]:
            largest = max(largest, abs(values[place]))
    factor = math.ldexp(1.0, -max(math.frexp(largest)[1], _SMALLEST_SHIFT))
    for place in range(len(values)):
        if both[place]:
            values[place] *= factor


@inner
def deviate(values, both, out):  # type: ignore[no-untyped-def]
    """Write the scaled distances from the mean; how many, their sum and the sum of their squares about it.

    The last is 0 where the values do not vary.
    """
    count, total = 0, 0.0
    low, high = np.inf, -np.inf
    for place in range(len(values)):
        if both[place]:
            count += 1
            low, high = min(low, values[place]), max(high, values[place])
            out[place] = values[place]
    if count == 0 or low == high:
        return count, 0.0, 0.0
    _scaled(out, both)
    for place in range(len(values)):
        if both[place]:
            total += out[place]
    mean = total / count
    for place in range(len(values)):
        if both[place]:
            out[place] -= mean
    _scaled(out, both)
    total, squares = 0.0, 0.0
    for place in range(len(values)):
        if both[place]:
            total += out[place]
            squares += out[place] * out[place]
    return count, total, max(squares - total * total / count, 0.0)


@inlined
def _quotient(products, one, other, count):  # type: ignore[no-untyped-def]
    """The correlation of the sum of products, and of (sum, squares) of both rows."""
    found = (products - one[0] * other[0] / count) / (math.sqrt(one[1]) * math.sqrt(other[1]))
    return max(-1.0, min(1.0, found))


@inner
def correlate(left, right):  # type: ignore[no-untyped-def]
    """The correlation of two vectors; NaN where one does not vary, or has a value that is not finite."""
    both = np.ones(len(left), dtype=np.uint8)
    one, other = np.empty(len(left)), np.empty(len(left))
    count, total, squares = deviate(left, both, one)
    _, other_total, other_squares = deviate(right, both, other)
    if not (squares > 0.0 and other_squares > 0.0):
        return np.nan
    products = 0.0
    for place in range(len(left)):
        products += one[place] * other[place]
    return _quotient(products, (total, squares), (other_total, other_squares), count)


@kernel(FLOAT2, BYTES2)
def deviations(
    values: Float64Array, present: np.ndarray
) -> tuple[Float64Array, Int64Array, Float64Array, Float64Array]:
    """The scaled distances of each row's values from their mean.

    Args:
        values: float64[s, g].
        present: uint8[s, g], where there is a value.

    Returns:
        The distances, float64[s, g], 0 where there is no value; how many values, int64[s]; the sums of the
        distances and of their squares about that, float64[s] each, the latter 0 for a row that does not vary.
    """
    rows, columns = values.shape
    found = np.zeros((rows, columns))
    counts = np.zeros(rows, dtype=np.int64)
    totals, squares = np.zeros(rows), np.zeros(rows)
    for row in range(rows):
        counts[row], totals[row], squares[row] = deviate(values[row], present[row], found[row])
    return found, counts, totals, squares


@kernel(SINGLE2, TRUTH, FLOAT, FLOAT)
def beyond(products: np.ndarray, triangle: bool, above: float, below: float) -> Int64Array:
    """The places of a matrix whose numbers are above or below thresholds.

    Args:
        products: float32[n, m].
        triangle: whether only places right of the diagonal count.
        above, below: the thresholds.

    Returns:
        Rows and columns, int64[k, 2], row after row.
    """
    rows, columns = products.shape
    count = 0
    for row in range(rows):
        for column in range(row + 1 if triangle else 0, columns):
            value = products[row, column]
            count += value > above or value < below
    found = np.empty((count, 2), dtype=np.int64)
    count = 0
    for row in range(rows):
        for column in range(row + 1 if triangle else 0, columns):
            value = products[row, column]
            if value > above or value < below:
                found[count, 0], found[count, 1] = row, column
                count += 1
    return found


@kernel(FLOAT2, FLOAT2, FLOAT2, FLOAT2, FLOAT2, FLOAT2, INT, FLOAT, FLOAT)
def beyond_with_gaps(
    counts: Float64Array,
    left: Float64Array,
    right: Float64Array,
    left_squares: Float64Array,
    right_squares: Float64Array,
    products: Float64Array,
    fewest: int,
    above: float,
    below: float,
) -> Int64Array:
    """The pairs of rows whose correlation over the columns that both have may be beyond a threshold.

    Args:
        counts: float64[n, m], in how many columns both have a value.
        left, right: the sums of the values of both there.
        left_squares, right_squares: the sums of their squares.
        products: the sums of their products.
        fewest: in so many columns both must have a value.
        above, below: the thresholds.

    Returns:
        Rows and columns, int64[k, 2], row after row; also those of which the sums say too little.
    """
    rows, columns = counts.shape
    found = np.empty((64, 2), dtype=np.int64)
    used = 0
    for row in range(rows):
        for column in range(columns):
            count = counts[row, column]
            if count < fewest:
                continue
            one = left_squares[row, column] - left[row, column] ** 2 / count
            other = right_squares[row, column] - right[row, column] ** 2 / count
            if one > _DOUBTFUL and other > _DOUBTFUL:
                both = products[row, column] - left[row, column] * right[row, column] / count
                value = both / math.sqrt(one * other)
                if not (value > above or value < below):
                    continue
            if used == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[used, 0], found[used, 1] = row, column
            used += 1
    return found[:used].copy()


@kernel(FLOAT2, FLOAT1, FLOAT1, FLOAT2, FLOAT1, FLOAT1, INT1, INT1)
def whole_correlations(
    left: Float64Array,
    left_totals: Float64Array,
    left_squares: Float64Array,
    right: Float64Array,
    right_totals: Float64Array,
    right_squares: Float64Array,
    rows: Int64Array,
    others: Int64Array,
) -> Float64Array:
    """Correlations of pairs of rows that have a value in every column.

    Args:
        left, left_totals, left_squares: what `deviations` gives of the one matrix.
        right, right_totals, right_squares: of the other one.
        rows, others: int64[k], the pairs.

    Returns:
        float64[k].
    """
    found = np.empty(len(rows))
    for pair in range(len(rows)):
        row, other = rows[pair], others[pair]
        products = 0.0
        for column in range(left.shape[1]):
            products += left[row, column] * right[other, column]
        one = left_totals[row], left_squares[row]
        found[pair] = _quotient(products, one, (right_totals[other], right_squares[other]), left.shape[1])
    return found


@kernel(FLOAT2, BYTES2, FLOAT2, BYTES2, INT1, INT1, INT)
def common_correlations(
    left: Float64Array,
    left_present: np.ndarray,
    right: Float64Array,
    right_present: np.ndarray,
    rows: Int64Array,
    others: Int64Array,
    fewest: int,
) -> Float64Array:
    """Correlations of pairs of rows over the columns in which both have a value.

    Args:
        left, right: float64[s, g], the values themselves.
        left_present, right_present: uint8[s, g], where there are values.
        rows, others: int64[k], the pairs.
        fewest: in so many columns both must have a value.

    Returns:
        float64[k], NaN where there are fewer columns, or one of the rows does not vary in them.
    """
    found = np.full(len(rows), np.nan)
    one, another = np.empty(left.shape[1]), np.empty(left.shape[1])
    for pair in range(len(rows)):
        row, other = rows[pair], others[pair]
        both = left_present[row] & right_present[other]
        count, total, squares = deviate(left[row], both, one)
        _, other_total, other_squares = deviate(right[other], both, another)
        if count < fewest or not (squares > 0.0 and other_squares > 0.0):
            continue
        products = 0.0
        for column in range(left.shape[1]):
            if both[column]:
                products += one[column] * another[column]
        found[pair] = _quotient(products, (total, squares), (other_total, other_squares), count)
    return found


@kernel(INT1, INT1, FLOAT1, INT1)
def means_of_steps(
    series: Int64Array, steps: Int64Array, values: Float64Array, counts: Int64Array
) -> tuple[Int64Array, Float64Array]:
    """The means of neighbours that are of one series and one step.

    Args:
        series, steps: int64[n], sorted by both.
        values: float64[n], the smallest first within a series and a step.
        counts: int64[n], how often each is there, once or more.

    Returns:
        The first row of each mean, int64[k], and the means, float64[k].
    """
    first, means = np.empty(len(series), dtype=np.int64), np.empty(len(series))
    found, total, count = 0, 0.0, np.int64(0)
    for row in range(len(series)):
        if row == 0 or series[row] != series[row - 1] or steps[row] != steps[row - 1]:
            first[found] = row
            found, total, count = found + 1, 0.0, np.int64(0)
        for _ in range(counts[row]):
            total += values[row]
        count += counts[row]
        means[found - 1] = total / count
    return first[:found].copy(), means[:found].copy()
