"""Distances between sequences by their shapes: values that are as far from their mean, in deviations.

Every number is computed in one order of additions, which `headrace.reference.series` defines.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import FLOAT1, INT1, inner, kernel
from headrace.kernels.values.correlations import deviate


@inner
def _standardise(values, out):  # type: ignore[no-untyped-def]
    """Write the distances from the mean in deviations of the values; whether they vary."""
    count, _, squares = deviate(values, np.ones(len(values), dtype=np.uint8), out)
    if not squares > 0.0:
        return False
    factor = math.sqrt(count / squares)
    for place in range(len(out)):
        out[place] *= factor
    return True


@inner
def _distance(one, one_varies, other, other_varies):  # type: ignore[no-untyped-def]
    """The distance of standardised values; 0 where none varies, as if half correlated where one does not."""
    if not (one_varies and other_varies):
        return 0.0 if one_varies == other_varies else math.sqrt(len(one))
    total = 0.0
    for place in range(len(one)):
        total += (one[place] - other[place]) * (one[place] - other[place])
    return math.sqrt(total)


@kernel(INT1, FLOAT1, INT1, FLOAT1)
def shape_distances(
    offsets: Int64Array, values: Float64Array, pattern_offsets: Int64Array, patterns: Float64Array
) -> Float64Array:
    """The distance of the last values of each sequence from a pattern, by their shapes.

    Args:
        offsets: int64[n + 1], where the sequences begin among the values, and where the last one ends.
        values: float64[v], all finite.
        pattern_offsets, patterns: the same of n patterns.

    Returns:
        float64[n]; NaN where a pattern has fewer than two values, or more than its sequence.
    """
    found = np.full(len(offsets) - 1, np.nan)
    for row in range(len(found)):
        pattern = patterns[pattern_offsets[row] : pattern_offsets[row + 1]]
        length = len(pattern)
        if length < 2 or length > offsets[row + 1] - offsets[row]:
            continue
        one, other = np.empty(length), np.empty(length)
        varies = _standardise(values[offsets[row + 1] - length : offsets[row + 1]], one)
        found[row] = _distance(one, varies, other, _standardise(pattern, other))
    return found


@kernel(INT1, FLOAT1, INT1)
def discords(offsets: Int64Array, values: Float64Array, lengths: Int64Array) -> Float64Array:
    """The distance of the last values of each sequence from the most alike before them, by their shapes.

    Compared are all runs of as many values that begin more than a quarter of them earlier, so that no run
    is compared with itself a few places on: what is found is the last value of the left matrix profile
    (Yeh and others, ICDM 2016).

    Args:
        offsets: int64[n + 1], where the sequences begin among the values, and where the last one ends.
        values: float64[v], all finite.
        lengths: int64[n], how many of the last values are looked at.

    Returns:
        float64[n]; NaN where fewer than two are, or there is no run before them.
    """
    found = np.full(len(offsets) - 1, np.nan)
    for row in range(len(found)):
        start, end, length = offsets[row], offsets[row + 1], lengths[row]
        if length < 2 or length >= end - start:
            continue
        one, other = np.empty(length), np.empty(length)
        varies = _standardise(values[end - length : end], one)
        apart = -(-length // 4) + 1
        for place in range(start, end - length - apart + 1):
            distance = _distance(one, varies, other, _standardise(values[place : place + length], other))
            if not found[row] <= distance:
                found[row] = distance
    return found
