"""Whole plans on the inline runner answer as the reference does, however the input is cut and spread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.bounds import settles_within
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import is_insert_only
from headrace.elements import from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.reference.operators import evaluate
from headrace.time import ALWAYS, BEGINNING, INFINITY
from how_many import examples
from property.plan_strategies import FORMS, ROOTS, Case, cases, plans
from property.strategies import BUCKETS
from support import emitted_elements, run_plans


@st.composite
def query_sets(draw: st.DrawFn, root: str) -> tuple[Case, dict[str, Plan]]:
    """Up to three plans over the same streams, each as it is, optimized, or coalesced all over."""
    case = draw(cases(root=root, max_relations=2))
    made = [case.plan, *draw(st.lists(plans(case.leaves, depth=2), max_size=2))]
    ready = [draw(FORMS)(plan) for plan in made]
    return case, {f"q{number}": plan for number, plan in enumerate(ready)}


@pytest.mark.parametrize("root", ROOTS)
@examples(4, 60)
@given(st.data(), BUCKETS, st.sampled_from((1, 2, 3, 1000)))
def test_plans_answer_as_the_reference(root: str, data: st.DataObject, buckets: int, epoch_rows: int) -> None:
    case, queries = data.draw(query_sets(root))
    readers = run_plans(queries, case.inputs(), buckets=buckets, epoch_rows=epoch_rows)
    for name, plan in queries.items():
        history = evaluate(plan, case.reference_streams())
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
        found = readers[name].elements()
        emitted = emitted_elements(readers[name])
        assert not plan.is_chronon or (emitted.te == emitted.ts + 1).all()
        assert not is_insert_only(plan) or (emitted.w > 0).all()
        assert equivalent(found, expected), (history, to_rows(canonical(found)))


@pytest.mark.parametrize("root", ROOTS)
@examples(10)
@given(st.data())
def test_the_answer_changes_no_more_once_it_has_settled(root: str, data: st.DataObject) -> None:
    case = data.draw(cases(root=root, max_relations=1))
    newest = max((ts for stream in case.streams for _, ts, _, _ in stream.elements), default=ALWAYS)
    for _, *interval in evaluate(case.plan, case.reference_streams()):
        settled = newest + settles_within(case.plan)
        assert all(instant in (BEGINNING, INFINITY) or instant <= settled for instant in interval)
