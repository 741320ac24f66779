"""Heartbeats hold whatever the sources do within their bounds, and none could be larger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generating import Driven, arrived, rules_of
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, next_due, start
from headrace.heartbeats.rules import SilencePolicy
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.heartbeats.state import State, StreamState
from headrace.reference.generation import ArrivedRow, DeclaredBounds, figure_2, least_later, obeys
from headrace.time import BEGINNING
from headrace.workloads.simulated import Behaviour, SentRow, Sources
from how_many import examples

SMALL = st.integers(0, 4)
TIMED = st.builds(Bound, SMALL, SMALL)
ANY = TIMED | st.builds(Bound, SMALL, st.integers(0, 1), st.integers(1, 3))


def matrices(bound: st.SearchStrategy[Bound], streams: int) -> st.SearchStrategy[SkewMatrix]:
    """Matrices of bounds between up to so many streams."""
    pairs = st.tuples(st.integers(0, streams - 1), st.integers(0, streams - 1))
    sets = st.lists(bound, min_size=1, max_size=2).map(tuple)
    latencies = st.tuples(*[st.integers(0, 2)] * streams)
    return st.builds(SkewMatrix, latencies, st.dictionaries(pairs, sets, max_size=2 * streams))


def epochs(sent: list[SentRow], random: Random, end: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Readings of the clock, some of them left out, with the rows that came since the one before."""
    done = 0
    for now in range(end):
        if random.random() < 0.7 or now == end - 1:
            rows = [(row.stream, row.instant) for row in sent if done <= row.arrives <= now]
            done = now + 1
            yield now, rows


@given(matrices(ANY, 3), st.integers(0, 1000), st.integers(1, 4), st.booleans())
def test_no_heartbeat_is_ever_violated(matrix: SkewMatrix, seed: int, granule: int, closed: bool) -> None:
    random = Random(seed)
    sent = Sources(matrix, Behaviour(lost=0.2), random).run(30)
    known = matrix.closure() if closed else matrix
    driven = Driven(rules_of(known, granule, follows_on=closed))
    for now, rows in epochs(sent, random, 33):
        before = driven.heartbeats
        assert all(instant >= before[stream] for stream, instant in rows)
        after = driven.epoch(now, rows)
        assert all(one <= other for one, other in zip(before, after, strict=True))


