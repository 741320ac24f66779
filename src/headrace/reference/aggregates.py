"""Aggregates of a group's rows, exact as far as the result's type allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from headrace.errors import ExecutionError
from headrace.expressions.tree import AggregateCall
from headrace.reference.casts import EXACT
from headrace.reference.contents import order
from headrace.schema import BIGINT


def aggregate(call: AggregateCall, rows: Iterable[Any]) -> object:
    """The aggregate of a group.

    Args:
        call: what to compute.
        rows: the argument's value for each row of the group, or anything for COUNT(*).

    Raises:
        ExecutionError: a SUM is beyond its type.
    """
    if call.argument is None:
        return len(list(rows))
    values = [value for value in rows if value is not None]
    match call.function:
        case "COUNT":
            return len(values)
        case _ if not values:
            return None
        case "MIN":
            return min(values, key=order)
        case "MAX":
            return max(values, key=order)
        case "SUM":
            return _sum(values, call.type)
        case "AVG":
            return _average(values)
        case "VARIANCE":
            return _variance(values)
        case "STDDEV":
            variance = _variance(values)
            return None if variance is None else math.sqrt(variance)
        case name:
            raise NotImplementedError(name)


def _sum(values: list[Any], dtype: pa.DataType) -> object:
    if isinstance(values[0], float):
        return _float_sum(values)
    total = sum(map(Fraction, values))
    if dtype == BIGINT:
        if not -(2**63) <= total < 2**63:
            raise ExecutionError("SUM overflows BIGINT")
        return int(total)
    units = total * 10**dtype.scale
    if abs(units) >= 10**dtype.precision:
        raise ExecutionError(f"SUM overflows DECIMAL({dtype.precision}, {dtype.scale})")
    return Decimal(int(units)).scaleb(-dtype.scale, EXACT)


def _average(values: list[Any]) -> float:
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    return float(sum(map(Fraction, values)) / len(values))


def _float_sum(values: list[float]) -> float:
    odd = [value for value in values if not math.isfinite(value)]
    # All of them infinite on one side, or else NaN.
    return sum(odd) if odd else math.fsum(values)


def _variance(values: list[Any]) -> float | None:
    if len(values) == 1:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    numbers = list(map(Fraction, values))
    mean = sum(numbers) / len(numbers)
    return float(sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))
