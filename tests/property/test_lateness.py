"""Late is late by position: however the rows are cut into batches, parts and epochs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.bounded import (
    Arrivals,
    Judgement,
    advance,
    judge_in_order,
    judge_together,
)
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.positions import Positions
from headrace.heartbeats.skew import Bound
from headrace.reference.lateness import heartbeat_by_bounds, late_by_bounds, late_rows, needed_disorder
from headrace.time import BEGINNING, MAX_INSTANT, MIN_INSTANT

INSTANTS = st.integers(0, 12) | st.sampled_from((MIN_INSTANT, MAX_INSTANT, -5, 40))
TIMES = st.lists(INSTANTS, max_size=14)
DISORDERS = st.sampled_from((-1, 0, 1, 3, 7, MAX_INSTANT))
"""-1 is STRICT: a row has to be younger than all before it."""
CUTS = st.lists(st.integers(0, 14), max_size=4)


def cut(times: list[int], places: list[int]) -> list[list[int]]:
    """The rows in consecutive parts, empty ones among them."""
    bounds = [0, *sorted(min(place, len(times)) for place in places), len(times)]
    return [times[first:last] for first, last in pairwise(bounds)]


def judged(times: list[int], heartbeat: int, disorder: int) -> Judgement:
    return judge_in_order(np.array(times, dtype=np.int64), heartbeat, disorder)


def judge_parts(
    parts: list[list[int]], before: list[int], disorder: int
) -> tuple[Arrivals, list[tuple[int, int]]]:
    """Judge each part knowing `before` of what precedes it; the summary, and late rows with their limits."""
    seen, late, start = Arrivals(), list[tuple[int, int]](), 0
    for part, latest in zip(parts, before, strict=True):
        found = judged(part, advance(BEGINNING, latest, disorder), disorder)
        seen = seen.then(found.arrivals)
        late += zip((found.late + start).tolist(), found.heartbeats.tolist(), strict=True)
        start += len(part)
    return seen, late


def limits(times: list[int], disorder: int) -> list[tuple[int, int]]:
    """By the definition: the late rows, and the heartbeat that each is below."""
    return [(place, max(times[:place]) - disorder) for place in late_rows(times, disorder)]


def furthest(late: list[tuple[int, int]]) -> tuple[int, int]:
    """The largest heartbeat that a late row is below, and how many rows are below it."""
    largest = max((limit for _, limit in late), default=BEGINNING)
    return largest, sum(limit == largest for _, limit in late)


@given(TIMES, CUTS, DISORDERS)
def test_batches_judged_one_after_the_other(times: list[int], places: list[int], disorder: int) -> None:
    parts = cut(times, places)
    before = [max(times[: sum(map(len, parts[:number]))], default=BEGINNING) for number in range(len(parts))]
    seen, late = judge_parts(parts, before, disorder)
    assert late == limits(times, disorder)
    assert seen.certain >= BEGINNING
    assert (seen.rows, seen.late) == (len(times) - len(late), len(late))
    assert (seen.limit, seen.below) == furthest(late)
    assert seen.drop == needed_disorder(times)


@given(TIMES, CUTS, DISORDERS, st.data())
def test_parts_that_do_not_know_each_other_know_when_it_matters(
    times: list[int], places: list[int], disorder: int, data: st.DataObject
) -> None:
    """A guess of what comes before a part that is too low is found out exactly if it made a difference."""
    parts = cut(times, places)
    known = [max(times[: sum(map(len, parts[:number]))], default=BEGINNING) for number in range(len(parts))]
    guessed = [data.draw(st.sampled_from((BEGINNING, min(latest, 5), latest))) for latest in known]
    seen, late = judge_parts(parts, guessed, disorder)
    assert (seen.certain >= BEGINNING) == (late == limits(times, disorder))
    exact, _ = judge_parts(parts, known, disorder)
    assert (seen.latest, seen.earliest, seen.drop) == (exact.latest, exact.earliest, exact.drop)


@given(TIMES, TIMES, TIMES, DISORDERS)
def test_summaries_are_a_monoid(one: list[int], two: list[int], three: list[int], disorder: int) -> None:
    a, b, c = (judged(part, BEGINNING, disorder).arrivals for part in (one, two, three))
    assert a.then(b).then(c) == a.then(b.then(c))
    assert Arrivals().then(a) == a == a.then(Arrivals())
    assert a.beside(b) == b.beside(a)
    assert Arrivals().beside(a) == a


@given(TIMES)
def test_the_drop_is_the_disorder_that_takes_all(times: list[int]) -> None:
    drop = judged(times, BEGINNING, 0).arrivals.drop
    assert drop == needed_disorder(times)
    assert not late_rows(times, drop)
    assert drop == 0 or late_rows(times, drop - 1)


@given(TIMES, TIMES, DISORDERS)
def test_a_batch_without_order_is_judged_by_what_came_before(
    first: list[int], second: list[int], disorder: int
) -> None:
    before = judged(first, BEGINNING, disorder).arrivals
    heartbeat = advance(BEGINNING, before.latest, disorder)
    found = judge_together(np.array(second, dtype=np.int64), heartbeat)
    alone = [late_rows([*first, instant], disorder)[-1:] == [len(first)] for instant in second]
    assert found.late.tolist() == [place for place, late in enumerate(alone) if late]
    needed = max((needed_disorder([before.latest, instant]) for instant in second), default=0)
    assert before.then(found.arrivals).drop == max(before.drop, needed if first else 0)


BY_ROWS = st.tuples(st.integers(1, 4) | st.sampled_from((64, 100)), st.integers(0, 3))


@given(TIMES, CUTS, st.lists(BY_ROWS, max_size=2), st.none() | DISORDERS)
def test_rows_are_late_by_any_of_the_bounds_of_their_stream(
    times: list[int], places: list[int], counted: list[tuple[int, int]], disorder: int | None
) -> None:
    """However they are cut: each part begins with what those before it have counted."""
    times = [*times, *range(40), *times, *range(20, 110), *times]
    starts = tuple(Counting(0, rows, own=True) for rows, _ in counted)
    by_rows = tuple(Bound(delta, rows=rows) for rows, delta in counted)
    found = Positions(by_rows, disorder, starts, 0, BEGINNING)
    bounds = [*counted, *([] if disorder is None else [(0, disorder + 1)])]
    late, seen, start = list[int](), Arrivals(), 0
    for part in cut(times, [*places, *(10 * place for place in places)]):
        judgement, found = found.judge(np.array(part, dtype=np.int64))
        late += (judgement.late + start).tolist()
        assert (judgement.heartbeats > np.array(part, dtype=np.int64)[judgement.late]).all()
        seen, start = seen.then(judgement.arrivals), start + len(part)
        expected = heartbeat_by_bounds(times[:start], bounds)
        assert found.heartbeat == max(BEGINNING, BEGINNING if expected is None else expected)
        assert seen.promise <= found.heartbeat
        assert all(len(one.counted) <= 2 * 33 for one in found.counting)
    assert late == late_by_bounds(times, bounds)
    assert (seen.rows, seen.late) == (len(times) - len(late), len(late))
    assert seen.drop == needed_disorder(times)
