"""Laws of scheduling: shares, bounds, starvation, the memory of Chain, and what no policy changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.scheduling.policies import HASTE, POLICIES, QueuedRows, chain, greedy, weighted
from headrace.scheduling.progress import ChartPoint, PathStep, lower_envelope, progress_chart, slope_between
from headrace.scheduling.simulation import Burst, QueuedOperator, ServedTurn, simulate
from how_many import examples

SELECTIVITIES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
COSTS = st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0])
WEIGHTS = st.sampled_from([1.0, 2.0, 3.0])


@st.composite
def independent(draw: st.DrawFn) -> list[QueuedOperator]:
    count = draw(st.integers(2, 5))
    return [QueuedOperator(f"q{one}", draw(COSTS), weight=draw(WEIGHTS)) for one in range(count)]


@examples(60, 500)
@given(operators=independent(), seconds=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_shares_are_those_of_the_weights_within_a_turn(
    operators: list[QueuedOperator], seconds: float
) -> None:
    bursts = [Burst(0.0, one.name, 200) for one in operators]
    left = dict.fromkeys((one.name for one in operators), 200)
    weights = {one.name: one.weight for one in operators}
    passes, largest = dict.fromkeys(left, 0.0), dict.fromkeys(left, 0.0)
    for turn in simulate(operators, bursts, weighted, seconds).turns:
        left[turn.operator] -= turn.rows
        if min(left.values()) == 0:
            break
        had = (turn.end - turn.begin) / weights[turn.operator]
        passes[turn.operator] += had
        largest[turn.operator] = max(largest[turn.operator], had)
        assert max(passes.values()) - min(passes.values()) <= max(largest.values()) + 1e-9
    assert all(passes.values())


@examples(60, 500)
@given(
    free=st.lists(WEIGHTS, min_size=1, max_size=3),
    bounds=st.lists(
        st.tuples(WEIGHTS, st.sampled_from([0.5, 5.0, 20.0]), st.integers(1, 3)), min_size=1, max_size=2
    ),
)
def test_bounds_that_cannot_be_kept_starve_nobody(
    free: list[float], bounds: list[tuple[float, float, int]]
) -> None:
    """Queues without a bound that always have rows, beside others for which the processor is too slow."""
    operators = [QueuedOperator(f"free{place}", 1.0, weight=weight) for place, weight in enumerate(free)]
    bursts = [Burst(0.0, one.name, 400) for one in operators]
    for place, (weight, bound, rows) in enumerate(bounds):
        operators.append(QueuedOperator(f"bound{place}", 1.0, weight=weight, bound=bound))
        bursts += [Burst(float(at), f"bound{place}", rows) for at in range(400)]
    served = [turn.operator for turn in simulate(operators, bursts, weighted).turns[:400]]
    for one in operators:
        places = [place for place, name in enumerate(served) if name == one.name]
        # Of the queues without a bound each has three turns at most for one of another, by their weights.
        # Those with bounds are late by the same time in the end, which takes longer the later a bound is.
        most = (HASTE + 1) * (1 + 4 * len(free)) if one.bound is None else 200
        gaps = [after - before for before, after in pairwise((0, *places, len(served)))]
        assert max(gaps) <= most, (one.name, served)


@st.composite
def fitting(draw: st.DrawFn) -> tuple[list[QueuedOperator], list[Burst]]:
    """Queues with bounds that need 0.7 of the processor, and others that are due far more and take all."""
    operators = [QueuedOperator(f"free{one}", 1.0, weight=10.0) for one in range(draw(st.integers(1, 3)))]
    bursts, count = [Burst(0.0, one.name, 300) for one in operators], draw(st.integers(1, 3))
    for place in range(count):
        cost, rows = draw(st.sampled_from([0.5, 1.0])), draw(st.integers(1, 3))
        period = count * cost * rows / 0.7 + draw(st.integers(0, 10))
        bound = 2 * period + draw(st.integers(2, 20))
        operators.append(QueuedOperator(f"q{place}", cost, weight=draw(WEIGHTS), bound=bound))
        first = draw(st.integers(0, 10))
        bursts += [Burst(first + one * period, f"q{place}", rows) for one in range(int(150 / period))]
    return operators, bursts


@examples(60, 500)
@given(load=fitting(), seconds=st.sampled_from([0.0, 1.0, 2.0]))
def test_bounds_are_kept_under_a_load_that_fits(
    load: tuple[list[QueuedOperator], list[Burst]], seconds: float
) -> None:
    operators, bursts = load
    bounds = {one.name: one.bound for one in operators}
    for one in simulate(operators, bursts, weighted, seconds).departures:
        bound = bounds[one.operator]
        assert bound is None or one.left - one.arrived <= bound, one


@st.composite
def paths(draw: st.DrawFn) -> list[QueuedOperator]:
    """One or two chains of operators."""
    found = []
    for path in range(draw(st.integers(1, 2))):
        length = draw(st.integers(1, 3))
        for place in range(length):
            following = f"p{path}-{place + 1}" if place + 1 < length else None
            found.append(QueuedOperator(f"p{path}-{place}", draw(COSTS), draw(SELECTIVITIES), following))
    return found


@examples(40, 300)
@given(
    operators=paths(),
    comings=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(1, 8)), min_size=1, max_size=8
    ),
    seconds=st.sampled_from([0.0, 1.0, 4.0]),
)
def test_no_policy_changes_what_is_answered_and_when_all_is_done(
    operators: list[QueuedOperator], comings: list[tuple[int, int, int]], seconds: float
) -> None:
    names = {one.name for one in operators}
    bursts = [Burst(at, f"p{path}-0", rows) for at, path, rows in comings if f"p{path}-0" in names]
    assume(bursts)
    found = {name: simulate(operators, bursts, policy, seconds) for name, policy in POLICIES.items()}
    first = found["fifo"]
    for one in found.values():
        assert one.memory[-1][1] == 0
        assert len(one.departures) == len(first.departures)
        assert abs(one.turns[-1].end - first.turns[-1].end) < 1e-6
        assert all(before < after for (before, _), (after, _) in pairwise(one.memory))
        assert all(before.end <= after.begin for before, after in pairwise(one.turns))
        assert _worked_on(one.turns) == _worked_on(first.turns)


def _worked_on(turns: Sequence[ServedTurn]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for turn in turns:
        rows[turn.operator] = rows.get(turn.operator, 0) + turn.rows
    return rows


CHARTS = st.lists(st.tuples(COSTS, SELECTIVITIES), min_size=1, max_size=6).map(
    lambda steps: progress_chart([PathStep(*one) for one in steps])
)


@given(chart=CHARTS)
def test_the_envelope_is_below_the_chart_and_less_and_less_steep(chart: tuple[ChartPoint, ...]) -> None:
    envelope = lower_envelope(chart)
    assert (envelope[0], envelope[-1]) == (chart[0], chart[-1])
    assert set(envelope) <= set(chart)
    slopes = [slope_between(*two) for two in pairwise(envelope)]
    assert slopes == sorted(slopes)
    for begin, end in pairwise(envelope):
        for point in chart:
            if begin.seconds <= point.seconds <= end.seconds and end.seconds > begin.seconds:
                line = begin.size + (point.seconds - begin.seconds) * slope_between(begin, end)
                assert point.size >= line - 1e-9


Path = tuple[float, ...]
"""The sizes of a row before each of its operators, each of which takes a unit of time; then it is gone."""
State = tuple[tuple[int, ...], ...]
"""By path how many rows are before each operator."""


@st.composite
def unit_paths(draw: st.DrawFn) -> list[Path]:
    found = []
    for _ in range(draw(st.integers(1, 2))):
        sizes = [1.0]
        for _ in range(draw(st.integers(0, 3))):
            sizes.append(sizes[-1] * draw(SELECTIVITIES.filter(bool)))
        found.append(tuple(sizes))
    return found


def _size(paths: Sequence[Path], state: State) -> float:
    return sum(
        rows * size
        for path, waiting in zip(paths, state, strict=True)
        for rows, size in zip(waiting, path, strict=True)
    )


def _after(state: State, path: int, place: int) -> State:
    waiting = list(state[path])
    waiting[place] -= 1
    if place + 1 < len(waiting):
        waiting[place + 1] += 1
    return (*state[:path], tuple(waiting), *state[path + 1 :])


def _with(state: State, coming: Sequence[int]) -> State:
    return tuple((waiting[0] + rows, *waiting[1:]) for waiting, rows in zip(state, coming, strict=True))


def _queues(paths: Sequence[Path], state: State) -> Iterator[tuple[QueuedRows, int, int]]:
    for path, (sizes, waiting) in enumerate(zip(paths, state, strict=True)):
        for place, rows in enumerate(waiting):
            # For a whole row an operator takes more time if only a part of each row comes to it.
            steps = tuple(PathStep(1 / size, after / size) for size, after in pairwise((*sizes[place:], 0.0)))
            yield QueuedRows(f"{path}-{place}", rows, 0.0, *steps[0], steps=steps), path, place


@examples(40, 400)
@given(paths=unit_paths(), data=st.data())
def test_chain_needs_a_row_of_each_path_more_than_any_order_at_any_instant(
    paths: list[Path], data: st.DataObject
) -> None:
    comings = st.lists(st.tuples(*(st.integers(0, 2) for _ in paths)), min_size=1, max_size=4)
    coming = [*data.draw(comings), *[(0,) * len(paths)] * 8]
    mine: State = tuple((0,) * len(path) for path in paths)
    reachable = {mine}
    for rows in coming:
        mine, reachable = _with(mine, rows), {_with(state, rows) for state in reachable}
        fewest = min(_size(paths, state) for state in reachable)
        assert _size(paths, mine) <= fewest + len(paths) + 1e-9
        moves = {(path, place): None for path, sizes in enumerate(paths) for place in range(len(sizes))}
        reachable |= {
            _after(state, path, place) for state in reachable for path, place in moves if state[path][place]
        }
        queues = list(_queues(paths, mine))
        turn = chain([queue for queue, _, _ in queues], 0.0)
        for queue, path, place in queues:
            if turn is not None and queue.name == turn.name:
                mine = _after(mine, path, place)


@given(chart=CHARTS)
def test_chain_is_greedy_where_the_chart_is_its_envelope(chart: tuple[ChartPoint, ...]) -> None:
    assume(lower_envelope(chart) == chart)
    sizes = [one.size for one in chart]
    assume(all(sizes[:-1]))
    steps = [
        PathStep((end.seconds - begin.seconds) / begin.size, end.size / begin.size)
        for begin, end in pairwise(chart)
    ]
    queues = [
        QueuedRows(str(place), 1, 0.0, *steps[place], steps=tuple(steps[place:]))
        for place in range(len(steps))
    ]
    assert chain(queues, 0.0) == greedy(queues, 0.0)
