"""Whole runs over sources that obey what is declared: no row is late, and no heartbeat could be larger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from headrace.heartbeats.skew import Bound
from headrace.heartbeats.timing import Follow, Timing
from headrace.reference.generation import ArrivedRow, figure_2, least_later
from headrace.time import BEGINNING
from headrace.workloads.simulated import Behaviour, SentRow, Sources
from how_many import examples
from simulated_runs import ANSWERS, NAMES, SINGLE, SimulatedRun, declared, inferred

SMALL = st.integers(0, 4)
TIMED = st.builds(Bound, SMALL, SMALL)
COUNTED = st.builds(Bound, SMALL, st.just(0), st.integers(1, 3))
SEEDS = st.integers(0, 1000)


@st.composite
def declarations(draw: st.DrawFn, bound: st.SearchStrategy[Bound], *, counted: bool) -> list[Timing]:
    """What three streams declare: disorder, latency, and two to five bounds between some of them."""
    follows: dict[str, list[Follow]] = {name: [] for name in NAMES}
    firsts = st.sampled_from([*((name,) for name in NAMES), ("a", "b"), NAMES])
    for some, second, found in draw(
        st.lists(st.tuples(firsts, st.sampled_from(NAMES), bound), min_size=2, max_size=5)
    ):
        if some != (second,):
            follows[second].append(Follow(some, (found,)))
    return [
        Timing(
            draw(st.none() | st.integers(-1, 4)),
            draw(st.none() | st.integers(1, 3)) if counted else None,
            draw(st.integers(0, 2)),
            follows=tuple(follows[name]),
        )
        for name in NAMES
    ]


ANY = declarations(TIMED | COUNTED, counted=True)
OF_TIME = declarations(TIMED, counted=False)


def readings(
    sent: Sequence[SentRow], random: Random, end: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Readings of the clock, some of them left out, with the rows that came since the one before."""
    done = 0
    for now in range(end):
        if random.random() < 0.7 or now == end - 1:
            yield now, [(row.stream, row.instant) for row in sent if done <= row.arrives <= now]
            done = now + 1


@examples(2, 18)
@given(ANY, SEEDS, st.integers(1, 2))
def test_no_row_is_late_and_the_answers_are_those_of_the_reference(
    timings: list[Timing], seed: int, tasks: int
) -> None:
    """Some rows are lost on the way, which does no harm."""
    random = Random(seed)
    sent = Sources(declared(timings), Behaviour(lost=0.2), random).run(12)
    run = SimulatedRun(timings, ANSWERS, tasks)
    for now, rows in readings(sent, random, 14):
        before = run.heartbeats
        run.epoch(now, rows)
        assert all(one <= other for one, other in zip(before, run.heartbeats, strict=True))
        assert run.late == 0
    run.check_answers()
    run.end()
    run.check_answers()


@examples(2, 18)
@given(ANY, SEEDS)
def test_rows_that_wait_are_not_late(timings: list[Timing], seed: int) -> None:
    """Epochs take parts of what waits, take long, and the clock is set back."""
    random = Random(seed)
    waiting = Sources(declared(timings), Behaviour(), random).run(12)
    run, behind = SimulatedRun(timings, ANSWERS), 0
    for now in range(20):
        behind += random.choice((0, 0, 0, 0, 7))
        if random.random() < 0.3:
            continue
        here = [row for row in waiting if row.arrives <= now]
        taken = here if random.random() < 0.4 else here[: random.randint(0, len(here))]
        waiting = [row for row in waiting if row not in taken]
        left = {row.stream for row in here if row not in taken}
        rows = [(row.stream, row.instant) for row in taken]
        run.epoch(now - behind, rows, [place not in left for place in range(3)])
        assert run.late == 0
    run.end()
    run.check_answers()


@examples(17)
@given(OF_TIME, SEEDS)
def test_heartbeats_are_what_figure_2_makes_of_the_closure(timings: list[Timing], seed: int) -> None:
    """Property 2. There are epochs without input where one moves, and only there."""
    random = Random(seed)
    matrix = declared(timings)
    sent = Sources(matrix, Behaviour(), random).run(12)
    bounds, run, seen = inferred(matrix), SimulatedRun(timings, SINGLE), list[ArrivedRow]()
    for now, rows in readings(sent, random, 24):
        before, epochs = run.heartbeats, run.run.totals.epochs
        seen += [(now, stream, instant) for stream, instant in rows]
        run.epoch(now, rows)
        taus = figure_2(bounds, matrix.latencies, seen, now)
        assert run.heartbeats == [BEGINNING if tau is None else tau + 1 for tau in taus]
        made = run.run.totals.epochs > epochs
        assert made == bool(rows or run.heartbeats != before)
        event(f"an epoch without input: {made and not rows}")


@examples(5, 15)
@given(OF_TIME, SEEDS)
def test_no_larger_heartbeat_could_be_inferred(timings: list[Timing], seed: int) -> None:
    """The same against all ways in which what came can have been sent."""
    matrix = declared(timings)
    bounds = {pair: [(bound.wait, bound.delta) for bound in found] for pair, found in matrix.bounds.items()}
    sent = Sources(matrix, Behaviour(activity=0.4, lost=0.3, spread=2), Random(seed)).run(3)[:3]
    run, seen = SimulatedRun(timings, SINGLE), list[ArrivedRow]()
    lowest = min([row.instant for row in sent], default=0) - 12
    for now in range(4):
        rows = [(row.stream, row.instant) for row in sent if row.arrives == now]
        seen += [(now, stream, instant) for stream, instant in rows]
        run.epoch(now, rows)
        for stream, heartbeat in enumerate(run.heartbeats):
            found = least_later(bounds, matrix.latencies, seen, now, stream, range(lowest, 15))
            assert found == max(heartbeat, lowest)


@st.composite
def assumptions(draw: st.DrawFn) -> list[Timing]:
    """The same with IDLE AFTER and TIMEOUT, which sources need not keep to."""
    length = st.none() | st.integers(1, 5)
    return [replace(timing, idle_after=draw(length), timeout=draw(length)) for timing in draw(ANY)]


@examples(2, 18)
@given(assumptions(), SEEDS)
def test_the_answers_are_those_over_the_rows_that_were_taken(timings: list[Timing], seed: int) -> None:
    """Rows of a stream that has been idle, or had a timeout, may be late; all others are answered for."""
    random = Random(seed)
    sent = Sources(declared(timings), Behaviour(activity=0.4, pauses=0.3), random).run(12)
    run = SimulatedRun(timings, ANSWERS)
    for now, rows in readings(sent, random, 20):
        before = run.heartbeats
        run.epoch(now, rows)
        assert all(one <= other for one, other in zip(before, run.heartbeats, strict=True))
    event(f"some are late: {run.late > 0}")
    run.check_answers()
    run.end()
    run.check_answers()
