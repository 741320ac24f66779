"""The values of aggregates, read off exact sums (`accumulators`) and rounded once."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Float64Array, Int64Array
from headrace.errors import ExecutionError
from headrace.expressions.aggregates.functions import REGRESSIONS
from headrace.expressions.tree import AggregateCall
from headrace.kernels.numbers.integers import LIMB_BITS, MASK
from headrace.kernels.numbers.rounding import (
    rounded_correlations,
    rounded_means,
    rounded_spreads,
    rounded_sums,
)
from headrace.operators.aggregates.accumulators import SumLayout, Sums, identity_of
from headrace.operators.state.sum_columns import SumColumns
from headrace.schema import BIGINT, DOUBLE, decimal, most_digits

_UNIT: Final = -1074
"""The exponent of the unit of doubles' limbs: that of the smallest double."""
_MOST_ROWS: Final = 2**31
"""Of so many values, sums of limbs no longer fit into 64 bits."""


def evaluate(layout: SumLayout, call: AggregateCall, sums: SumColumns) -> pa.Array:
    """The value of an invertible aggregate for each row of sums.

    Raises:
        ExecutionError: an exact sum does not fit its type, or there are too many values.
    """
    identity = identity_of(call)
    if identity is None:
        return pa.array(sums.values[:, 0])
    entry = next(
        entry for entry in layout.sums if (entry.argument, entry.partners, entry.distinct) == identity
    )
    count = np.ascontiguousarray(sums.values[:, entry.ints])
    if (entry.floating or entry.products) and (count >= _MOST_ROWS).any():
        raise ExecutionError(
            f"{call.function} takes fewer than {_MOST_ROWS} values at an instant",
            hint="take a shorter window, or group by more columns",
        )
    match call.function:
        case "COUNT":
            return pa.array(count)
        case "SUM":
            return _sum(entry, call.type, sums, count)
        case "AVG":
            return _average(entry, sums, count)
        case "BOOL_AND":
            return pa.array(sums.values[:, entry.ints + 1] == count, mask=count == 0)
        case "BOOL_OR":
            return pa.array(sums.values[:, entry.ints + 1] > 0, mask=count == 0)
        case "CORR":
            return _correlation(entry, sums, count)
        case function if function in REGRESSIONS:
            return _regression(entry, function, sums, count)
        case function:
            return _spread(entry, function, sums, count)


def _sum(entry: Sums, dtype: pa.DataType, sums: SumColumns, count: Int64Array) -> pa.Array:
    if not entry.exact:
        return pa.array(_floating_sum(entry, sums), DOUBLE, mask=count == 0)
    limbs = _carried(entry, sums)
    if dtype == BIGINT:
        if ((limbs[-1] < -(2**31)) | (limbs[-1] >= 2**31)).any():
            raise ExecutionError(
                "SUM overflows BIGINT", hint="sum a DOUBLE or a DECIMAL: SUM(CAST(x AS DECIMAL(38, 0)))"
            )
        return pa.array((limbs[1] << LIMB_BITS) | limbs[0], BIGINT, mask=count == 0)
    total = _decimal(limbs, dtype)
    if len(total) and len(pc.max(pc.abs(total)).as_py().as_tuple().digits) > dtype.precision:
        raise ExecutionError(f"SUM overflows DECIMAL({dtype.precision}, {dtype.scale})")
    return pc.if_else(pa.array(count == 0), pa.scalar(None, dtype), total.cast(dtype))


def _carried(entry: Sums, sums: SumColumns) -> list[Int64Array]:
    """The limbs of the sums, each but the last brought into 0 .. 2^32 - 1."""
    limbs = [sums.values[:, entry.ints + 1 + place].copy() for place in range(entry.exact)]
    for place in range(entry.exact - 1):
        limbs[place + 1] += limbs[place] >> LIMB_BITS
        limbs[place] &= MASK
    return limbs


