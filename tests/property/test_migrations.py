"""A plan that is exchanged for another while it runs answers as if it had not been."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.algebra.nodes import Plan
from headrace.elements import from_rows, to_rows
from headrace.errors import PlanError
from headrace.history import canonical, equivalent
from headrace.optimizer import optimize
from headrace.optimizer.migration import Migration, ends_by, entries
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING, INFINITY
from property.plan_strategies import Case, cases
from property.strategies import BUCKETS
from property.test_plans import coalesced
from support import run_plans


def as_it_is(plan: Plan) -> Plan:
    return plan


FORMS = st.sampled_from((optimize, coalesced, as_it_is))
"""Plans that answer as a plan does."""


@st.composite
def migrations(draw: st.DrawFn) -> tuple[Case, Migration]:
    """Two forms of a plan, and any instant."""
    case = draw(cases(max_relations=1))
    try:
        return case, Migration(draw(FORMS)(case.plan), draw(FORMS)(case.plan), draw(st.integers(-1, 20)))
    except PlanError:
        assume(False)
        raise


@given(migrations())
def test_both_plans_clipped_and_united_mean_the_same(found: tuple[Case, Migration]) -> None:
    case, migration = found
    streams = case.reference_streams()
    assert evaluate(migration.plan, streams) == evaluate(case.plan, streams)


@given(migrations(), BUCKETS, st.sampled_from((1, 2, 3, 1000)))
def test_both_plans_clipped_and_united_answer_the_same(
    found: tuple[Case, Migration], buckets: int, epoch_rows: int
) -> None:
    case, migration = found
    readers = run_plans({"q": migration.plan}, case.inputs(), buckets=buckets, epoch_rows=epoch_rows)
    history = evaluate(case.plan, case.reference_streams())
    expected = from_rows(case.plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    answered = readers["q"].elements()
    assert equivalent(answered, expected), (history, to_rows(canonical(answered)))


@settings(max_examples=200)
@given(cases(root="window", depth=2))
def test_what_has_entered_ends_by_then(case: Case) -> None:
    """The bound holds for all of a stream, and so for each part of it."""
    latest = {
        stream.name: max((ts for _, ts, _, _ in stream.elements), default=BEGINNING)
        for stream in case.streams
    }
    parts = {f"q{place}": entry for place, entry in enumerate(entries(case.plan))}
    for name, reader in run_plans(parts, case.inputs(), buckets=1, epoch_rows=1000).items():
        end = ends_by(parts[name], latest)
        emitted = reader.elements().te
        assert end == INFINITY or not len(emitted) or emitted.max() <= end
