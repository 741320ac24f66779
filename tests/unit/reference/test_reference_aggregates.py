"""The reference's aggregates of numbers, beside answers that follow by hand."""

from __future__ import annotations

import math

import pytest

from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.tree import Column
from headrace.reference.aggregates import aggregate
from headrace.schema import BIGINT, DOUBLE

X, Y = Column(0, "x", DOUBLE), Column(1, "y", DOUBLE)
LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("SUM", [1.7e308, 1.7e308], math.inf),
        ("SUM", [-1.7e308, -1.7e308], -math.inf),
        ("SUM", [1.7e308, 1.7e308, -1.7e308], 1.7e308),
        ("SUM", [LARGEST, 2.0**969], LARGEST),
        ("SUM", [LARGEST, 2.0**970], math.inf),
        ("SUM", [1.0, 2.0**-53], 1.0),
        ("SUM", [1.0, 2.0**-53, SMALLEST], 1.0 + 2.0**-52),
        ("SUM", [math.inf, 1.7e308], math.inf),
        ("SUM", [math.inf, -math.inf], math.nan),
        ("AVG", [1.7e308, 1.7e308], math.inf),
        ("AVG", [SMALLEST, SMALLEST], SMALLEST),
        ("VAR_POP", [1e200, 1e200], 0.0),
        ("VAR_POP", [1e200, 0.0], math.inf),
        ("STDDEV_POP", [1e200, 0.0], 5e199),
        ("STDDEV_POP", [SMALLEST, 0.0, 0.0, 0.0], 0.0),
        ("STDDEV_POP", [3 * SMALLEST, 0.0], 2 * SMALLEST),
        ("VAR_POP", [1e15, 1e15 + 1], 0.25),
        ("VARIANCE", [20.5, 3.0], 153.125),
    ],
)
def test_aggregates_of_doubles(function: str, values: list[float], expected: float) -> None:
    found = aggregate(resolve_aggregate(function, X), [(value,) for value in values])
    assert isinstance(found, float)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_averages_of_integers_are_rounded_once() -> None:
    call = resolve_aggregate("AVG", Column(0, "v", BIGINT))
    # The sum, 2^54 + 3, is not a double: rounded first, a third of it would be 1 too large.
    assert aggregate(call, [(2**54,), (1,), (2,)]) == 6004799503160662.0


@pytest.mark.parametrize(
    ("function", "pairs", "expected"),
    [
        ("CORR", [(1e15 + step, float(step)) for step in (1, 2, 3)], 1.0),
        ("CORR", [(1e308, -1e-308), (-1e308, 1e-308)], -1.0),
        ("CORR", [(1.0, 2.0), (1.0, 3.0)], None),
        ("CORR", [(1.0, 1.0), (-1.0, 1.0), (0.0, -2.0)], 0.0),
        ("COVAR_POP", [(1e17, 1e17)], 0.0),
        ("COVAR_SAMP", [(1e200, 1e200), (-1e200, -1e200)], math.inf),
        ("COVAR_SAMP", [(1e200, -1e200), (-1e200, 1e200)], -math.inf),
    ],
)
def test_aggregates_of_pairs(function: str, pairs: list[tuple[float, float]], expected: float | None) -> None:
    assert aggregate(resolve_aggregate(function, X, Y), pairs) == expected
