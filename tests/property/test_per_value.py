"""Heartbeats per value of a column, against their definition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.counting import taken
from headrace.heartbeats.per_value import (
    Rise,
    ValueRules,
    ValuesState,
    forgettable,
    heartbeat_after,
    judge_by_value,
    least,
    rises,
)
from headrace.kernels.instants.disorder import suffix_candidates, suffix_minima
from headrace.reference.per_value import per_value
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT


class Shard:
    """Some of the values, numbered as they come."""

    def __init__(self, listed: Sequence[int]) -> None:
        self.numbers = {value: number for number, value in enumerate(listed)}
        self.state = ValuesState.listed(len(listed))

    def epoch(
        self, rules: ValueRules, rows: Sequence[tuple[int, int]], heartbeat: int, clock: int
    ) -> list[int]:
        """Take rows in; the places of the late ones."""
        new = dict.fromkeys(value for value, _ in rows if value not in self.numbers)
        self.state = self.state.joined_by(len(new))
        self.numbers |= {value: len(self.numbers) + place for place, value in enumerate(new)}
        codes = np.array([self.numbers[value] for value, _ in rows], dtype=np.int64)
        times = np.array([instant for _, instant in rows], dtype=np.int64)
        late, heartbeats = judge_by_value(rules, self.state, codes, times, heartbeat, clock)
        found: list[int] = late.tolist()
        assert (heartbeats > times[late]).all()
        return found

    def forget(self, rules: ValueRules, heartbeat: int, clock: int) -> None:
        gone = forgettable(rules, self.state, heartbeat, clock)
        self.state = self.state.without(gone)
        kept = [value for value, number in self.numbers.items() if not gone[number]]
        self.numbers = {value: number for number, value in enumerate(kept)}


def run(
    epochs: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    rules: ValueRules,
    listed: Sequence[int],
    shards: int,
    forgetful: bool,
) -> tuple[list[list[int]], list[int]]:
    """Late rows and heartbeats per epoch, with the values spread over shards."""
    parts = [Shard([value for value in listed if value % shards == place]) for place in range(shards)]
    heartbeat, begun = BEGINNING, None
    late, heartbeats = [], []
    for clock, rows in epochs:
        found = []
        for place, part in enumerate(parts):
            places = [number for number, (value, _) in enumerate(rows) if value % shards == place]
            own = part.epoch(rules, [rows[number] for number in places], heartbeat, clock)
            found += [places[number] for number in own]
        begun = clock if begun is None and rows else begun
        smallest = [least(rules, part.state, clock) for part in parts]
        heartbeat = heartbeat_after(rules, heartbeat, smallest, begun, clock)
        late.append(sorted(found))
        heartbeats.append(heartbeat)
        for part in parts if forgetful else ():
            part.forget(rules, heartbeat, clock)
    return late, heartbeats


INSTANTS = st.integers(-5, 15) | st.sampled_from((MIN_INSTANT, MAX_INSTANT))
ROWS = st.lists(st.tuples(st.integers(0, 4), INSTANTS), max_size=6)
EPOCHS = st.lists(st.tuples(st.integers(0, 4), ROWS), max_size=8)
RULES = st.builds(ValueRules, st.integers(-1, 5), st.none() | st.integers(1, 8), st.integers(0, 5))
LISTED = st.sets(st.integers(0, 5), max_size=3).map(sorted)


@given(EPOCHS, RULES, LISTED, st.integers(1, 3), st.booleans())
def test_by_the_definition(
    gaps: list[tuple[int, list[tuple[int, int]]]],
    rules: ValueRules,
    listed: list[int],
    shards: int,
    forgetful: bool,
) -> None:
    """However values are spread over shards, and whether or not those are forgotten that may be."""
    clocks = np.cumsum([gap for gap, _ in gaps]).tolist()
    epochs = [(clock, rows) for clock, (_, rows) in zip(clocks, gaps, strict=True)]
    late, heartbeats = run(epochs, rules, listed, shards, forgetful)
    expected = per_value(epochs, rules.disorder, rules.idle_after, rules.wait, listed)
    assert (late, [None if one == BEGINNING else one for one in heartbeats]) == expected


@given(ROWS, ROWS, RULES, st.integers(0, 5), st.integers(0, 20))
def test_the_least_rises_when_it_says(
    first: list[tuple[int, int]], second: list[tuple[int, int]], rules: ValueRules, gap: int, later: int
) -> None:
    part = Shard([7])
    part.epoch(rules, first, BEGINNING, 1)
    part.epoch(rules, second, BEGINNING, 1 + gap)
    steps = rises(rules, part.state, 1 + gap)
    due = tuple((step.when, step.least) for step in steps)
    at = [least(rules, part.state, clock) for clock in range(1 + gap, 2 + gap + later)]
    for step in steps:
        newest = int(part.state.newest[step.value])
        assert newest == BEGINNING == step.least or newest - rules.disorder == step.least
        assert step.when - part.state.heard[step.value] < (rules.idle_after or INFINITY)
    # What it was before all were idle is what it remains.
    assert taken(due, 1 + gap + later)[0] == max((one for one in at if one < 2**63 - 1), default=BEGINNING)


def test_many_rises_are_foreseen_roughly() -> None:
    """Too low in between, and right at the first and the last."""
    count = 1000
    state = ValuesState(np.arange(count, dtype=np.int64), np.arange(count, dtype=np.int64))
    rules = ValueRules(disorder=0, idle_after=count)
    found = rises(rules, state, count - 1)
    assert len(found) <= 32
    assert (found[0], found[-1]) == (Rise(count - 1, 0, 0), Rise(2 * count - 2, count - 1, count - 1))
    assert all(step.least == least(rules, state, step.when) for step in found)


@given(st.integers(0, 2**32), st.sampled_from((1, 50, 3_000, 10**9)), st.sampled_from((1, 50, 3_000, 10**9)))
def test_only_values_that_make_no_difference_are_not_looked_at(seed: int, times: int, clock: int) -> None:
    random = np.random.default_rng(seed)
    newest, heard = random.integers(0, times, 300), random.integers(0, clock, 300)
    idle = int(random.integers(-1, clock))
    some = suffix_candidates(newest, heard, idle, clock)
    found = [
        suffix_minima(newest, heard, values[np.argsort(heard[values], kind="stable")], idle)
        for values in (some, np.arange(300))
    ]
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()
    assert len(some) < 200 or clock < 50


def test_a_value_is_forgotten_when_the_stream_has_come_as_far() -> None:
    rules = ValueRules(disorder=2, idle_after=5)
    state = ValuesState(np.array([10, BEGINNING, 4], dtype=np.int64), np.array([0, 0, 3], dtype=np.int64))
    assert forgettable(rules, state, 7, 5).tolist() == [False, False, False]
    assert forgettable(rules, state, 8, 5).tolist() == [True, False, False]
    assert forgettable(rules, state, 8, 4).tolist() == [False, False, False]
    assert forgettable(rules, state, 8, 8).tolist() == [True, False, True]


def test_a_file_sorted_by_device() -> None:
    """Only with the list, or a wait, is the stream held back for the devices that come later."""
    rows = [(device, instant) for device in range(3) for instant in range(10)]
    epochs = [(place, [row]) for place, row in enumerate(rows)]
    rules = ValueRules(disorder=0)
    late, _ = run(epochs, rules, [], 1, False)
    # All rows of the later devices but the last are below the heartbeat that the first device has made.
    assert sum(map(len, late)) == 18
    late, heartbeats = run(epochs, rules, [0, 1, 2], 1, False)
    assert sum(map(len, late)) == 0
    assert heartbeats[19:] == [BEGINNING, *range(10)]
    late, _ = run(epochs, ValueRules(0, wait=25), [], 1, False)
    assert sum(map(len, late)) == 0
