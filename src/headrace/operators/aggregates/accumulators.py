"""Aggregates as sums: what each one adds up per element, and how its value is read off the sums.

Counts, sums, averages, variances and covariances are invertible: a retraction subtracts what an insertion
added. Integers and decimals are summed exactly, as 32-bit limbs in 64-bit counters, so that only the *result*
can overflow, never an intermediate sum. Floating values are summed as double-doubles (Dekker 1971; Knuth's
two-sum), with NaN and infinities counted apart, so that one that leaves takes no other value with it. MIN,
MAX and other aggregates that depend on which values there are keep the live values instead (`live_values`).
An aggregate of distinct values adds up the intervals in which a value is present (`distinct_values`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array, integers
from headrace.errors import ExecutionError
from headrace.expressions.aggregates import effective_argument, masked
from headrace.expressions.tree import AggregateCall, Expression
from headrace.kernels.timeline import Float64Array
from headrace.operators.aggregates.double_double import Pair, centred, two_product
from headrace.schema import BIGINT, BOOLEAN, DOUBLE

_MASK: Final = 0xFFFFFFFF
_STILL: Final = 1e-29
"""A column whose spread is so small a part of its squares does not vary: that much is rounding."""


@dataclass(frozen=True)
class Sums:
    """Which columns of a sum matrix belong to one argument, or to some that go together.

    Attributes:
        argument: what is summed.
        partners: the other column of CORR and COVAR, or those of COUNT(DISTINCT a, b, c).
        distinct: whether the presence of its values is summed, not the elements.
        exact: the number of 32-bit limbs, 0 for floating sums or where only a count is kept.
        floating: whether a double-double sum is kept, of both columns where there are two.
        products: how many sums of products are kept: the squares (STDDEV, VARIANCE), or with a partner the
            squares of both and their product.
        ints, floats: the first column of each kind.
    """

    argument: Expression
    partners: tuple[Expression, ...]
    distinct: bool
    exact: int
    floating: bool
    products: int
    ints: int
    floats: int

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions it adds up."""
        return (self.argument, *self.partners)

    @property
    def int_columns(self) -> int:
        """How many int64 columns it has: the count, the limbs or the three non-finite counts."""
        return 1 + self.exact + (3 if self.floating else 0)

    @property
    def float_columns(self) -> int:
        """How many float64 columns it has: a pair per double-double."""
        return 2 * (len(self.inputs) if self.floating else 0) + 2 * self.products


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

    @property
    def of_elements(self) -> tuple[Sums, ...]:
        """The sums that every element adds to."""
        return tuple(entry for entry in self.sums if not entry.distinct)


def is_invertible(call: AggregateCall) -> bool:
    """Whether the aggregate is read off sums, and not off the values that are there."""
    return call.user is None and call.function not in _HOLISTIC


_HOLISTIC: Final = frozenset(("MIN", "MAX", "FIRST", "LAST", "PERCENTILE", "ARRAY_AGG"))


_Identity = tuple[Expression, tuple[Expression, ...], bool]


def _identity(call: AggregateCall) -> _Identity | None:
    """What an invertible aggregate adds up: argument, partners, distinct; None for a count of all rows."""
    argument = effective_argument(call)
    partners = tuple(masked(part, call.condition) for part in call.others)
    return None if argument is None else (argument, partners, call.distinct)


def layout_of(calls: tuple[AggregateCall, ...]) -> SumLayout:
    """The columns needed for all invertible aggregates, shared where their arguments are equal."""
    needs: dict[_Identity, set[str]] = {}
    for call in calls:
        identity = _identity(call)
        if is_invertible(call) and identity is not None:
            needs.setdefault(identity, set()).add(call.function)
    ints, floats, sums = 1, 0, []
    for (argument, partners, distinct), functions in needs.items():
        squares, paired = bool(functions & _SPREADS), bool(functions & _OF_PAIRS)
        added = bool(functions & {"SUM", "AVG", "BOOL_AND", "BOOL_OR"})
        limbs = _limbs(argument.type) if added else 0
        floating = squares or paired or (added and limbs == 0)
        products = 3 if paired else int(squares)
        entry = Sums(argument, partners, distinct, limbs, floating, products, ints, floats)
        sums.append(entry)
        ints += entry.int_columns
        floats += entry.float_columns
    return SumLayout(tuple(sums), ints, floats)


