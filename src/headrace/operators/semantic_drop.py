"""The rows whose values are worth enough to be kept."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.nodes import SemanticDrop
from headrace.elements import Batch, BoolArray, Float64Array
from headrace.schema import BIGINT, DOUBLE
from headrace.steps import values_at
from headrace.value_graph import ValuesBetween

BANDS: Final = 100
"""Utility is counted in so many bands of equal width, and those that are worth 1 by themselves."""
_COUNTED: Final = 4096
"""Of more rows in a batch some are drawn."""
_ROUNDING: Final = 1e-9
"""So far below the beginning of a band a number belongs to it: it was rounded."""


def dropped(node: SemanticDrop, batch: Batch) -> Batch:
    """The rows that are kept: those whose value is not among the ones that are left out at their instant.

    A retraction has the value and the instant of what it retracts, and so is kept where that was.

    Args:
        node: the plan node.
        batch: chronons.
    """
    if not node.steps or not len(batch):
        return batch
    values, thresholds = batch.payload.columns[node.place], values_at(0, node.steps, batch.ts)
    kept = np.ones(len(batch), dtype=np.bool_)
    for threshold in np.unique(thresholds).tolist():
        for between in node.graph.left_out(threshold):
            kept &= ~(_lies(values, between) & (thresholds == threshold))
    return batch.filter(kept)


def worths(node: SemanticDrop, batch: Batch) -> Float64Array:
    """float64[2, BANDS + 2]: about how many rows of each band of utility there are, and their utility in all.

    The last column is of rows that have no utility, NULL and NaN, which are kept.

    Args:
        node: the plan node.
        batch: its input, which has rows.
    """
    values, each = batch.payload.columns[node.place], 1.0
    if len(batch) > _COUNTED:
        # Which ones are drawn depends on the number of rows alone, and their order has nothing to do with it.
        drawn = np.random.default_rng(len(batch)).integers(0, len(batch), _COUNTED)
        values, each = values.take(pa.array(drawn)), len(batch) / _COUNTED
    numbers = values.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy(zero_copy_only=False)
    utilities = node.graph.utilities(numbers)
    known = ~np.isnan(utilities)
    utilities = np.where(known, utilities, 0.0)
    bands = np.where(known, (BANDS * (utilities + _ROUNDING)).astype(np.int64), BANDS + 1)
    rows = np.bincount(bands, minlength=BANDS + 2)
    return each * np.array([rows, np.bincount(bands, weights=utilities, minlength=BANDS + 2)])


def _lies(values: pa.Array, between: ValuesBetween) -> BoolArray:
    """bool[n]: whether each of n values lies between two numbers; NULL and NaN do not.

    The numbers are compared exactly: as the nearest ones of the column's type.
    """
    low, high = between
    inside: BoolArray = values.is_valid().to_numpy(zero_copy_only=False)
    if values.type == DOUBLE:
        doubles = values.fill_null(math.nan).to_numpy(zero_copy_only=False)
        inside = inside & ~np.isnan(doubles)
        inside &= True if low is None else doubles > _double(low, -math.inf)
        return inside & (True if high is None else doubles < _double(high, math.inf))
    if values.type == BIGINT:
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        inside = inside & (True if low is None else numbers > math.floor(low))
        return inside & (True if high is None else numbers < math.ceil(high))
    precision, scale = values.type.precision, values.type.scale
    for compare, bound in (
        (pc.greater, None if low is None else math.floor(low * 10**scale)),
        (pc.less, None if high is None else math.ceil(high * 10**scale)),
    ):
        if bound is not None:
            found = compare(values, _decimal(bound, precision, scale)).fill_null(False)
            inside = inside & found.to_numpy(zero_copy_only=False)
    return inside


def _decimal(units: int, precision: int, scale: int) -> Any:
    """A whole number of the units of a DECIMAL, or one beyond all of them where it is."""
    most = 10**precision
    nearest = Decimal(max(-most, min(units, most))).scaleb(-scale, Context(prec=precision + 1))
    return pa.scalar(nearest, pa.decimal256(precision + 1, scale))


def _double(bound: Fraction, way: float) -> float:
    """The nearest double to a number, the number itself included, on the way to one of the infinities."""
    try:
        nearest = float(bound)
    except OverflowError:
        nearest = math.inf if bound > 0 else -math.inf
    if math.isfinite(nearest) and Fraction(nearest) == bound:
        return nearest
    beyond = nearest > 0 if math.isinf(nearest) else Fraction(nearest) > bound
    return nearest if beyond == (way > 0) else math.nextafter(nearest, way)
