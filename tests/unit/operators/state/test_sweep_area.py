"""The sweep area: netting, expiry, probing, and that merging never changes what it says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.state.keys import hash_rows
from headrace.operators.state.runs import HASH, TIME, SortedRun
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.time import BEGINNING
from how_many import examples


def insert(area: SweepArea, rows: list[tuple[int, int, int]], collide: bool = False) -> None:
    keys = pa.array([row[0] for row in rows], pa.int64())
    hashes = np.zeros(len(rows), dtype=np.int64) if collide else hash_rows([keys], len(rows))
    times = pa.array([row[1] for row in rows], pa.int64())
    area.insert(
        {HASH: pa.array(hashes), TIME: times, "k": keys, "n": pa.array([row[2] for row in rows], pa.int64())}
    )


def content(area: SweepArea) -> dict[tuple[int, int], int]:
    totals: dict[tuple[int, int], int] = {}
    for run in area.runs:
        for key, time, n in zip(
            *(run.batch.column(name).to_pylist() for name in ("k", TIME, "n")), strict=True
        ):
            totals[key, time] = totals.get((key, time), 0) + n
    return totals


row = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(-2, 2))
batches = st.lists(st.lists(row, max_size=8), max_size=12)


@examples(17)
@given(batches, st.booleans())
def test_deltas_expire_and_net(parts: list[list[tuple[int, int, int]]], collide: bool) -> None:
    area = SweepArea(Layout(("k",), ints=("n",)))
    expected: dict[tuple[int, int], int] = {}
    for heartbeat, part in enumerate(parts):
        part = [(key, time + heartbeat, n) for key, time, n in part]
        insert(area, part, collide)
        for key, time, n in part:
            expected[key, time] = expected.get((key, time), 0) + n
        area.expire(heartbeat)
        alive = {place: n for place, n in content(area).items() if place[1] >= heartbeat}
        assert {k: n for k, n in alive.items() if n} == {
            place: n for place, n in expected.items() if place[1] >= heartbeat and n
        }
        due = area.due(heartbeat, heartbeat + 3)
        seen = {} if due is None else _sum(due)
        assert seen == {place: alive[place] for place in alive if place[1] < heartbeat + 3}
    assert len(area.runs) <= 3 + 4 * len(parts) // 4


def _sum(rows: pa.RecordBatch) -> dict[tuple[int, int], int]:
    totals: dict[tuple[int, int], int] = {}
    for key, time, n in zip(*(rows.column(name).to_pylist() for name in ("k", TIME, "n")), strict=True):
        totals[key, time] = totals.get((key, time), 0) + n
    return totals


@given(batches)
def test_accumulated_rows_are_trimmed_and_never_lost(parts: list[list[tuple[int, int, int]]]) -> None:
    area = SweepArea(Layout(("k",), ints=("n",), netting=Netting.ACCUMULATE))
    totals: dict[int, int] = {}
    for heartbeat, part in enumerate(parts):
        insert(area, [(key, time + heartbeat, n) for key, time, n in part])
        area.expire(heartbeat)
        for key, _, n in part:
            totals[key] = totals.get(key, 0) + n
        kept: dict[int, int] = {}
        for (key, _), n in content(area).items():
            kept[key] = kept.get(key, 0) + n
        assert {k: n for k, n in kept.items() if n} == {k: n for k, n in totals.items() if n}


@given(batches)
def test_the_newest_row_of_a_key_counts(parts: list[list[tuple[int, int, int]]]) -> None:
    area = SweepArea(Layout(("k",), ints=("n",), netting=Netting.REPLACE))
    newest: dict[int, int] = {}
    for heartbeat, part in enumerate(parts):
        rows = list({key: (key, 0, n) for key, _, n in part}.values())
        insert(area, rows)
        newest.update({key: n for key, _, n in rows})
        area.expire(heartbeat)
        keys = pa.array([0, 1, 2, 3])
        places, found = area.gather(hash_rows([keys], 4), [keys])
        seen = dict.fromkeys(range(4), 0)
        if found is not None:
            seen.update(zip(places.tolist(), found.column("n").to_pylist(), strict=True))
        assert seen == {key: newest.get(key, 0) for key in range(4)}


def test_a_dead_run_goes_and_a_half_dead_one_shrinks() -> None:
    area = SweepArea(Layout(("k",), ints=("n",)))
    insert(area, [(1, time, 1) for time in range(10)])
    area.expire(5)
    assert len(area) == 10, "half dead is not more than half dead"
    area.expire(6)
    assert len(area) == 4
    area.expire(10)
    assert area.runs == []
    assert BEGINNING < 0


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=30), st.booleans())
def test_the_latest_rows_of_a_key_are_kept_and_no_more(parts: list[list[int]], collide: bool) -> None:
    area = SweepArea(Layout(("k",), ints=("n",), netting=Netting.LATEST, latest=3))
    last = dict.fromkeys(range(3), 0)
    for time, part in enumerate(parts):
        rows = []
        for key in part:
            last[key] += 1
            rows.append((key, time, last[key]))
        insert(area, rows, collide)
        area.expire(0)
        found = {(key, n) for run in area.runs for key, n in zip(*_columns(run), strict=True)}
        assert found >= {(key, n) for key in last for n in range(max(1, last[key] - 2), last[key] + 1)}
        # What was inserted since the last full merge is at most as much as that left behind.
        assert len(area) <= 2 * 9 + 6


def _columns(run: SortedRun) -> list[list[int]]:
    return [run.batch.column(name).to_pylist() for name in ("k", "n")]


def test_runs_of_unlike_sizes_become_few() -> None:
    area = SweepArea(Layout(("k",), ints=("n",)))
    for time, size in enumerate([120, 135] * 64):
        insert(area, [(key, 1000 + time, 1) for key in range(size)])
        area.expire(0)
    assert len(area.runs) < 16