_OF_PAIRS: Final = frozenset(("CORR", "COVAR_POP", "COVAR_SAMP"))
_SPREADS: Final = frozenset(("STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP"))


def _limbs(dtype: pa.DataType) -> int:
    if pa.types.is_decimal(dtype):
        return 4
    return {DOUBLE: 0, BOOLEAN: 1}.get(dtype, 2)


def accumulate(
    layout: SumLayout, arguments: list[pa.Array], w: Int64Array
) -> tuple[Int64Array, Float64Array]:
    """What each element adds to the sums; nothing to those of distinct values.

    Args:
        layout: the columns.
        arguments: the columns of all `inputs` of `layout.of_elements`, n rows.
        w: int64[n], multiplicities.

    Returns:
        int64[n, int_width] and float64[n, float_width].
    """
    ints = np.zeros((len(w), layout.int_width), dtype=np.int64)
    floats = np.zeros((len(w), layout.float_width), dtype=np.float64)
    ints[:, 0] = w
    columns = iter(arguments)
    for entry in layout.of_elements:
        _add(entry, [next(columns) for _ in entry.inputs], w, ints, floats)
    return ints, floats


def accumulate_distinct(
    layout: SumLayout, inputs: tuple[Expression, ...], columns: list[pa.Array], w: Int64Array
) -> tuple[Int64Array, Float64Array]:
    """What the presence of values adds to the sums of distinct values of some inputs, and to no other."""
    ints = np.zeros((len(w), layout.int_width), dtype=np.int64)
    floats = np.zeros((len(w), layout.float_width), dtype=np.float64)
    for entry in layout.sums:
        if entry.distinct and entry.inputs == inputs:
            _add(entry, columns, w, ints, floats)
    return ints, floats


def _add(entry: Sums, columns: list[pa.Array], w: Int64Array, ints: Int64Array, floats: Float64Array) -> None:
    """Add the values of one entry to its columns."""
    valid = [np.asarray(column.is_valid().to_numpy(zero_copy_only=False)) for column in columns]
    weights = w * np.logical_and.reduce(valid)
    ints[:, entry.ints] = weights
    for limb, part in enumerate(_split_exact(columns[0], entry.exact), entry.ints + 1):
        ints[:, limb] = part * weights
    if entry.floating:
        _add_floating(entry, columns, weights, ints, floats)


def _split_exact(column: pa.Array, limbs: int) -> list[Int64Array]:
    """32-bit limbs of integers or unscaled decimals, lowest first; the last one is signed."""
    if limbs == 0:
        return []
    if limbs == 1:
        return [np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)]
    if limbs == 2:
        values = integers(column.fill_null(0)) if column.null_count else integers(column)
        return [values & _MASK, values >> 32]
    if len(column) == 0:
        return [np.empty(0, dtype=np.int64)] * 4
    column = column.fill_null(pa.scalar(Decimal(0), column.type)) if column.null_count else column
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    low, high = words[:, 0], words[:, 1]
    return [low & _MASK, (low >> 32) & _MASK, high & _MASK, high >> 32]


def _add_floating(
    entry: Sums, columns: list[pa.Array], weights: Int64Array, ints: Int64Array, floats: Float64Array
) -> None:
    raw = [
        np.asarray(column.cast(DOUBLE, safe=False).fill_null(0.0).to_numpy(zero_copy_only=False))
        for column in columns
    ]
    finite = np.logical_and.reduce([np.isfinite(values) for values in raw])
    at = entry.ints + 1 + entry.exact
    # A pair with a value that is not finite makes the answer NaN, whichever value it is.
    odd = raw[0] if len(raw) == 1 else np.where(finite, 0.0, np.nan)
    for place, special in enumerate((np.isnan(odd), np.isposinf(odd), np.isneginf(odd))):
        ints[:, at + place] = weights * special
    values = [np.where(finite, part, 0.0) for part in raw]
    scale = weights.astype(np.float64)
    for place, part in enumerate(values):
        # A multiplicity is a small integer: the product with it is split, so that it is exact.
        pair = floats[:, entry.floats + 2 * place : entry.floats + 2 * place + 2]
        pair[:, 0], pair[:, 1] = two_product(part, scale)
    factors = [(values[0], values[0]), (values[-1], values[-1]), (values[0], values[-1])][: entry.products]
    for place, (left, right) in enumerate(factors, len(values)):
        pair = floats[:, entry.floats + 2 * place : entry.floats + 2 * place + 2]
        high, low = two_product(left, right)
        pair[:, 0], pair[:, 1] = high * scale, low * scale


