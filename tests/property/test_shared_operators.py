"""Queries of one change share operators that differ in what is read, and answer as if each were alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.optimizer import optimize
from headrace.reference.operators import evaluate
from property.plan_strategies import Case, cases
from property.relatives import relatives
from property.strategies import BUCKETS
from support import run_plans


@given(st.data(), cases(), BUCKETS)
def test_queries_that_share_operators_answer_as_the_reference(
    data: st.DataObject, case: Case, buckets: int
) -> None:
    related = data.draw(st.lists(relatives(case.plan), min_size=1, max_size=3))
    plans = {f"q{place}": optimize(plan) for place, plan in enumerate([case.plan, *related])}
    readers = run_plans(plans, case.inputs(), epoch_rows=3, buckets=buckets)
    for name, plan in plans.items():
        history = evaluate(plan, case.reference_streams())
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
        found = readers[name].elements()
        assert equivalent(found, expected), (name, to_rows(canonical(found)))
