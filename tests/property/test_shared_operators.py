"""Queries of one change share operators that differ in what is read, and answer as if each were alone."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Aggregate, Distinct, Plan, TimeWindow, column
from headrace.elements import from_rows, to_rows
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.history import canonical, equivalent
from headrace.optimizer import optimize
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, DOUBLE
from headrace.time import INFINITY, Duration
from how_many import examples
from property.plan_strategies import Case, cases, streams
from property.relatives import relatives
from property.strategies import BUCKETS
from support import run_plans


@examples(6, 54)
@given(st.data(), cases(), BUCKETS)
def test_queries_that_share_operators_answer_as_the_reference(
    data: st.DataObject, case: Case, buckets: int
) -> None:
    related = data.draw(st.lists(relatives(case.plan), min_size=1, max_size=3))
    check(case, [case.plan, *related], buckets)


@st.composite
def windowed(draw: st.DrawFn) -> tuple[Case, list[Plan]]:
    """Groups of several windows over one stream, most of one slide."""
    stream = draw(streams("s0", types=(BIGINT, DOUBLE)))
    source = stream.source
    columns = [column(source, place) for place in range(len(source.schema))]
    sums = [resolve_aggregate("COUNT", None), *(resolve_aggregate("AVG", one) for one in columns)]
    calls = draw(st.lists(st.sampled_from(sums), min_size=1, max_size=2))
    keys = draw(st.lists(st.sampled_from(columns), max_size=2))
    plans: list[Plan] = []
    for size, slide in draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4)):
        below = TimeWindow(source, Duration(size), Duration(slide))
        named = tuple((f"k{place}", key) for place, key in enumerate(keys))
        groups = Aggregate(below, named, tuple((f"a{place}", call) for place, call in enumerate(calls)))
        plans.append(Distinct(groups) if draw(st.booleans()) else groups)
    return Case(plans[0], (stream,)), plans


SHAPES = ((2, 1), (5, 1), (9, 1), (9, 3), (6, 3), (7, 3), (4, 3), (3, 3), (1, 1), (INFINITY, 1))


@examples(6, 54)
@given(windowed(), BUCKETS)
def test_queries_over_windows_of_several_lengths_answer_as_the_reference(
    made: tuple[Case, list[Plan]], buckets: int
) -> None:
    check(*made, buckets)


def check(case: Case, queries: Sequence[Plan], buckets: int) -> None:
    """Run all queries together, and compare each answer with the reference's."""
    plans = {f"q{place}": optimize(plan) for place, plan in enumerate(queries)}
    readers = run_plans(plans, case.inputs(), epoch_rows=3, buckets=buckets)
    for name, plan in plans.items():
        history = evaluate(plan, case.reference_streams())
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
        found = readers[name].elements()
        assert equivalent(found, expected), (name, to_rows(canonical(found)))
