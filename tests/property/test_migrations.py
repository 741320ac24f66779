"""A plan that is exchanged for another while it runs answers as if it had not been."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace

from hypothesis import assume, event, given, reject
from hypothesis import strategies as st

from headrace.algebra.nodes import Join, Plan, Relation, RowWindow, TimeWindow
from headrace.elements import from_rows, to_rows
from headrace.errors import ExecutionError, PlanError
from headrace.history import canonical, equivalent
from headrace.optimizer.migration import Migration, ends_by, entries, takeover
from headrace.reference.operators import evaluate
from headrace.runtime.store.segments import FolderStore, MemoryStore
from headrace.schema import unique_names
from headrace.time import BEGINNING, INFINITY, Duration
from how_many import examples
from property.plan_strategies import FORMS, Case, cases
from property.strategies import BUCKETS
from property.test_plan_changes import EPOCHS, Script, prolonged
from support import run_plans


def is_exchangeable(case: Case) -> bool:
    """Whether another plan could take over."""
    try:
        takeover(case.plan, dict.fromkeys((stream.name for stream in case.streams), 0))
    except PlanError:
        return False
    return True


@st.composite
def beside_endless_rows(draw: st.DrawFn) -> Case:
    """All pairs of a window's rows with some that may have no end, maybe with others."""
    case = draw(cases(max_relations=1, max_size=8).filter(lambda case: len(case.streams) > 1))
    first, second, *_ = case.leaves
    endless: list[Plan] = [RowWindow(second, 2), TimeWindow(second, Duration(INFINITY))]
    endless += [leaf for leaf in case.leaves if isinstance(leaf, Relation)]
    plan = crossed(TimeWindow(first, Duration(draw(st.integers(1, 5)))), draw(st.sampled_from(endless)))
    if draw(st.booleans()):
        plan = crossed(plan, TimeWindow(second, Duration(2)))
    return prolonged(replace(case, plan=plan), 3)


def crossed(left: Plan, right: Plan) -> Plan:
    """All pairs."""
    return Join(left, right, (), None, tuple(unique_names([*left.schema.names, *right.schema.names])))


EXCHANGEABLE = cases(max_relations=1).filter(is_exchangeable)


@st.composite
def migrations(draw: st.DrawFn) -> tuple[Case, Migration]:
    """Two forms of a plan, and any instant."""
    case = draw(cases(max_relations=1))
    try:
        return case, Migration(draw(FORMS)(case.plan), draw(FORMS)(case.plan), draw(st.integers(-1, 20)))
    except PlanError:
        assume(False)
        raise


@examples(9, 25)
@given(migrations())
def test_both_plans_clipped_and_united_mean_the_same(found: tuple[Case, Migration]) -> None:
    case, migration = found
    streams = case.reference_streams()
    try:
        expected = evaluate(case.plan, streams)
    except ExecutionError:
        # Sums of instants before all time overflow.
        reject()
    assert evaluate(migration.plan, streams) == expected


@examples(9, 25)
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


@examples(20, 60)
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


EXCHANGING = ("go on", "exchange", "restart", "exchange", "add", "add again")


@examples(5, 42)
@given(st.data(), EXCHANGEABLE, BUCKETS, EPOCHS)
def test_plans_are_exchanged_while_they_run(
    data: st.DataObject, case: Case, buckets: int, epoch: tuple[int, int]
) -> None:
    script = Script(data, case, MemoryStore(), buckets, epoch, EXCHANGING)
    script.play()
    event(f"exchanged {script.exchanged}")
    script.check()


@examples(2, 18)
@given(st.data(), beside_endless_rows(), BUCKETS, EPOCHS)
def test_what_is_read_whole_goes_on(
    data: st.DataObject, case: Case, buckets: int, epoch: tuple[int, int]
) -> None:
    script = Script(data, case, MemoryStore(), buckets, epoch, EXCHANGING)
    script.play()
    event(f"exchanged {script.exchanged}")
    script.check()


@examples(2, 18)
@given(st.data(), EXCHANGEABLE, EPOCHS)
def test_plans_are_exchanged_between_restarts(
    data: st.DataObject, case: Case, epoch: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        script = Script(data, case, store, 2, epoch, EXCHANGING)
        script.play()
        script.check()
