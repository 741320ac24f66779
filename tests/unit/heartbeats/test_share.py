"""A disorder that is chosen keeps the share of late rows at or below the target."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import advance, judge_in_order
from headrace.heartbeats.share import (
    STEPS,
    Lateness,
    LateTarget,
    ShareState,
    after,
    lateness_of,
    step_of,
    target,
    top_of,
)
from headrace.time import BEGINNING

MINUTE = 60_000_000
HOUR = 60 * MINUTE


def steps(*lengths: int) -> list[int]:
    found: list[int] = step_of(np.array(lengths, dtype=np.int64)).tolist()
    return found


def test_each_step_begins_where_the_one_before_ends() -> None:
    tops = [top_of(step) for step in range(STEPS)]
    assert tops[:19] == [*range(16), 17, 19, 21]
    assert tops[-1] == 2**63 - 1
    assert steps(*tops) == list(range(STEPS))
    assert steps(*(top + 1 for top in tops[:-1])) == list(range(1, STEPS))


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1), st.floats(0, 20))
def test_what_a_length_covers(lengths: list[int], late: float) -> None:
    steps_of_all, counts = np.unique(step_of(np.array(lengths, dtype=np.int64)), return_counts=True)
    covering = Lateness(tuple(zip(steps_of_all.tolist(), counts.tolist(), strict=True))).covering(late)
    assert sum(length > covering for length in lengths) <= late
    # An eighth more than needed at most, as far as a step reaches.
    exact = min(one for one in (0, *lengths) if sum(length > one for length in lengths) <= late)
    assert exact <= covering <= exact + exact // 8 + 1


TIMES = st.lists(st.integers(-30, 100), max_size=20)


@given(TIMES, TIMES, TIMES)
def test_histograms_are_a_monoid_and_add_up_over_batches(
    one: list[int], two: list[int], three: list[int]
) -> None:
    a, b, c = (lateness_of(np.array(times, dtype=np.int64), BEGINNING) for times in (one, two, three))
    assert a.beside(b).beside(c) == a.beside(b.beside(c))
    assert a.beside(b) == b.beside(a)
    assert Lateness().beside(a) == a
    whole = lateness_of(np.array([*one, *two], dtype=np.int64), BEGINNING)
    rest = lateness_of(np.array(two, dtype=np.int64), max(one, default=BEGINNING))
    assert a.beside(rest) == whole


def run(rule: LateTarget, times: Int64Array, epoch: int, parts: int = 1) -> tuple[ShareState, float]:
    """The state after rows in epochs of so many, read in so many splits each, and the share that was late."""
    state, heartbeat, newest = ShareState(), BEGINNING, BEGINNING
    for first in range(0, len(times), epoch):
        rows = times[first : first + epoch]
        arrivals = judge_in_order(rows, heartbeat, state.disorder).arrivals
        found = Lateness()
        for part in np.array_split(rows, parts):
            found = found.beside(lateness_of(part, newest))
        newest = max(newest, int(rows.max()))
        heartbeat = advance(heartbeat, newest, state.disorder)
        state = after(rule, state, arrivals, found)
        assert ShareState.from_json(json.loads(json.dumps(state.to_json()))) == state
    return state, state.late / state.rows


def departures(number: int, random: np.random.Generator) -> Int64Array:
    """Scheduled departures in the order in which they left: most in time, some hours late, a few 22 hours."""
    scheduled = np.sort(random.integers(0, number * MINUTE, number))
    late = random.exponential(12 * MINUTE, number)
    late += (random.random(number) < 0.05) * random.exponential(2 * HOUR, number)
    late += (random.random(number) < 0.0003) * random.uniform(10 * HOUR, 22 * HOUR, number)
    left = scheduled + np.minimum(late, 22 * HOUR).astype(np.int64)
    found: Int64Array = scheduled[np.argsort(left, kind="stable")]
    return found


@pytest.mark.parametrize("share", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("parts", [1, 4])
def test_departures_of_flights(share: float, parts: int) -> None:
    times = departures(200_000, np.random.default_rng(7))
    state, late = run(target(share), times, 500, parts)
    assert late <= share
    # It uses what it may lose, and waits for much less than the 22 hours that would lose nothing.
    assert late > share / 4
    assert state.disorder < {0.1: 2 * HOUR, 0.01: 6 * HOUR, 0.001: 16 * HOUR}[share]


def test_nothing_may_be_late() -> None:
    times = departures(20_000, np.random.default_rng(1))
    state, late = run(LateTarget(0, 10_000, 100), times, 500)
    assert late < 0.01
    behind = np.maximum.accumulate(times) - times
    assert state.disorder >= behind.max()


@pytest.mark.parametrize("growth", [1.0005, 1.001])
def test_delays_that_keep_growing_and_then_stop(growth: float) -> None:
    random = np.random.default_rng(3)
    number = 60_000
    size = np.minimum(growth ** np.arange(number), 2e3)
    times = (np.arange(number) * 1_000 - random.random(number) * size * 1_000).astype(np.int64)
    _, late = run(LateTarget(0.01, 5_000, 500), times, 200)
    assert late <= 0.01


@settings(max_examples=20)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 7))
def test_it_does_not_stay_above_the_target(times: list[int], epoch: int) -> None:
    """However it begins: once rows have been 40 behind, no row that keeps to that is late for long."""
    rule = LateTarget(0.05, 20, 5)
    start = np.array([*times, *np.tile([100, 60], 400) + 100 * np.repeat(np.arange(400), 2)], dtype=np.int64)
    _, late = run(rule, start, epoch)
    assert late <= 0.05 + len(times) / len(start)
