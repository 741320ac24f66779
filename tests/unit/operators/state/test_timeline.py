"""What a timeline keeps of its keys: a row of each that is there, and of those that a row says are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Timeline, TimelineInput


def entering(elements: Sequence[tuple[int, int, int]]) -> TimelineInput:
    """Elements of a key, from an instant to before another one."""
    keys, ts, te = np.array(elements, dtype=np.int64).reshape(-1, 3).T
    ones = np.ones((len(ts), 1), dtype=np.int64)
    return TimelineInput(
        [pa.array(keys)], np.ascontiguousarray(ts), np.ascontiguousarray(te), SumColumns(ones)
    )


def kept(timeline: Timeline) -> list[tuple[int, int]]:
    """The keys of all rows that are kept of what is there, with the count of each."""
    rows = [run.batch for run in timeline.bases.runs]
    return [
        pair
        for part in rows
        for pair in zip(part.column("__k0").to_pylist(), part.column("__i0").to_pylist(), strict=True)
    ]


def test_a_key_that_comes_and_goes_in_one_step_leaves_no_row() -> None:
    timeline = Timeline(("__k0",), 1)
    points = timeline.step(entering([(1, 1, 3), (2, 2, 9), (3, 1, 4), (3, 4, 6)]), 0, 7)
    assert points is not None
    assert sorted(zip(points.times.tolist(), points.counts.tolist(), strict=False)) == [
        (1, 1), (1, 1), (2, 1), (3, 0), (4, 1), (6, 0),
    ]  # fmt: skip
    assert kept(timeline) == [(2, 1)]


def test_a_key_that_was_there_is_gone_by_a_row_that_says_so() -> None:
    timeline = Timeline(("__k0",), 1)
    timeline.step(entering([(1, 1, 9), (2, 1, 20)]), 0, 5)
    assert sorted(kept(timeline)) == [(1, 1), (2, 1)]
    points = timeline.step(entering([]), 5, 12)
    assert points is not None
    assert points.covered.tolist() == [9]
    held = timeline.held()
    assert held is not None
    assert held.keys[0].to_pylist() == [2]
    # It would otherwise be there again with the next element.
    points = timeline.step(entering([(1, 13, 15)]), 12, 14)
    assert points is not None
    assert points.counts.tolist() == [1, 0]
