"""Groups of streams: what is worked out for all at once is what holds for each."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generating import Driven, arrived, rules_of
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, next_due, start
from headrace.heartbeats.groups import GroupedMatrix, Skew
from headrace.heartbeats.skew import Bound, Bounds, SkewMatrix, within, without_redundant
from headrace.heartbeats.steps import BoundKind, BoundSteps
from headrace.heartbeats.together import Together
from headrace.reference.skew import Triple, grouped, weaker
from headrace.time import BEGINNING
from headrace.workloads.simulated import Behaviour, Sources
from how_many import examples

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
    assert guarantees(as_bounds(weaker(triples(one), triples(other)))) == guarantees(one) & guarantees(other)


def triples(bounds: Bounds) -> set[Triple]:
    return {(one.delta, one.wait, one.rows) for one in bounds}


def of_groups(matrix: SkewMatrix, groups: tuple[tuple[int, ...], ...]) -> SkewMatrix:
    """The bounds of groups by their definition."""
    found = grouped({pair: triples(bounds) for pair, bounds in matrix.bounds.items()}, groups)
    latencies = tuple(max(matrix.latencies[place] for place in group) for group in groups)
    return SkewMatrix(latencies, {pair: as_bounds(bounds) for pair, bounds in found.items()})


def as_bounds(found: set[Triple]) -> Bounds:
    return tuple(Bound(*one) for one in sorted(found))


@given(MATRICES, GROUPS)
def test_the_bounds_of_groups(matrix: SkewMatrix, groups: tuple[tuple[int, ...], ...]) -> None:
    found = of_groups(matrix, groups)
    for a, first in enumerate(groups):
        for b, second in enumerate(groups):
            sets = [
                guarantees(tuple(one for one in matrix.between(i, j) if len(second) == 1 or not one.rows))
                for i in first
                for j in second
            ]
            assert guarantees(found.between(a, b)) == set.intersection(*sets)


SIZE = 6
STREAMS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=SIZE, unique=True).map(tuple)
SKEWS = st.lists(st.builds(Skew, STREAMS, STREAMS, SETS), max_size=3)
OWN = st.sampled_from(((), (within(0),), (within(2), Bound(0, rows=2)), (Bound(0, 3),)))
SOME_EQUAL = st.sampled_from(((0, 0, 0, 0, 0, 0), (0, 0, 0, 1, 1, 1), (0, 1, 0, 1, 0, 2), (0, 1, 2, 2, 2, 2)))
KINDS = st.tuples(SOME_EQUAL, st.tuples(OWN, OWN, OWN), st.tuples(*[st.integers(0, 2)] * 3))
"""Which streams have equal bounds with themselves and latencies, and which these are."""

Kinds = tuple[tuple[int, ...], tuple[Bounds, ...], tuple[int, ...]]


def both(kinds: Kinds, skews: list[Skew]) -> tuple[GroupedMatrix, SkewMatrix]:
    """The same bounds in groups, and between all streams as they are declared."""
    places, own, latencies = kinds
    bounds: dict[tuple[int, int], tuple[Bound, ...]] = {(i, i): own[kind] for i, kind in enumerate(places)}
    for skew in skews:
        for i in skew.firsts:
            for j in skew.seconds:
                if i != j:
                    bounds[i, j] = (*bounds.get((i, j), ()), *skew.bounds)
    found = [latencies[kind] for kind in places], [own[kind] for kind in places]
    return GroupedMatrix.of(*found, skews), SkewMatrix(tuple(found[0]), bounds)


@given(KINDS, SKEWS)
def test_groups_have_the_bounds_of_all_their_streams(kinds: Kinds, skews: list[Skew]) -> None:
    grouped_by_kind, full = both(kinds, skews)
    assert grouped_by_kind.expanded() == full
    assert grouped_by_kind.closure().expanded() == full.closure()


@given(KINDS, SKEWS, st.integers(0, 1000), st.integers(1, 3), st.booleans())
def test_each_stream_of_a_group_has_the_heartbeat_of_the_full_matrix(
    kinds: Kinds, skews: list[Skew], seed: int, granule: int, closed: bool
) -> None:
    """As the driver makes them: streams whose clocks stand still, and heartbeats that come from outside."""
    in_groups, full = both(kinds, skews)
    if closed:
        in_groups, full = in_groups.closure(), full.closure()
    by_group, of_all = (rules_of(matrix, granule, follows_on=closed) for matrix in (in_groups, full))
    random = Random(seed)
    sent = Sources(full.closure(), Behaviour(), random).run(10)
    one, other = start(by_group), start(of_all)
    clocks = DrainedClocks.stopped([0] * SIZE)
    for now in range(14):
        clocks = clocks.look(now, [random.random() < 0.8 for _ in range(SIZE)], longest=5)
        rows = arrived([(row.stream, row.instant) for row in sent if row.arrives == now])
        promises = {random.randrange(SIZE): now} if random.random() < 0.3 else {}
        one = generate(by_group, one, rows, clocks, promises)
        other = generate(of_all, other, rows, clocks, promises)
        assert one.heartbeats.tolist() == other.heartbeats.tolist()
        assert next_due(by_group, one, clocks.caught_up) == next_due(of_all, other, clocks.caught_up)


@examples(17)
@given(MATRICES, GROUPS, st.integers(0, 1000))
def test_heartbeats_of_streams_are_not_behind_those_of_their_groups(
    matrix: SkewMatrix, groups: tuple[tuple[int, ...], ...], seed: int
) -> None:
    """Section 5.2 has one heartbeat per group, which holds and comes no earlier than that of each stream."""
    closed = matrix.closure()
    sent = Sources(closed, Behaviour(), Random(seed)).run(15)
    single, rules = Driven(rules_of(closed)), rules_of(of_groups(closed, groups), follows_on=False)
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
    off = (1, 2, 5)
    deviations = [off[place % 3] for place in range(12)]
    groups = tuple(tuple(range(kind, 12, 3)) for kind in range(3))
    skews = [
        Skew(first, second, (Bound(a + b),))
        for first, a in zip(groups, off, strict=True)
        for second, b in zip(groups, off, strict=True)
    ]
    found = GroupedMatrix.of((0, 7, 0) * 4, [(Bound(one),) for one in deviations], skews)
    assert found.groups == ((0, 3, 6, 9), (1, 4, 7, 10), (2, 5, 8, 11))
    assert found.matrix.size == 6
    assert found.latencies.tolist() == [0, 7, 0] * 4
    pairs = {
        (i, j): (Bound(one if i == j else one + other),)
        for i, one in enumerate(deviations)
        for j, other in enumerate(deviations)
    }
    assert found.expanded().bounds == pairs == found.closure().expanded().bounds
    assert of_groups(found.expanded(), groups).between(2, 2) == (Bound(10),)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple), max_size=4),
    st.tuples(*[st.integers(-9, 9)] * 5),
)
def test_the_least_and_the_largest_of_what_is_read_together(
    sets: list[tuple[int, ...]], numbers: tuple[int, ...]
) -> None:
    together = Together.of(sets, 5)
    met = [{place}.union(*(one for one in sets if place in one)) for place in range(5)]
    assert together.least(np.array(numbers)).tolist() == [min(numbers[one] for one in some) for some in met]
    assert together.largest(np.array(numbers)).tolist() == [max(numbers[one] for one in some) for some in met]


@given(KINDS, SKEWS, st.lists(st.none() | st.integers(0, 9), min_size=SIZE, max_size=SIZE))
def test_what_the_rows_of_groups_promise(kinds: Kinds, skews: list[Skew], newest: list[int | None]) -> None:
    """Line 4 of figure 2, for each bound of the full matrix."""
    in_groups, full = both(kinds, skews)
    steps = BoundSteps.of(in_groups, lambda bound: True)
    news = np.array([BEGINNING if one is None else one for one in newest], dtype=np.int64)
    expected: dict[BoundKind, int] = {}
    for (i, j), bounds in full.bounds.items():
        for bound in bounds:
            kind, seen = BoundKind(j, bound.wait + full.latencies[j], bound.rows, i == j), newest[i]
            promise = BEGINNING if seen is None else seen - bound.delta + 1
            expected[kind] = max(expected.get(kind, BEGINNING), promise)
    assert dict(zip(steps.kinds, steps.promised(news).tolist(), strict=True)) == expected


@given(KINDS, SKEWS)
def test_which_streams_of_groups_need_a_timeout(kinds: Kinds, skews: list[Skew]) -> None:
    """Theorem 3.3, for each pair of streams of the full matrix."""
    in_groups, full = (matrix.closure() for matrix in both(kinds, skews))
    pairs = full.stalling()
    unbounded = {j for i, j in pairs if i != j and all(bound.rows for bound in full.between(i, j))}
    assert in_groups.stalling() == (tuple(sorted(unbounded)), tuple(sorted({j for _, j in pairs})))
    assert in_groups.needs_timeout() == bool(pairs) == full.needs_timeout()
