"""Estimates that are lowered, learned, frozen and shown."""

from __future__ import annotations

from dataclasses import replace

from generating import arrived
from headrace.heartbeats.estimation import (
    KEPT_CHANGES,
    Adaptivity,
    Changed,
    EstimationRules,
    bounds_of,
    estimate,
    start,
)
from headrace.heartbeats.skew import Bound

OWN = EstimationRules(1, ((0, 0),), (0,), 1)


def deltas(rules: EstimationRules, drops: list[int]) -> list[float]:
    """The estimates of a stream's own disorder, as rows come that are so far behind the newest one."""
    state, found = start(rules), []
    state = estimate(rules, state, arrived([(0, 1_000)]), 0)
    for clock, drop in enumerate(drops, 1):
        state = estimate(rules, state, arrived([(0, 1_000 - drop)]), clock)
        found.append(float(state.estimates.delta[0, 0]))
    return found


def test_a_spike_is_forgotten() -> None:
    """Figure 4 with W = 2 and alpha = 0.5: three low measurements lower the estimate half the way."""
    rules = replace(OWN, adaptivity=Adaptivity(2, alpha=0.5))
    assert deltas(rules, [99, 1, 2, 3, 1, 1, 1]) == [100, 100, 100, 52, 52, 52, 27]


def test_a_window_of_time() -> None:
    rules = replace(OWN, adaptivity=Adaptivity(2, by_time=True, alpha=0))
    assert deltas(rules, [99, 1, 2, 3, 1, 1, 1]) == [100, 100, 100, 4, 4, 4, 2]


def test_without_adaptivity_the_largest_counts() -> None:
    assert deltas(OWN, [4, 99, 1, 2]) == [5, 100, 100, 100]
    assert deltas(replace(OWN, adaptivity=Adaptivity(1, alpha=1)), [4, 99, 1, 2, 1]) == [
        5,
        100,
        100,
        100,
        100,
    ]


def test_estimates_stop_after_a_warm_up() -> None:
    assert deltas(replace(OWN, stops_after=2), [4, 6, 99]) == [5, 7, 7]


def test_windows_grow_when_estimates_are_exceeded_and_shrink_when_they_fall() -> None:
    rules = replace(OWN, adaptivity=Adaptivity(4, alpha=0.5, often=0.2, falls=2))
    state = estimate(rules, start(rules), arrived([(0, 1_000)]), 0)
    windows = []
    for clock, drop in enumerate([9, 19, 29, 39, *[0] * 60], 1):
        state = estimate(rules, state, arrived([(0, 1_000 - drop)]), clock)
        windows.append(int(state.estimates.window[0, 0]))
    assert windows[:4] == [4, 8, 8, 16]
    assert windows[-1] < 16


def test_a_bound_is_not_used_before_enough_rows() -> None:
    rules = replace(OWN, learning=3)
    state = start(rules)
    found = []
    for clock, instant in enumerate((10, 8, 9, 12)):
        state = estimate(rules, state, arrived([(0, instant)]), clock)
        found.append(bounds_of(rules, state).between(0, 0))
    assert found == [(), (), (), (Bound(3),)]


def test_the_history_of_an_estimate() -> None:
    state = start(OWN)
    for clock, instant in enumerate((10, 8, 9, 3)):
        state = estimate(OWN, state, arrived([(0, instant)]), clock)
    assert state.changes == (Changed(1, 0, 0, 0, 3), Changed(3, 0, 0, 0, 8))
    for clock in range(2 * KEPT_CHANGES):
        state = estimate(OWN, state, arrived([(0, -clock)]), clock)
    assert len(state.changes) == KEPT_CHANGES


def test_strictly_rising_timestamps_are_found_out() -> None:
    """Compared with itself, as in the printed figure 4, no row could be less than 1 behind."""
    state = start(OWN)
    for clock in range(5):
        state = estimate(OWN, state, arrived([(0, clock)]), clock)
    assert bounds_of(OWN, state).between(0, 0) == (Bound(0),)
