"""Aggregates read off sums: exactness, overflow, special values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ExecutionError
from headrace.expressions.tree import AggregateCall, Column
from headrace.kernels.instants.timeline import add_by_code
from headrace.operators.aggregates.accumulators import accumulate, layout_of
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.state.sum_columns import SumColumns
from headrace.reference.aggregates import aggregate
from headrace.schema import BIGINT, DOUBLE, STRING
from how_many import examples

DECIMAL = pa.decimal128(20, 2)
NUMBERS = ("AVG", "VARIANCE", "VAR_POP", "STDDEV", "STDDEV_POP")
PAIRED = ("CORR", "COVAR_POP", "COVAR_SAMP")

doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e6, 1e6),
    st.integers(-4, 4).map(lambda steps: 1e15 + steps / 8),
    st.integers(-4, 4).map(lambda units: units * 5e-324),
    st.sampled_from([1.7976931348623157e308, -1.7e308, 2.2250738585072014e-308, 1e30, -1e30, 1e-200]),
)
"""Values of all magnitudes, of which many are close to others, or cancel them."""


def numbers(dtype: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type of numbers."""
    if dtype == DOUBLE:
        return doubles
    if dtype == BIGINT:
        return st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(10**17, 10**17 + 3)
    return st.decimals(-(10**17), 10**17, places=2) | st.decimals(-1, 1, places=2)


def value_of(
    function: str, dtype: pa.DataType, values: list[object], weights: list[int] | None = None
) -> Any:
    argument = Column(0, "x", dtype)
    result = {"SUM": dtype, "COUNT": BIGINT}.get(function, DOUBLE)
    if function == "SUM" and pa.types.is_decimal(dtype):
        result = pa.decimal128(30, 2)
    call = AggregateCall(function, argument, result)
    layout = layout_of((call,))
    w = np.array(weights or [1] * len(values), dtype=np.int64)
    sums = accumulate(layout, [pa.array(values, dtype)], w)
    return evaluate(layout, call, total_of(sums))[0].as_py()


def total_of(sums: SumColumns) -> SumColumns:
    """All rows added up."""
    total = add_by_code(np.zeros(len(sums), dtype=np.int64), sums.values, 1)
    return SumColumns(total, sums.limbs)


def test_integer_sums_are_exact_and_overflow_only_in_the_result() -> None:
    big = 2**63 - 1
    assert value_of("SUM", BIGINT, [big, big, -big]) == big
    assert value_of("SUM", BIGINT, [-(2**63), -1, 1]) == -(2**63)
    with pytest.raises(ExecutionError, match="overflows BIGINT"):
        value_of("SUM", BIGINT, [big, 1])
    with pytest.raises(ExecutionError, match="overflows BIGINT"):
        value_of("SUM", BIGINT, [-(2**63), -1])


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20))
def test_integer_sums(values: list[int]) -> None:
    assert value_of("SUM", BIGINT, list(values)) == sum(values)


@given(st.lists(st.decimals(-(10**15), 10**15, places=2), min_size=1, max_size=20))
def test_decimal_sums_are_exact(values: list[Decimal]) -> None:
    assert value_of("SUM", DECIMAL, list(values)) == sum(values)


@examples(17)
@given(st.data(), st.sampled_from(["SUM", *NUMBERS]), st.sampled_from([DOUBLE, BIGINT, DECIMAL]))
def test_results_are_exact_and_rounded_once(data: st.DataObject, function: str, dtype: pa.DataType) -> None:
    if function == "SUM" and dtype != DOUBLE:
        return
    values: list[Any] = data.draw(st.lists(numbers(dtype), min_size=1, max_size=12))
    leaving: list[Any] = data.draw(st.lists(numbers(dtype), max_size=4))
    weights = [1] * (len(values) + len(leaving)) + [-1] * len(leaving)
    call = AggregateCall(function, Column(0, "x", dtype), DOUBLE)
    found = value_of(function, dtype, [*leaving, *values, *leaving], weights)
    assert found == aggregate(call, [(value,) for value in values])


@given(st.lists(st.tuples(doubles, doubles), min_size=1, max_size=8), st.sampled_from(PAIRED))
def test_results_of_pairs_are_exact_and_rounded_once(pairs: list[tuple[float, float]], function: str) -> None:
    left, right = (Column(place, name, DOUBLE) for place, name in enumerate("xy"))
    call = AggregateCall(function, left, DOUBLE, (right,))
    layout = layout_of((call,))
    columns = [pa.array([pair[place] for pair in pairs], DOUBLE) for place in range(2)]
    sums = accumulate(layout, columns, np.ones(len(pairs), dtype=np.int64))
    assert evaluate(layout, call, total_of(sums))[0].as_py() == aggregate(call, pairs)


def test_special_values_leave_no_trace() -> None:
    assert math.isnan(value_of("SUM", DOUBLE, [1.0, math.nan]))
    assert value_of("SUM", DOUBLE, [1.0, math.nan, math.nan], [1, 1, -1]) == 1.0
    assert value_of("SUM", DOUBLE, [math.inf, 1.0]) == math.inf
    assert math.isnan(value_of("SUM", DOUBLE, [math.inf, -math.inf]))
    assert value_of("AVG", DOUBLE, [math.inf, 4.0, math.inf], [1, 1, -1]) == 4.0


@pytest.mark.parametrize("function", ["SUM", "AVG", "VARIANCE"])
def test_more_values_than_limbs_can_count_are_refused(function: str) -> None:
    assert value_of(function, DOUBLE, [0.5], [2**31 - 1]) is not None
    with pytest.raises(ExecutionError, match="fewer than 2147483648 values"):
        value_of(function, DOUBLE, [0.5], [2**31])


def test_nulls() -> None:
    assert value_of("COUNT", STRING, ["a", None, "b"]) == 2
    assert value_of("SUM", BIGINT, [None, None]) is None
    assert value_of("AVG", DOUBLE, [None, 3.0]) == 3.0
    assert value_of("VARIANCE", BIGINT, [5, None]) is None
