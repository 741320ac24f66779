"""Aggregates over the values of a group in an order: AUTOCORR, EWMA and EWM_STDDEV."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array
from headrace.expressions.tree import AggregateCall, Literal
from headrace.kernels.values.sequences import autocorrelations, weighted
from headrace.schema import DOUBLE

ORDERED: Final = ("AUTOCORR", "EWMA", "EWM_STDDEV")
"""Their names."""


def ordered_values(call: AggregateCall, offsets: Int64Array, values: pa.Array) -> pa.Array:
    """The aggregate of each sequence.

    Args:
        call: which aggregate.
        offsets: int64[n + 1], where the sequences begin among the values, and where the last one ends.
        values: DOUBLE.
    """
    (constant,) = call.others
    assert isinstance(constant, Literal)
    numbers = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
    lengths = np.diff(offsets)
    if call.function == "AUTOCORR":
        assert isinstance(constant.value, int)
        found = autocorrelations(offsets, numbers, constant.value)
        missing = np.isnan(found) & ~_has_odd(offsets, numbers)
        return pa.array(found, DOUBLE, mask=missing | (lengths < constant.value + 2))
    assert isinstance(constant.value, float)
    deviation = call.function == "EWM_STDDEV"
    found = weighted(offsets, numbers, constant.value, deviation)
    odd = _has_odd(offsets, numbers)
    few = lengths < (2 if deviation else 1)
    return pa.array(np.where(odd, np.nan, found), DOUBLE, mask=few | (np.isnan(found) & ~odd))


def _has_odd(offsets: Int64Array, values: np.ndarray) -> np.ndarray:
    """Whether a sequence has a value that is not finite; bool[n]."""
    so_far = np.append(0, np.cumsum(~np.isfinite(values)))
    return np.asarray(np.diff(so_far[offsets]) > 0)
