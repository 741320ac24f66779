"""The schedule: what is due, the next change of a key, and that netting and merging lose nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.runs import TIME
from headrace.operators.state.schedule import Schedule
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.sweep_area import Layout
from headrace.time import INFINITY
from how_many import examples

Row = tuple[int, int, int]

row = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(-2, 2))
batches = st.lists(st.lists(row, max_size=8), max_size=12)


def schedule() -> Schedule:
    return Schedule(Layout(("k",), ints=("n",)))


def insert(area: Schedule, rows: list[Row], collide: bool = False) -> None:
    keys = pa.array([key for key, _, _ in rows], pa.int64())
    hashes = hashes_of(keys, collide)
    times, counts = (np.array([row[place] for row in rows], dtype=np.int64) for place in (1, 2))
    changes = np.arange(len(rows)), times, SumColumns(counts.reshape(-1, 1))
    area.insert([keys], hashes, encode_keys([keys], hashes), changes)


def hashes_of(keys: pa.Array, collide: bool) -> np.ndarray:
    return np.zeros(len(keys), dtype=np.int64) if collide else hash_rows([keys], len(keys))


def total(parts: list[pa.RecordBatch]) -> dict[tuple[int, int], int]:
    sums: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for key, time, n in zip(*(part.column(name).to_pylist() for name in ("k", TIME, "n")), strict=True):
            sums[key, time] += n
    return {place: n for place, n in sums.items() if n}


@examples(17)
@given(batches, st.booleans())
def test_what_is_due_and_what_comes_next(parts: list[list[Row]], collide: bool) -> None:
    area, expected = schedule(), Counter[tuple[int, int]]()
    for horizon, part in enumerate(parts):
        part = [(key, time + horizon, n) for key, time, n in part]
        insert(area, part, collide)
        for key, time, n in part:
            expected[key, time] += n
        area.expire(horizon)
        later = {place: n for place, n in expected.items() if place[1] >= horizon}
        due = area.due(horizon, horizon + 3)
        wanted = {place: n for place, n in later.items() if place[1] < horizon + 3 and n}
        assert total([] if due is None else [due]) == wanted
        keys = pa.array([0, 1, 2, 3, 9])
        nexts = area.next_times(hashes_of(keys, collide), [keys], horizon + 1).tolist()
        for key, found in zip(keys.to_pylist(), nexts, strict=True):
            times = [time for k, time in later if k == key and time > horizon]
            assert found == min(times, default=INFINITY)
    assert len(area.runs) <= 3 + 4 * len(parts) // 4


@given(st.lists(row, max_size=20), st.booleans())
def test_a_run_is_sorted_by_time_and_its_index_by_key(rows: list[Row], collide: bool) -> None:
    area = schedule()
    insert(area, rows, collide)
    for run in area.runs:
        assert (np.diff(run.times) >= 0).all()
        indexed = list(zip(run.hashes[run.order].tolist(), run.times[run.order].tolist(), strict=True))
        assert indexed == sorted(indexed)
        assert sorted(run.order.tolist()) == list(range(run.rows))
        assert (run.first, run.last) == (run.times[0], run.times[-1])
        if not collide:
            assert run.rows == len({(key, time) for key, time, _ in rows}), "one key and time, one row"


def test_a_dead_run_goes_and_a_half_dead_one_is_cut() -> None:
    area = schedule()
    insert(area, [(1, time, 1) for time in range(10)])
    area.expire(5)
    assert len(area) == 10, "half dead is not more than half dead"
    area.expire(6)
    assert len(area) == 4
    assert area.next_times(*probe(1), 7).tolist() == [7]
    area.expire(10)
    assert area.runs == []


def test_many_small_runs_become_few() -> None:
    area = schedule()
    for time in range(64):
        insert(area, [(time % 3, time, 1), (3, 1000, 1)])
        area.expire(0)
    assert len(area.runs) < 12
    assert len(area) < 64 + 12, "changes of one key at one time were added up"
    due = area.due(0, 1001)
    assert due is not None
    assert total([due])[3, 1000] == 64


def probe(key: int) -> tuple[np.ndarray, list[pa.Array]]:
    keys = pa.array([key])
    return hash_rows([keys], 1), [keys]


def test_runs_of_unlike_sizes_become_few() -> None:
    """Sizes on both sides of a power of four, as an endless run's are, were once hardly ever merged."""
    area = schedule()
    for time, size in enumerate([120, 135] * 64):
        insert(area, [(key, 1000 + time, 1) for key in range(size)])
        area.expire(0)
    sizes = [run.rows for run in area.runs]
    assert len(sizes) < 16
    for place in range(len(sizes) - 3):
        assert sizes[place] > sum(sizes[place + 1 : place + 4])


many = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(-2, 2)), min_size=90, max_size=200),
    min_size=1,
    max_size=3,
)
ranges = st.tuples(st.sampled_from([0, 1, 2, 9]), st.integers(-1, 62), st.integers(-1, 62))


@examples(9, 25)
@given(many, st.lists(ranges, max_size=12), st.integers(0, 40), st.booleans())
def test_the_changes_of_keys_between_instants(
    parts: list[list[Row]], probes: list[Row], horizon: int, collide: bool
) -> None:
    area = schedule()
    for part in parts:
        insert(area, part, collide)
    area.expire(horizon)
    keys = pa.array([key for key, _, _ in probes], pa.int64())
    hashes = hashes_of(keys, collide)
    starts, ends = (np.array([row[place] for row in probes], dtype=np.int64) for place in (1, 2))
    starts = np.maximum(starts, horizon)
    places, rows = area.between(hashes, [keys], starts, ends)
    found = Counter[tuple[int, int, int]]()
    if rows is not None:
        times, counts = (rows.column(name).to_pylist() for name in (TIME, "n"))
        for place, key, time, n in zip(
            places.tolist(), rows.column("k").to_pylist(), times, counts, strict=True
        ):
            found[place, key, time] += n
    expected = Counter[tuple[int, int, int]]()
    for place, (key, _, _) in enumerate(probes):
        for other, time, n in (row for part in parts for row in part):
            if other == key and starts[place] <= time < ends[place]:
                expected[place, key, time] += n
    assert {row: n for row, n in found.items() if n} == {row: n for row, n in expected.items() if n}
    sums = area.sums_between(hashes, [keys], horizon, ends).values[:, 0].tolist()
    assert sums == [
        sum(n for part in parts for other, time, n in part if other == key and horizon <= time < end)
        for key, _, end in probes
    ]
    assert area.count(horizon, 50) == sum(
        int(((run.times >= horizon) & (run.times < 50)).sum()) for run in area.runs
    )
