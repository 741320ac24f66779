"""From the instant of `exact_from` on, an answer over the rows that are left is that over all rows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, assume, event, given
from hypothesis import strategies as st

from headrace.algebra.exactness import exact_from, needed_from
from headrace.algebra.nodes import Granularity, Istream, Plan, RowWindow, Split, TimeWindow
from headrace.elements import Batch, from_rows
from headrace.history import canonical, equivalent
from headrace.optimizer import optimize
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING, INFINITY, Duration
from how_many import examples
from property.plan_strategies import Case, cases, streams
from property.test_plan_changes import prolonged


def answer(case: Case, since: int) -> Batch:
    """The reference's answer from an instant on."""
    rows = evaluate(case.plan, case.reference_streams())
    clipped = [(row, max(ts, since), te, 1) for row, ts, te in rows if te > since]
    return from_rows(case.plan.schema, clipped)


def without_older(case: Case, since: int) -> Case:
    """The case without the rows before an instant."""
    streams = (
        replace(stream, elements=tuple(row for row in stream.elements if row[1] >= since))
        for stream in case.streams
    )
    return replace(case, streams=tuple(streams))


def gone(data: st.DataObject, case: Case) -> int:
    """The first instant whose rows are there: just after one of the rows that are not."""
    times = [row[1] for stream in case.streams for row in stream.elements]
    return data.draw(st.sampled_from(times or [0])) + 1


@st.composite
def windowed(draw: st.DrawFn) -> Case:
    """A stream under what looks back in time, once or twice."""
    stream = draw(streams("s", max_size=8))
    length = st.integers(1, 6).map(Duration)
    plan: Plan = stream.source
    for _ in range(draw(st.integers(1, 2))):
        below = plan if plan.is_chronon else Split(plan)
        plan = draw(
            st.one_of(
                st.builds(TimeWindow, st.just(below), length, length),
                st.builds(Granularity, st.just(plan), length),
                st.builds(Istream, st.just(plan)),
                st.builds(RowWindow, st.just(below), st.integers(1, 3)),
            )
        )
    return Case(plan, (stream,))


CASES = windowed() | cases(max_streams=2, max_relations=1, max_size=8)


@examples(10, 30, phases=(Phase.explicit, Phase.generate))
@given(st.data(), CASES, st.booleans())
def test_an_answer_is_exact_without_the_rows_before(data: st.DataObject, case: Case, optimized: bool) -> None:
    case = prolonged(case, 2)
    since = gone(data, case)
    left = without_older(case, since)
    plan = optimize(case.plan) if optimized else case.plan

    def nth_row(stream: str, instant: int, count: int) -> int:
        times = sorted(row[1] for known in left.streams if known.name == stream for row in known.elements)
        times = [ts for ts in times if ts >= instant]
        return times[count - 1] if len(times) >= count else INFINITY

    exact = exact_from(plan, {stream.name: since for stream in case.streams}, nth_row)
    event("never exact" if exact == INFINITY else "exact")
    assume(BEGINNING < exact < INFINITY)
    assert equivalent(canonical(answer(left, exact)), canonical(answer(case, exact)), INFINITY)


@examples(10, 30, phases=(Phase.explicit, Phase.generate))
@given(CASES, st.integers(0, 40))
def test_no_older_row_matters(case: Case, since: int) -> None:
    case = prolonged(case, 2)
    needed = needed_from(case.plan, since)
    streams = tuple(
        replace(
            stream,
            elements=tuple(row for row in stream.elements if row[1] >= needed.get(stream.name, INFINITY)),
        )
        for stream in case.streams
    )
    left = replace(case, streams=streams)
    assert equivalent(canonical(answer(left, since)), canonical(answer(case, since)), INFINITY)