TIGHT = st.lists(st.builds(Bound, st.integers(0, 1), st.integers(0, 3)), min_size=9, max_size=9).map(
    lambda bounds: SkewMatrix(
        (0, 0, 0), {(place // 3, place % 3): (bound,) for place, bound in enumerate(bounds)}
    )
)


@given(matrices(ANY, 3) | TIGHT, st.integers(0, 1000), st.integers(1, 3))
def test_no_backlog_makes_a_row_late(matrix: SkewMatrix, seed: int, longest: int) -> None:
    """Rows wait of which epochs take parts; the system stops, is slow, and the clock is set back."""
    random = Random(seed)
    sent = Sources(matrix, Behaviour(), random).run(30)
    rules = rules_of(matrix.closure())
    state, clocks, behind = start(rules), DrainedClocks.stopped((0, 0, 0)), 0
    for now in range(45):
        if random.random() < 0.1:
            clocks = DrainedClocks.stopped(state.clocks.tolist())
        behind += random.choice((0, 0, 0, 0, 7))
        if random.random() < 0.3:
            continue
        here = [row for row in sent if row.arrives <= now]
        taken = here if random.random() < 0.4 else here[: random.randint(0, len(here))]
        sent = [row for row in sent if row not in taken]
        assert all(row.instant >= state.heartbeats[row.stream] for row in taken)
        left = {row.stream for row in here if row not in taken}
        clocks = clocks.look(now - behind, [stream not in left for stream in range(3)], longest)
        rows = [(row.stream, row.instant) for row in taken]
        state = generate(rules, state, arrived(rows), clocks, {})


@given(matrices(TIMED, 3), st.integers(0, 1000), st.integers(1, 4))
def test_what_is_inferred_without_closure_comes_later(matrix: SkewMatrix, seed: int, granule: int) -> None:
    random = Random(seed)
    sent = Sources(matrix, Behaviour(), random).run(20)
    plain, closed = Driven(rules_of(matrix, granule)), Driven(rules_of(matrix.closure(), granule))
    for now, rows in epochs(sent, random, 22):
        less, more = plain.epoch(now, rows), closed.epoch(now, rows)
        assert all(one <= other for one, other in zip(less, more, strict=True))


def as_pairs(matrix: SkewMatrix) -> DeclaredBounds:
    return {pair: [(bound.wait, bound.delta) for bound in bounds] for pair, bounds in matrix.bounds.items()}


@given(matrices(TIMED, 3), st.integers(0, 1000))
def test_the_array_is_that_of_figure_2(matrix: SkewMatrix, seed: int) -> None:
    random = Random(seed)
    sent = Sources(matrix, Behaviour(), random).run(20)
    driven, seen = Driven(rules_of(matrix)), list[ArrivedRow]()
    for now, rows in epochs(sent, random, 22):
        seen += [(now, stream, instant) for stream, instant in rows]
        expected = figure_2(as_pairs(matrix), matrix.latencies, seen, now)
        assert driven.epoch(now, rows) == [BEGINNING if tau is None else tau + 1 for tau in expected]


@given(matrices(TIMED, 3), st.integers(0, 1000), st.integers(2, 5))
def test_a_granule_delays_by_less_than_itself(matrix: SkewMatrix, seed: int, granule: int) -> None:
    sent = Sources(matrix, Behaviour(), Random(seed)).run(20)
    fine, coarse = Driven(rules_of(matrix)), Driven(rules_of(matrix, granule))
    history = [fine.heartbeats] * granule
    for now in range(25):
        rows = [(row.stream, row.instant) for row in sent if row.arrives == now]
        history.append(fine.epoch(now, rows))
        found = coarse.epoch(now, rows)
        assert all(one <= other for one, other in zip(found, history[-1], strict=True))
        assert all(one >= other for one, other in zip(found, history[-granule], strict=True))


@settings(max_examples=40)
@given(matrices(st.builds(Bound, st.integers(0, 2), st.integers(0, 1)), 2), st.integers(0, 1000))
def test_no_larger_heartbeat_could_be_inferred(matrix: SkewMatrix, seed: int) -> None:
    """Property 2 of section 3.3, against all ways in which what came can have been sent."""
    behaviour = Behaviour(activity=0.5, lost=0.3, spread=2)
    sent = Sources(matrix, behaviour, Random(seed)).run(3)[:4]
    bounds, driven, seen = as_pairs(matrix), Driven(rules_of(matrix.closure())), list[ArrivedRow]()
    lowest = min([row.instant for row in sent], default=0) - 6
    for now in range(4):
        rows = [(row.stream, row.instant) for row in sent if row.arrives == now]
        seen += [(now, stream, instant) for stream, instant in rows]
        for stream, heartbeat in enumerate(driven.epoch(now, rows)):
            tried = range(lowest, 15)
            found = least_later(bounds, matrix.latencies, seen, now, stream, tried)
            assert found == max(heartbeat, lowest)


@given(matrices(TIMED, 3), st.integers(0, 1000), st.integers(0, 3))
def test_simulated_sources_obey(matrix: SkewMatrix, seed: int, rate: int) -> None:
    sent = Sources(matrix, Behaviour(lost=0.2, rate=rate), Random(seed)).run(6)
    assert all(row.instant > row.emitted * rate - 5 for row in sent)
    assert all(0 <= row.arrives - row.emitted <= matrix.latencies[row.stream] for row in sent)
    assert obeys(as_pairs(matrix), [(row.emitted, row.stream, row.instant) for row in sent], 8)


Meeting = list[tuple[int, ...]]
POLICY = st.builds(
    SilencePolicy,
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 6),
)
MEETING = st.lists(st.sampled_from([(0,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]), max_size=2)


@examples(17)
@given(
    matrices(ANY, 3),
    st.tuples(POLICY, POLICY, POLICY),
    MEETING,
    st.integers(0, 1000),
    st.integers(1, 3),
    st.integers(0, 5),
)
def test_the_driver_knows_when_something_moves(
    matrix: SkewMatrix,
    policies: tuple[SilencePolicy, ...],
    meeting: Meeting,
    seed: int,
    granule: int,
    stopped: int,
) -> None:
    """From each state on, heartbeats first move when it says, looked at every moment or only then."""
    rules = rules_of(matrix, granule, policies, together=meeting)
    running = np.array([stream != stopped for stream in range(3)])

    def at(now: int, later: int) -> DrainedClocks:
        return DrainedClocks(now + later * running, running)

    driven = Driven(rules)
    sent = Sources(matrix, Behaviour(pauses=0.3), Random(seed)).run(8)
    for now in range(10):
        before = driven.epoch(now, [(row.stream, row.instant) for row in sent if row.arrives == now])
        wait = next_due(rules, driven.state, running)
        assert wait is None or wait > 0
        quiet = driven.state
        for later in range(1, wait or 25):
            quiet = generate(rules, quiet, {}, at(now, later), {})
            assert quiet.heartbeats.tolist() == before
        if wait is not None:
            for state in (driven.state, quiet):
                moved = generate(rules, state, {}, at(now, wait), {})
                assert moved.heartbeats.tolist() != before


@given(matrices(ANY, 3), st.tuples(POLICY, POLICY, POLICY), MEETING, st.integers(0, 1000), st.integers(1, 3))
def test_a_state_that_was_written_down_goes_on_as_before(
    matrix: SkewMatrix, policies: tuple[SilencePolicy, ...], meeting: Meeting, seed: int, granule: int
) -> None:
    rules = rules_of(matrix, granule, policies, together=meeting)
    driven = Driven(rules)
    sent = Sources(matrix, Behaviour(), Random(seed)).run(12)
    for now in range(14):
        rows = [(row.stream, row.instant) for row in sent if row.arrives == now]
        written = json.loads(json.dumps([one.to_json() for one in driven.state.streams(granule)]))
        read = State.of([StreamState.from_json(one) for one in written], granule, rules.width)
        again = generate(rules, read, arrived(rows), DrainedClocks.running([now] * 3), {0: now})
        driven.epoch(now, rows, {0: now})
        assert again.streams(granule) == driven.state.streams(granule)
        for row in driven.state.pending.tolist():
            assert len(row) == rules.width
