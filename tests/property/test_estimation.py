"""Estimated bounds take what they were estimated from, and nothing smaller would."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from generating import Driven, arrived, rules_of
from headrace.heartbeats.estimation import (
    Adaptivity,
    EstimationRules,
    EstimationState,
    bounds_of,
    estimate,
    start,
)
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.reference.estimation import estimated
from how_many import examples

PAIRS = ((0, 0), (0, 1), (1, 0), (1, 1))
WAITS = (0, 2, 4)
RULES = EstimationRules(2, PAIRS, WAITS, 1)
ROW = st.tuples(st.integers(0, 1), st.integers(0, 12))
EPOCHS = st.lists(st.tuples(st.integers(0, 3), st.lists(ROW, max_size=4)), min_size=1, max_size=10)


def run(rules: EstimationRules, epochs: list[tuple[int, list[tuple[int, int]]]]) -> EstimationState:
    """Estimate over epochs, each so long after the one before."""
    state, clock = start(rules), 0
    for passed, rows in epochs:
        clock += passed
        state = estimate(rules, state, arrived(rows), clock)
    return state


def late(matrix: SkewMatrix, granule: int, epochs: list[tuple[int, list[tuple[int, int]]]]) -> bool:
    """Whether a row is below its stream's heartbeat, or that of the rows before it in its epoch."""
    driven, clock = Driven(rules_of(matrix, granule)), 0
    own = [min((one.delta for one in matrix.between(i, i) if not one.wait), default=None) for i in (0, 1)]
    found = False
    for passed, rows in epochs:
        clock += passed
        for place, (stream, instant) in enumerate(rows):
            before = [other for other_stream, other in rows[:place] if other_stream == stream]
            limit = max(before) - (own[stream] or 0) + 1 if before and own[stream] is not None else instant
            found |= instant < max(driven.heartbeats[stream], limit)
        driven.epoch(clock, rows)
    return found


@given(EPOCHS, st.sampled_from((1, 2)))
def test_estimates_that_are_never_lowered_take_all_rows(
    epochs: list[tuple[int, list[tuple[int, int]]]], granule: int
) -> None:
    rules = replace(RULES, granule=granule)
    matrix = bounds_of(rules, run(rules, epochs))
    assert not late(matrix, granule, epochs)


@examples(17)
@given(EPOCHS, st.sampled_from((1, 2)))
def test_no_smaller_estimate_takes_all_rows(
    epochs: list[tuple[int, list[tuple[int, int]]]], granule: int
) -> None:
    rules = replace(RULES, granule=granule)
    state = run(rules, epochs)
    for wait, delays in zip(WAITS, state.estimates.delta.tolist(), strict=True):
        for (first, second), delta in zip(PAIRS, delays, strict=True):
            # Ties of a stream with itself are not seen in a summary, so that 1 may be too much.
            if delta > (first == second and not wait):
                smaller = SkewMatrix((0, 0), {(first, second): (Bound(int(delta) - 1, wait),)})
                assert late(smaller, granule, epochs)


@given(
    st.lists(st.tuples(st.integers(0, 3), ROW), max_size=25),
    st.sampled_from((2, 5, 1000)),
    st.sampled_from((0.0, 0.5, 0.75, 1.0)),
)
def test_figure_4_row_by_row(rows: list[tuple[int, tuple[int, int]]], window: int, alpha: float) -> None:
    rules = replace(RULES, adaptivity=Adaptivity(window, alpha=alpha))
    state = run(rules, [(passed, [row]) for passed, row in rows])
    came, clock = [], 0
    for passed, (stream, instant) in rows:
        clock += passed
        came.append((clock, stream, instant))
    for place, wait in enumerate(WAITS):
        for number, (first, second) in enumerate(PAIRS):
            expected = estimated(came, first, second, wait, window, alpha)
            assert state.estimates.delta[place, number] == (expected or 0)
            assert (state.estimates.rows[place, number] > 0) == (expected is not None)
            shown = [
                one.delta
                for one in state.changes
                if (one.first, one.second, one.wait) == (first, second, wait)
            ]
            if expected is not None:
                assert shown[-1] == math.ceil(expected)


@given(EPOCHS)
def test_what_is_remembered_is_bounded(epochs: list[tuple[int, list[tuple[int, int]]]]) -> None:
    state = run(RULES, epochs * 3)
    assert len(state.newest) <= WAITS[-1] + 2


@given(EPOCHS, st.integers(1, 3))
def test_a_state_that_was_written_down_goes_on_as_before(
    epochs: list[tuple[int, list[tuple[int, int]]]], window: int
) -> None:
    rules = replace(RULES, adaptivity=Adaptivity(window, alpha=0.3, often=0.5, falls=2))
    state, clock = start(rules), 0
    for passed, rows in epochs:
        clock += passed
        read = EstimationState.from_json(json.loads(json.dumps(state.to_json())))
        again = estimate(rules, read, arrived(rows), clock)
        state = estimate(rules, state, arrived(rows), clock)
        assert again.to_json() == state.to_json()
