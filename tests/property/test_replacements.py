"""A query that is replaced while it runs: below an instant the old answer holds, then the new one."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from headrace.algebra.nodes import TimeWindow
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES
from headrace.runtime.intake.streams import Retain
from headrace.runtime.store.segments import FolderStore, MemoryStore
from headrace.time import INFINITY, Duration
from how_many import examples
from property.plan_strategies import Case, cases
from property.relatives import above
from property.strategies import BUCKETS
from property.test_plan_changes import EPOCHS, RETAINED, Script, prolonged

REPLACING = ("go on", "replace", "go on", "replace", "restart", "add", "exchange", "drop")

INHERITING = ("go on", "replace above", "go on", "replace above", "add")


@examples(7, 20)
@given(st.data(), cases(max_streams=2, max_relations=1, max_size=8), BUCKETS, EPOCHS)
def test_a_replaced_query_answers_as_both(
    data: st.DataObject, case: Case, buckets: int, epoch: tuple[int, int]
) -> None:
    script = Script(data, prolonged(case, 2), MemoryStore(), buckets, epoch, REPLACING)
    script.play()
    event(f"clipped {script.clipped}, inherited {script.inherited}")
    script.check()


@examples(3, 8)
@given(st.data(), cases(max_streams=2, max_relations=1, max_size=8), st.sampled_from((2, 4)))
def test_a_replaced_query_answers_as_both_between_restarts(
    data: st.DataObject, case: Case, rows: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        script = Script(data, prolonged(case, 3), store, 2, (rows, DEFAULT_EPOCH_BYTES), REPLACING)
        script.play()
        event(f"clipped {script.clipped}")
        script.check()


@examples(4, 12)
@given(st.data(), cases(max_streams=2, max_size=8), BUCKETS, EPOCHS)
def test_aggregations_of_unbounded_windows_go_on(
    data: st.DataObject, case: Case, buckets: int, epoch: tuple[int, int]
) -> None:
    windows = [TimeWindow(stream.source, Duration(INFINITY)) for stream in case.streams]
    case = replace(case, plan=data.draw(above(data.draw(st.sampled_from(windows)))))
    script = Script(data, prolonged(case, 2), MemoryStore(), buckets, epoch, INHERITING)
    script.play()
    event(f"inherited {script.inherited}")
    script.check()


@examples(5, 15)
@given(
    st.data(),
    cases(max_streams=2, max_relations=1, max_size=8),
    st.sampled_from((2, 4)),
    RETAINED,
)
def test_over_rows_that_are_kept_it_is_exact_at_once(
    data: st.DataObject, case: Case, rows: int, retain: Retain
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(FolderStore(folder, durable=True)) as store:
        script = Script(data, prolonged(case, 3), store, 2, (rows, DEFAULT_EPOCH_BYTES), REPLACING, retain)
        script.play()
        event(f"filled {script.filled}")
        script.check()
