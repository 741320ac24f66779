"""What tasks count of their nodes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import Batch, from_rows
from headrace.heartbeats.bounded import judge_in_order
from headrace.runtime.tasks.counts import Counter, Extent, together
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY

SCHEMA = Schema((Field("v", BIGINT),))

INTERVALS = st.lists(st.tuples(st.integers(-50, 50), st.just(INFINITY) | st.integers(51, 90)), max_size=8)


def batch_of(intervals: list[tuple[int, int]]) -> Batch:
    return from_rows(SCHEMA, [((1,), ts, te, 1) for ts, te in intervals])


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), INTERVALS), max_size=8))
def test_the_counts_of_tasks_add_up(yielded: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    tasks = (Counter(), Counter())
    for task, node, intervals in yielded:
        tasks[task].take(node, len(intervals) + 1)
        tasks[task].give(node, batch_of(intervals))
    found = together([task.counts() for task in tasks], 5)
    for node in range(5):
        parts = [intervals for _, number, intervals in yielded if number == node]
        rows = [interval for part in parts for interval in part]
        ended = [te - ts for ts, te in rows if te != INFINITY]
        assert found.taken[node] == len(rows) + len(parts)
        assert found.given[node] == len(rows)
        assert found.endless[node] == len(rows) - len(ended)
        assert found.lifetimes[node] == sum(ended)
        assert found.first[node] == min((ts for ts, _ in rows), default=INFINITY)
        assert found.last[node] == max((ts for ts, _ in rows), default=BEGINNING)


def test_the_same_times_are_looked_at_once() -> None:
    batch = batch_of([(3, 4), (1, 9)])
    counter = Counter()
    counter.know(batch, Extent(2, 0, 1_000, -7, 7))
    counter.give(0, batch)
    counter.give(1, batch.with_payload(batch.payload))
    counter.give(2, batch_of([(3, 4), (1, 9)]))
    assert counter.counts().lifetimes.tolist() == [1_000, 1_000, 9]


@given(st.lists(st.integers(-20, 20), min_size=1), st.integers(0, 10))
def test_what_a_stream_covers_is_known_from_its_arrivals(times: list[int], disorder: int) -> None:
    found = judge_in_order(np.array(times), BEGINNING, disorder)
    known = Extent.of_arrivals(found.arrivals)
    if known is None:
        assert len(found.late)
    else:
        assert known == Extent.of(batch_of([(time, time + 1) for time in times]))


def test_a_task_that_counted_nothing_reports_nothing() -> None:
    counter = Counter()
    counter.take(0, 0)
    counter.give(1, batch_of([]))
    assert len(counter.counts().nodes) == 0