def evaluate(layout: SumLayout, call: AggregateCall, ints: Int64Array, floats: Float64Array) -> pa.Array:
    """The value of an invertible aggregate for each row of sums.

    Raises:
        ExecutionError: an exact sum does not fit its type.
    """
    identity = _identity(call)
    if identity is None:
        return pa.array(ints[:, 0])
    entry = next(
        entry for entry in layout.sums if (entry.argument, entry.partners, entry.distinct) == identity
    )
    count = ints[:, entry.ints]
    match call.function:
        case "COUNT":
            return pa.array(count)
        case "SUM":
            return _sum(entry, call.type, ints, floats, count)
        case "AVG":
            return _average(entry, ints, floats, count)
        case "BOOL_AND":
            return pa.array(ints[:, entry.ints + 1] == count, mask=count == 0)
        case "BOOL_OR":
            return pa.array(ints[:, entry.ints + 1] > 0, mask=count == 0)
        case "CORR" | "COVAR_POP" | "COVAR_SAMP":
            return _covariation(entry, call.function, ints, floats, count)
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
    return np.asarray(_decimal(limbs, entry.argument.type.scale).cast(DOUBLE).to_numpy(zero_copy_only=False))


def _floating_sum(entry: Sums, ints: Int64Array, floats: Float64Array) -> Float64Array:
    at = entry.ints + 1 + entry.exact
    nan, up, down = (ints[:, at + place] > 0 for place in range(3))
    total = floats[:, entry.floats] + floats[:, entry.floats + 1]
    total = np.where(up, np.inf, np.where(down, -np.inf, total))
    return np.where(nan | (up & down), np.nan, total)


def _spread(
    entry: Sums, function: str, ints: Int64Array, floats: Float64Array, count: Int64Array
) -> pa.Array:
    """Variance or standard deviation; of a sample, NULL for fewer than two values (Spark SQL)."""
    fewest = 1 if function.endswith("_POP") else 2
    total, squares = _pair(entry, floats, 0), _pair(entry, floats, 1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = np.maximum(centred(total, total, squares, count), 0.0) / (count + 1 - fewest)
    values = np.where(_odd(entry, ints), np.nan, variance)
    values = np.sqrt(values) if function.startswith("STDDEV") else values
    return pa.array(values, DOUBLE, mask=count < fewest)


def _covariation(
    entry: Sums, function: str, ints: Int64Array, floats: Float64Array, count: Int64Array
) -> pa.Array:
    """Correlation or covariance; CORR is NULL where a column does not vary."""
    left, right, lefts, rights, both = (_pair(entry, floats, place) for place in range(5))
    fewest = 1 if function == "COVAR_POP" else 2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        spread = centred(left, right, both, count)
        one, other = centred(left, left, lefts, count), centred(right, right, rights, count)
        divisor = np.sqrt(one) * np.sqrt(other) if function == "CORR" else count + 1.0 - fewest
        values = np.where(_odd(entry, ints), np.nan, spread / divisor)
    missing: BoolArray = count < fewest
    if function == "CORR":
        still = (one <= _STILL * lefts[0]) | (other <= _STILL * rights[0])
        missing = missing | (still & ~_odd(entry, ints))
    return pa.array(values, DOUBLE, mask=missing)


def _pair(entry: Sums, floats: Float64Array, place: int) -> Pair:
    at = entry.floats + 2 * place
    return floats[:, at], floats[:, at + 1]


def _odd(entry: Sums, ints: Int64Array) -> BoolArray:
    """Where a value that is not finite is among those summed."""
    at = entry.ints + 1 + entry.exact
    return np.asarray(ints[:, at : at + 3].any(axis=1))
