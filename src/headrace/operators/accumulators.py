"""Aggregates as sums: what each one adds up per element, and how its value is read off the sums.

COUNT, SUM, AVG, STDDEV and VARIANCE are invertible: a retraction subtracts what an insertion added. Integers
and decimals are summed exactly, as 32-bit limbs in 64-bit counters, so that only the *result* can overflow,
never an intermediate sum. Floating values are summed as double-doubles (Dekker 1971; Knuth's two-sum), with
NaN and infinities counted apart, so that one that leaves takes no other value with it. MIN and MAX keep the
live values instead (`extremes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array, integers
from headrace.errors import ExecutionError
from headrace.expressions.tree import AggregateCall, Expression
from headrace.kernels.timeline import Float64Array
from headrace.operators.keys import normalise
from headrace.schema import BIGINT, DOUBLE

_MASK: Final = 0xFFFFFFFF
_SPLITTER: Final = 134217729.0


@dataclass(frozen=True)
class Sums:
    """Which columns of a sum matrix belong to one argument.

    Attributes:
        argument: what is summed; None for the row count.
        squares: whether the squares are summed too (STDDEV, VARIANCE).
        exact: the number of 32-bit limbs, 0 for floating sums or where only a count is kept.
        floating: whether a double-double sum is kept.
        ints, floats: the first column of each kind.
    """

    argument: Expression | None
    exact: int
    floating: bool
    squares: bool
    ints: int
    floats: int

    @property
    def int_columns(self) -> int:
        """How many int64 columns it has: the count, the limbs or the three non-finite counts."""
        return 1 + self.exact + (3 if self.floating else 0)

    @property
    def float_columns(self) -> int:
        """How many float64 columns it has: a pair per double-double."""
        return (2 if self.floating else 0) + (2 if self.squares else 0)


@dataclass(frozen=True)
class SumLayout:
    """All sums of an aggregation; column 0 of the integers is the number of rows.

    Attributes:
        sums: one entry per distinct argument.
        int_width, float_width: the widths of the two matrices.
    """

    sums: tuple[Sums, ...]
    int_width: int
    float_width: int


def is_invertible(call: AggregateCall) -> bool:
    """Whether the aggregate is read off sums; MIN and MAX are not."""
    return call.function not in ("MIN", "MAX")


def layout_of(calls: tuple[AggregateCall, ...]) -> SumLayout:
    """The columns needed for all invertible aggregates, shared where their arguments are equal."""
    needs: dict[Expression, set[str]] = {}
    for call in calls:
        if is_invertible(call) and call.argument is not None:
            needs.setdefault(call.argument, set()).add(call.function)
    ints, floats, sums = 1, 0, []
    for argument, functions in needs.items():
        squares = bool(functions & {"STDDEV", "VARIANCE"})
        added = bool(functions & {"SUM", "AVG"})
        limbs = _limbs(argument.type) if added else 0
        floating = squares or (added and limbs == 0)
        entry = Sums(argument, limbs, floating, squares, ints, floats)
        sums.append(entry)
        ints += entry.int_columns
        floats += entry.float_columns
    return SumLayout(tuple(sums), ints, floats)


def _limbs(dtype: pa.DataType) -> int:
    if pa.types.is_decimal(dtype):
        return 4
    return 0 if dtype == DOUBLE else 2


def accumulate(
    layout: SumLayout, arguments: list[pa.Array], w: Int64Array
) -> tuple[Int64Array, Float64Array]:
    """What each element adds to the sums.

    Args:
        layout: the columns.
        arguments: one column per entry of `layout.sums`, n rows.
        w: int64[n], multiplicities.

    Returns:
        int64[n, int_width] and float64[n, float_width].
    """
    ints = np.zeros((len(w), layout.int_width), dtype=np.int64)
    floats = np.zeros((len(w), layout.float_width), dtype=np.float64)
    ints[:, 0] = w
    for entry, column in zip(layout.sums, arguments, strict=True):
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        weights = w * valid
        at = entry.ints
        ints[:, at] = weights
        for limb, part in enumerate(_split_exact(column, entry.exact), at + 1):
            ints[:, limb] = part * weights
        if entry.floating:
            _add_floating(entry, column, weights, ints, floats)
    return ints, floats


def _split_exact(column: pa.Array, limbs: int) -> list[Int64Array]:
    """32-bit limbs of integers or unscaled decimals, lowest first; the last one is signed."""
    if limbs == 0:
        return []
    if limbs == 2:
        values = integers(column.fill_null(0)) if column.null_count else integers(column)
        return [values & _MASK, values >> 32]
    if len(column) == 0:
        return [np.empty(0, dtype=np.int64)] * 4
    column = column.fill_null(pa.scalar(0).cast(column.type)) if column.null_count else column
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    low, high = words[:, 0], words[:, 1]
    return [low & _MASK, (low >> 32) & _MASK, high & _MASK, high >> 32]


def _add_floating(
    entry: Sums, column: pa.Array, weights: Int64Array, ints: Int64Array, floats: Float64Array
) -> None:
    values = np.asarray(column.cast(DOUBLE, safe=False).fill_null(0.0).to_numpy(zero_copy_only=False))
    at = entry.ints + 1 + entry.exact
    for place, special in enumerate((np.isnan(values), np.isposinf(values), np.isneginf(values))):
        ints[:, at + place] = weights * special
    finite = np.where(np.isfinite(values), values, 0.0)
    scale = weights.astype(np.float64)
    # A multiplicity is a small integer: the product with it is split, so that it is exact.
    floats[:, entry.floats], floats[:, entry.floats + 1] = _two_product(finite, scale)
    if entry.squares:
        high, low = _two_product(finite, finite)
        floats[:, entry.floats + 2], floats[:, entry.floats + 3] = high * scale, low * scale


def evaluate(layout: SumLayout, call: AggregateCall, ints: Int64Array, floats: Float64Array) -> pa.Array:
    """The value of an invertible aggregate for each row of sums.

    Raises:
        ExecutionError: an exact sum does not fit its type.
    """
    if call.argument is None:
        return pa.array(ints[:, 0])
    entry = next(entry for entry in layout.sums if entry.argument == call.argument)
    count = ints[:, entry.ints]
    match call.function:
        case "COUNT":
            return pa.array(count)
        case "SUM":
            return _sum(entry, call.type, ints, floats, count)
        case "AVG":
            return _average(entry, ints, floats, count)
        case _:
            return _spread(entry, call.function, ints, floats, count)


def _sum(
    entry: Sums, dtype: pa.DataType, ints: Int64Array, floats: Float64Array, count: Int64Array
) -> pa.Array:
    if not entry.exact:
        return pa.array(_floating_sum(entry, ints, floats), DOUBLE, mask=count == 0)
    limbs = _carried(entry, ints)
    if dtype == BIGINT:
        if ((limbs[-1] < -(2**31)) | (limbs[-1] >= 2**31)).any():
            raise ExecutionError(
                "SUM overflows BIGINT", hint="sum a DOUBLE or a DECIMAL: SUM(CAST(x AS DECIMAL(38, 0)))"
            )
        return pa.array((limbs[1] << 32) | limbs[0], BIGINT, mask=count == 0)
    total = _decimal(limbs, dtype.scale)
    if len(total) and len(pc.max(pc.abs(total)).as_py().as_tuple().digits) > dtype.precision:
        raise ExecutionError(f"SUM overflows DECIMAL({dtype.precision}, {dtype.scale})")
    return pc.if_else(pa.array(count == 0), pa.scalar(None, dtype), total.cast(dtype))


def _carried(entry: Sums, ints: Int64Array) -> list[Int64Array]:
    """The limbs of the sums, each but the last brought into 0 .. 2^32 - 1."""
    limbs = [ints[:, entry.ints + 1 + place].copy() for place in range(entry.exact)]
    for place in range(entry.exact - 1):
        limbs[place + 1] += limbs[place] >> 32
        limbs[place] &= _MASK
    return limbs


def _decimal(limbs: list[Int64Array], scale: int) -> pa.Array:
    if ((limbs[3] < -(2**31)) | (limbs[3] >= 2**31)).any():
        raise ExecutionError("SUM overflows DECIMAL(38)")
    words = np.empty((len(limbs[0]), 2), dtype=np.int64)
    words[:, 0] = (limbs[1] << 32) | limbs[0]
    words[:, 1] = (limbs[3] << 32) | limbs[2]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(words), [None, pa.py_buffer(words)])


def _average(entry: Sums, ints: Int64Array, floats: Float64Array, count: Int64Array) -> pa.Array:
    total = _approximate(entry, ints) if entry.exact else _floating_sum(entry, ints, floats)
    with np.errstate(invalid="ignore", divide="ignore"):
        return pa.array(total / count, DOUBLE, mask=count == 0)


def _approximate(entry: Sums, ints: Int64Array) -> Float64Array:
    """An exact sum as a double."""
    limbs = _carried(entry, ints)
    if len(limbs) == 2:
        return np.ldexp(limbs[1].astype(np.float64), 32) + limbs[0]
    scale = entry.argument.type.scale if entry.argument is not None else 0
    return np.asarray(_decimal(limbs, scale).cast(DOUBLE).to_numpy(zero_copy_only=False))


def _floating_sum(entry: Sums, ints: Int64Array, floats: Float64Array) -> Float64Array:
    at = entry.ints + 1 + entry.exact
    nan, up, down = (ints[:, at + place] > 0 for place in range(3))
    total = floats[:, entry.floats] + floats[:, entry.floats + 1]
    total = np.where(up, np.inf, np.where(down, -np.inf, total))
    return np.where(nan | (up & down), np.nan, total)


def _spread(
    entry: Sums, function: str, ints: Int64Array, floats: Float64Array, count: Int64Array
) -> pa.Array:
    """Sample variance or standard deviation; NULL for fewer than two values (Spark SQL)."""
    at = entry.floats
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean_high = floats[:, at] / count
        product, error = _two_product(mean_high, floats[:, at])
        rest = (floats[:, at + 1] * mean_high) + error
        # The mean's own rounding error, times the sum: without it the difference below loses half its digits.
        back, back_error = _two_product(mean_high, count.astype(np.float64))
        remainder = ((floats[:, at] - back) - back_error + floats[:, at + 1]) / count
        rest = rest + remainder * floats[:, at]
        squared = (floats[:, at + 2] - product) + (floats[:, at + 3] - rest)
        variance = np.maximum(squared, 0.0) / (count - 1)
    special = ints[:, entry.ints + 1 + entry.exact : entry.ints + 4 + entry.exact].any(axis=1)
    variance = np.where(special, np.nan, variance)
    values = np.sqrt(variance) if function == "STDDEV" else variance
    return pa.array(values, DOUBLE, mask=count < 2)


def _two_product(left: Float64Array, right: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The product and its rounding error (Dekker 1971, Veltkamp's splitting)."""
    product = left * right
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    error = (left_high * right_high - product) + left_high * right_low + left_low * right_high
    error = error + left_low * right_low
    return product, np.where(np.isfinite(error), error, 0.0)


def _halves(values: Float64Array) -> tuple[Float64Array, Float64Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * _SPLITTER
        high = scaled - (scaled - values)
    return high, values - high


def smallest_first(column: pa.Array, largest: bool) -> npt.NDArray[np.int64]:
    """Ranks that order a column's values, the wanted extreme first; NaN counts as the largest (Spark SQL)."""
    column = normalise(column)
    if column.type == DOUBLE:
        bits = np.asarray(column.to_numpy(zero_copy_only=False)).view(np.int64)
        ranks = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    elif column.type == BIGINT or pa.types.is_timestamp(column.type):
        ranks = integers(column)
    else:
        ranks = np.asarray(pc.rank(column, tiebreaker="dense").to_numpy()).astype(np.int64)
    return ~ranks if largest else ranks
