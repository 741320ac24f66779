"""Groups of streams: their bounds are those that all of their streams keep, no weaker and no stronger."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from generating import Driven, arrived, rules_of
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, start
from headrace.heartbeats.groups import by_parameters, grouped, of_kinds, weaker
from headrace.heartbeats.simulated import Behaviour, Sources
from headrace.heartbeats.skew import Bound, Bounds, SkewMatrix, within, without_redundant

SMALL = st.integers(0, 4)
BOUND = st.builds(Bound, SMALL, SMALL) | st.builds(Bound, SMALL, SMALL, st.integers(1, 2))
SETS = st.lists(BOUND, max_size=3).map(without_redundant)
PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))
MATRICES = st.builds(
    SkewMatrix,
    st.tuples(*[st.integers(0, 2)] * 4),
    st.dictionaries(PAIRS, SETS, min_size=4),
)
GROUPS = st.sampled_from((((0, 1), (2, 3)), ((0,), (1, 2, 3)), ((2,), (0,), (1, 3)), ((0, 1, 2, 3),)))


def guarantees(bounds: Bounds) -> set[tuple[int, int, int]]:
    """Everything that bounds imply, by the definition: for each wait and number of rows."""
    return {
        (delta, wait, rows)
        for delta in range(6)
        for wait in range(6)
        for rows in range(4)
        if any(one.implies(Bound(delta, wait, rows)) for one in bounds)
    }


@given(SETS, SETS)
def test_the_weaker_of_two_sets_guarantees_what_both_do(one: Bounds, other: Bounds) -> None:
    assert guarantees(weaker(one, other)) == guarantees(one) & guarantees(other)


@given(MATRICES, GROUPS)
def test_the_bounds_of_groups(matrix: SkewMatrix, groups: tuple[tuple[int, ...], ...]) -> None:
    found = grouped(matrix, groups)
    for a, first in enumerate(groups):
        for b, second in enumerate(groups):
            sets = [
                guarantees(tuple(one for one in matrix.between(i, j) if len(second) == 1 or not one.rows))
                for i in first
                for j in second
            ]
            assert guarantees(found.between(a, b)) == set.intersection(*sets)
    assert found.latencies == tuple(max(matrix.latencies[i] for i in group) for group in groups)


@given(MATRICES, GROUPS, st.integers(0, 1000))
def test_heartbeats_of_groups_hold_and_come_no_earlier(
    matrix: SkewMatrix, groups: tuple[tuple[int, ...], ...], seed: int
) -> None:
    closed = matrix.closure()
    sent = Sources(closed, Behaviour(), Random(seed)).run(15)
    single, rules = Driven(rules_of(closed)), rules_of(grouped(closed, groups), follows_on=False)
    state = start(rules)
    for now in range(17):
        rows = [(row.stream, row.instant) for row in sent if row.arrives == now]
        for group, heartbeat in zip(groups, state.heartbeats.tolist(), strict=True):
            assert all(instant >= heartbeat for stream, instant in rows if stream in group)
        found = arrived(rows)
        arrivals = {}
        for place, group in enumerate(groups):
            total = Arrivals()
            for stream in group:
                total = total.beside(found.get(stream, Arrivals()))
            arrivals[place] = total
        state = generate(rules, state, arrivals, DrainedClocks.running([now] * len(groups)), {})
        single.epoch(now, rows)
        for group, heartbeat in zip(groups, state.heartbeats.tolist(), strict=True):
            assert heartbeat <= min(single.heartbeats[stream] for stream in group)


def test_sensors_of_three_kinds() -> None:
    """Section 4.2 for sensors whose clocks are at most 1, 2 or 5 off: as if each pair were looked at."""
    deviations = [(1, 2, 5)[place % 3] for place in range(12)]
    groups = by_parameters(deviations)
    assert groups == ((0, 3, 6, 9), (1, 4, 7, 10), (2, 5, 8, 11))
    own = [(Bound(d),) for d in (1, 2, 5)]
    between = {(a, b): (Bound((1, 2, 5)[a] + (1, 2, 5)[b]),) for a in range(3) for b in range(3)}
    pairs = {
        (i, j): (Bound(one if i == j else one + other),)
        for i, one in enumerate(deviations)
        for j, other in enumerate(deviations)
    }
    found = of_kinds([4, 4, 4], [0, 7, 0], own, between)
    assert found.bounds == grouped(SkewMatrix((0,) * 12, pairs), groups).bounds
    assert found.latencies == (0, 7, 0)
    assert found.between(2, 2) == (Bound(10),)
    assert of_kinds([1], [0], [(within(3),)], {}).between(0, 0) == (within(3),)
    assert of_kinds([2], [0], [(within(3),)], {}).between(0, 0) == ()
