"""What travels to an operator is no more than it needs."""

from __future__ import annotations

import pytest

from headrace.algebra.nodes import Aggregate, Source, TimeWindow, column
from headrace.elements import from_rows
from headrace.expressions.tree import AggregateCall
from headrace.operators.before_exchange import reduction_for
from headrace.schema import BIGINT, Field, Schema
from headrace.time import Duration, TimeDomain

SOURCE = Source("s", Schema((Field("v", BIGINT),)), "ts", TimeDomain.INTEGER)


@pytest.mark.parametrize(("functions", "travelling"), [(("MIN",), 1), (("MAX",), 1), (("MIN", "MAX"), 2)])
@pytest.mark.parametrize("values", [(3, 9, 4), (9, 3, 4), (4, 9, 3)])
def test_of_values_the_smallest_and_the_largest_travel(
    functions: tuple[str, ...], travelling: int, values: tuple[int, ...]
) -> None:
    window = TimeWindow(SOURCE, Duration(10), Duration(10))
    calls = ((name, AggregateCall(name, column(window, 0), BIGINT)) for name in functions)
    reduction = reduction_for(Aggregate(window, (), tuple(calls)))
    rows = from_rows(window.schema, [((value,), 0, 10, 1) for value in values])
    found = reduction.reduce_again(reduction.reduce(rows, lambda *_: None)).payload
    assert found.num_rows == travelling
    assert set(found["__v0"].to_pylist()) == {{"MIN": 3, "MAX": 9}[name] for name in functions}
    assert sum(found["__i0"].to_pylist()) == len(values)
