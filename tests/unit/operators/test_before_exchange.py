"""What travels to an operator is no more than it needs."""

from __future__ import annotations

import pytest

from headrace.algebra.nodes import Aggregate, Source, TimeWindow, column
from headrace.elements import Batch, from_rows, to_rows
from headrace.expressions.tree import AggregateCall
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.before_exchange import InPanes, reduction_for
from headrace.operators.stateless import windowed
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


@pytest.mark.parametrize(("size", "slide"), [(2, 2), (4, 4), (8, 4), (6, 2)])
@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 7)])
def test_what_is_added_up_in_panes_of_several_batches_is_what_is_added_up_in_windows(
    size: int, slide: int, cuts: tuple[int, ...]
) -> None:
    window = TimeWindow(SOURCE, Duration(size), Duration(slide))
    calls = (
        ("n", AggregateCall("COUNT", None, BIGINT)),
        ("s", AggregateCall("SUM", column(window, 0), BIGINT)),
    )
    form = Accumulation.of(Aggregate(window, (), calls))
    rows = from_rows(SOURCE.schema, [((2**place,), place // 2, place // 2 + 1, 1) for place in range(12)])
    panes = InPanes(2, form, ((window, form),))
    batches = [rows.slice(start, end - start) for start, end in zip((0, *cuts), (*cuts, 12), strict=True)]
    together = panes.joined([panes.add_up(part, _no_failure) for part in batches])
    expected = form.combine(form.accumulate(windowed(window, rows), _no_failure))
    assert sorted(to_rows(panes.in_window(0, together))) == sorted(to_rows(expected))
    # Rows of one pane are one before they are put into windows.
    assert len(together) == len({ts // 2 for ts in rows.ts.tolist()})


def _no_failure(batch: Batch, *_: object) -> None:
    raise AssertionError(f"{len(batch)} rows have failed")