def _decimal(limbs: list[Int64Array], dtype: pa.DataType) -> pa.Array:
    """The sums as DECIMALs of as many digits as their bytes hold, with the type's scale."""
    most = most_digits(dtype)
    if ((limbs[-1] < -(2**31)) | (limbs[-1] >= 2**31)).any():
        raise ExecutionError(f"SUM overflows DECIMAL({most}, {dtype.scale})")
    words = np.column_stack([(high << LIMB_BITS) | low for low, high in pairwise(limbs)][::2])
    buffers = [None, pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(decimal(most, dtype.scale), len(words), buffers)


def _average(entry: Sums, sums: SumColumns, count: Int64Array) -> pa.Array:
    """A sum of doubles divided by the count; of integers and decimals the exact quotient, rounded once."""
    if entry.exact:
        values = _quotients(entry, sums, count)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = _floating_sum(entry, sums) / count
    return pa.array(values, DOUBLE, mask=count == 0)


def _quotients(entry: Sums, sums: SumColumns, count: Int64Array) -> Float64Array:
    """Sums of integers or decimals divided by their counts."""
    low, high, *more = _carried(entry, sums)
    if not more and (abs(high) < 2**20).all():
        # The sums are doubles, so that the division alone rounds.
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(((high << LIMB_BITS) + low) / count)
    return rounded_means(*_values(entry, sums, 0), count, _scale(entry, 1))


def _floating_sum(entry: Sums, sums: SumColumns) -> Float64Array:
    # Where nothing was added up but what is NULL there is no limb.
    is_there = sums.has_term(entry.terms)
    total = rounded_sums(*sums.of_term(entry.terms), _UNIT) if is_there else np.zeros(len(sums))
    if not sums.has_term(entry.odd):
        return total
    nan, up, down = (count > 0 for count in _odd_counts(entry, sums))
    total = np.where(up, np.inf, np.where(down, -np.inf, total))
    return np.where(nan | (up & down), np.nan, total)


def _odd_counts(entry: Sums, sums: SumColumns) -> Int64Array:
    """How many NaNs, infinities and negative infinities are among those summed; int64[3, n]."""
    places, counts = sums.of_term(entry.odd)
    result = np.zeros((3, len(sums)), dtype=np.int64)
    result[places] = counts
    return result


def _odd(entry: Sums, sums: SumColumns) -> BoolArray:
    """Where a value that is not finite is among those summed."""
    return np.asarray(_odd_counts(entry, sums).any(axis=0))


def _values(entry: Sums, sums: SumColumns, place: int) -> tuple[Int64Array, Int64Array]:
    """The sum of the values of one of the inputs, as places and limbs."""
    if entry.exact:
        at = entry.ints + 1
        return np.arange(entry.exact), np.ascontiguousarray(sums.values.T[at : at + entry.exact])
    return sums.of_term(entry.terms + place)


def _products(entry: Sums, sums: SumColumns, place: int) -> tuple[Int64Array, Int64Array]:
    return sums.of_term(entry.terms + entry.linear + place)


def _scale(entry: Sums, power: int) -> Int64Array:
    """The limbs of what the unscaled sums of decimals, or of their products, are too large by."""
    dtype = entry.argument.type
    scale = 10 ** (power * dtype.scale) if pa.types.is_decimal(dtype) else 1
    limbs = [scale >> shift & MASK for shift in range(0, scale.bit_length(), LIMB_BITS)]
    return np.array(limbs, dtype=np.int64)


def _spread(entry: Sums, function: str, sums: SumColumns, count: Int64Array) -> pa.Array:
    """Variance, its root or covariance; of a sample, NULL for fewer than two values (Spark SQL)."""
    fewest = 1 if function.endswith("_POP") else 2
    left = _values(entry, sums, 0)
    right = _values(entry, sums, 1) if entry.partners else left
    products = _products(entry, sums, 2 if entry.partners else 0)
    unit = 2 * _UNIT if entry.floating else 0
    divisors = count * (count + 1 - fewest)
    values = rounded_spreads(
        count, divisors, *left, *right, *products, _scale(entry, 2), unit,
        function.startswith("STDDEV"),
    )  # fmt: skip
    return pa.array(np.where(_odd(entry, sums), np.nan, values), DOUBLE, mask=count < fewest)


def _regression(entry: Sums, function: str, sums: SumColumns, count: Int64Array) -> pa.Array:
    """A statistic of the line through the points; made of sums and means that are rounded once each."""
    if function == "REGR_COUNT":
        return pa.array(count)
    if function == "REGR_R2":
        found = _correlation(entry, sums, count)
        level = np.asarray(_deviations(entry, sums, count, 0) == 0)
        varies = np.asarray(_deviations(entry, sums, count, 1) > 0)
        square = np.asarray(found.fill_null(math.nan).to_numpy()) ** 2
        values = np.where(level & varies & ~_odd(entry, sums), 1.0, square)
        return pa.array(values, DOUBLE, mask=~(varies | (_odd(entry, sums) & (count > 0))))
    with np.errstate(invalid="ignore", divide="ignore"):
        values, known = _of_line(entry, function, sums, count)
    odd = _odd(entry, sums)
    return pa.array(np.where(odd, np.nan, values), DOUBLE, mask=(count == 0) | ~(known | odd))


def _of_line(
    entry: Sums, function: str, sums: SumColumns, count: Int64Array
) -> tuple[Float64Array, BoolArray]:
    """The values of a statistic of the line, and where it has one."""
    always: BoolArray = count > 0
    if function in _BY_PLACE:
        return _deviations(entry, sums, count, _BY_PLACE[function]), always
    y, x = (rounded_sums(*_values(entry, sums, place), _UNIT) / count for place in (0, 1))
    if function in ("REGR_AVGX", "REGR_AVGY"):
        return x if function == "REGR_AVGX" else y, always
    width = _deviations(entry, sums, count, 1)
    slope = _deviations(entry, sums, count, 2) / width
    return slope if function == "REGR_SLOPE" else y - slope * x, width > 0


_BY_PLACE: Final = {"REGR_SYY": 0, "REGR_SXX": 1, "REGR_SXY": 2}
"""Which of the products a sum of squares or products about the means is of."""


def _deviations(entry: Sums, sums: SumColumns, count: Int64Array, place: int) -> Float64Array:
    """The sum of squares of a column about its mean, 0 or 1, or of the products of both, 2."""
    left, right = (_values(entry, sums, side) for side in ((0, 0), (1, 1), (0, 1))[place])
    products = _products(entry, sums, place)
    return rounded_spreads(count, count, *left, *right, *products, _scale(entry, 2), 2 * _UNIT, False)


def _correlation(entry: Sums, sums: SumColumns, count: Int64Array) -> pa.Array:
    """CORR is NULL where a column does not vary."""
    terms = [_values(entry, sums, 0), _values(entry, sums, 1)]
    terms += [_products(entry, sums, place) for place in range(3)]
    values, still = rounded_correlations(count, *(part for term in terms for part in term))
    odd = _odd(entry, sums)
    return pa.array(np.where(odd, np.nan, values), DOUBLE, mask=(count < 2) | (still & ~odd))
