"""The policy that keeps a run within its limits, as a function of values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.tunings.tunings import Tuning, TuningKind, granules_of, nests
from headrace.elements import Int64Array
from headrace.runtime.driver.manager.load import Load
from headrace.runtime.driver.manager.policy import (
    PARTS,
    STEPS,
    TOO_MUCH,
    USED,
    Budget,
    Decision,
    Knobs,
    Point,
    decided,
)


def bytes_by_hand(load: Load, values: list[int]) -> float:
    """The definition, operator by operator."""
    found = load.fixed
    for number, per_row in enumerate(load.per_row.tolist()):
        rows = 0.0
        for entry in np.flatnonzero(load.owners == number).tolist():
            knob, other = load.knobs[entry], load.granule_knobs[entry]
            span = (values[knob] if knob >= 0 else load.lengths[entry]) + load.lags[entry]
            granule = values[other] if other >= 0 else load.granules[entry]
            come, groups = load.rates[entry] * span, load.groups[number]
            if math.isfinite(groups):
                cells = groups * span / granule
                come = cells * (1 - math.exp(-come / cells))
            rows += come
        found += per_row * rows * (rows / load.rows[number]) ** (load.degrees[number] - 1)
    return float(found)


@st.composite
def loads(draw: st.DrawFn, knobs: Knobs) -> Load:
    """Some operators, each with a window below it at least."""
    operators = draw(st.integers(1, 4))
    owners = sorted([*range(operators), *draw(st.lists(st.integers(0, operators - 1), max_size=3))])

    def numbers(low: float, high: float, count: int) -> np.ndarray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)))

    def some(among: list[int]) -> np.ndarray:
        return np.array([draw(st.sampled_from([-1, *among])) for _ in owners], dtype=np.int64)

    granules = knobs.places.tolist()
    windows = [place for place in range(len(knobs.values)) if place not in granules]
    return Load(
        draw(st.floats(0, 1000)),
        numbers(0, 100, operators),
        numbers(1, 50, operators),
        np.array(draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=operators, max_size=operators))),
        np.array([draw(st.sampled_from([1.0, 3.0, 50.0, np.inf])) for _ in range(operators)]),
        np.array(owners),
        numbers(0.01, 3, len(owners)),
        numbers(0, 3, len(owners)),
        some(windows),
        numbers(1, 40, len(owners)),
        some(granules),
        np.ones(len(owners)),
    )


@st.composite
def knob_sets(draw: st.DrawFn) -> Knobs:
    """Sizes and granules within bounds, settled or not."""
    found, settled, places, steps = [], [], [], []
    for place in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)):
            low, more = draw(st.integers(1, 1000)), draw(st.integers(0, 5000))
            found.append((low, low + more, low + draw(st.integers(0, more))))
        else:
            tuning = granule(draw(st.integers(1, 5)), draw(st.sampled_from([2, 6, 7, 12, 60])))
            found.append((tuning.largest, tuning.smallest, draw(st.sampled_from(granules_of(tuning)))))
            places.append(place)
            steps.append(steps_of(tuning))
        settled.append(draw(st.booleans()))
    least, most, values = np.array(found, dtype=np.int64).T
    table = np.array(steps, dtype=np.int64).reshape(-1, STEPS + 1).T
    return Knobs(least, most, values, np.array(settled), np.array(places, dtype=np.int64), table)


def granule(finest: int, times: int) -> Tuning:
    return Tuning(("s",), finest, finest * times, 1, kind=TuningKind.GRANULE)


def steps_of(tuning: Tuning) -> list[int]:
    """The allowed granule that is nearest to so much of the way, by the definition."""
    way = tuning.largest - tuning.smallest
    goals = (tuning.largest - way * step // STEPS for step in range(STEPS + 1))
    return [min(granules_of(tuning), key=lambda one: abs(one - goal)) for goal in goals]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Load, Knobs, int]:
    knobs = draw(knob_sets())
    return draw(loads(knobs)), knobs, draw(st.integers(1, 2_000_000))


def after(knobs: Knobs, values: Int64Array) -> Knobs:
    return replace(knobs, values=values)


def chosen(load: Load, knobs: Knobs, *limits: float) -> Decision:
    return decided([Budget(load, limit) for limit in limits], knobs)


@given(cases())
def test_the_bytes_are_those_of_the_definition(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, _ = case
    assert load.at(knobs.values) == pytest.approx(bytes_by_hand(load, knobs.values.tolist()))


@given(cases(), st.integers(0, PARTS), st.integers(0, PARTS))
def test_what_is_needed_grows_with_the_fraction(case: tuple[Load, Knobs, int], one: int, other: int) -> None:
    load, knobs, _ = case
    low, high = (knobs.at(Point(part * STEPS // PARTS, part)) for part in sorted((one, other)))
    assert (knobs.lesser(low, high) == low).all()
    assert load.at(low) <= load.at(high) * (1 + 1e-9)


@given(knob_sets(), st.integers(0, PARTS))
def test_granules_are_such_as_nest(knobs: Knobs, part: int) -> None:
    found = knobs.at(Point(part * STEPS // PARTS, part))
    for place in knobs.places.tolist():
        assert nests(
            granule(int(knobs.most[place]), int(knobs.least[place] // knobs.most[place])), found[place]
        )


@given(cases(), st.floats(0.1, 10))
def test_of_two_limits_the_one_decides_that_allows_less(case: tuple[Load, Knobs, int], part: float) -> None:
    load, knobs, limit = case
    knobs = replace(knobs, values=knobs.most, settled=np.ones(len(knobs.values), dtype=np.bool_))
    both = chosen(load, knobs, limit, limit * part)
    assert (both.values == chosen(load, knobs, min(limit, limit * part)).values).all()


@given(cases())
def test_no_more_is_expected_than_the_limit_allows_unless_the_smallest_sizes_need_more(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = chosen(load, knobs, limit)
    assert (knobs.lesser(knobs.least, found.values) == knobs.least).all()
    assert (knobs.lesser(knobs.most, found.values) == found.values).all()
    (needs,) = found.needs
    assert needs.expected == pytest.approx(load.at(found.values))
    if needs.missing:
        assert needs.least > USED * limit
        assert needs.missing == pytest.approx(needs.least - USED * limit)
        return
    changes = (found.values != knobs.values).any()
    assert needs.expected <= (USED if changes else TOO_MUCH) * limit * (1 + 1e-9)


@given(cases())
def test_where_the_smallest_sizes_need_more_than_there_is_windows_have_these(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = chosen(load, knobs, limit)
    if load.at(knobs.least) > TOO_MUCH * limit:
        assert (found.values == knobs.least).all()
        assert found.point == Point(0, 0)


@given(cases(), st.integers(1, 2_000_000))
def test_a_smaller_limit_never_gives_larger_windows(case: tuple[Load, Knobs, int], other: int) -> None:
    load, knobs, limit = case
    low, high = sorted((limit, other))
    assert chosen(load, knobs, low).point.part <= chosen(load, knobs, high).point.part
    # Their sizes too, where all of them begin with the largest ones.
    first = replace(after(knobs, knobs.most), settled=np.ones(len(knobs.values), dtype=np.bool_))
    less, more = chosen(load, first, low).values, chosen(load, first, high).values
    assert (knobs.lesser(less, more) == less).all()


@given(cases())
def test_all_windows_have_their_largest_sizes_where_these_fit(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, limit = case
    settled = replace(knobs, settled=np.ones(len(knobs.values), dtype=np.bool_))
    roomy = int(load.at(knobs.most) / 0.7) + limit + 1
    found = chosen(load, settled, roomy)
    assert found.point == Point(STEPS, PARTS)
    assert (found.values == knobs.most).all()


@given(cases())
def test_what_was_decided_is_decided_again(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, limit = case
    once = chosen(load, knobs, limit).values
    assert (chosen(load, after(knobs, once), limit).values == once).all()


@given(cases(), st.lists(st.floats(0.96, 1.04), min_size=1, max_size=8))
def test_sizes_do_not_go_to_and_fro_while_rows_come_about_as_they_do(
    case: tuple[Load, Knobs, int], noise: list[float]
) -> None:
    load, knobs, limit = case
    knobs = replace(knobs, settled=np.ones(len(knobs.values), dtype=np.bool_))
    first = chosen(load, knobs, limit)
    if not (first.values != knobs.values).any() or first.needs[0].missing:
        return
    for factor in noise:
        # The same rows, each a little longer or shorter.
        drifted = replace(load, fixed=load.fixed * factor, per_row=load.per_row * factor)
        assert (chosen(drifted, after(knobs, first.values), limit).values == first.values).all()


@given(cases())
def test_only_windows_whose_last_change_has_taken_effect_become_longer(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = chosen(load, knobs, limit)
    assert (knobs.lesser(found.values, knobs.values) == found.values)[~knobs.settled].all()


@given(st.data())
def test_two_limits_of_different_things_are_both_kept(data: st.DataObject) -> None:
    knobs = data.draw(knob_sets())
    knobs = replace(knobs, values=knobs.most, settled=np.ones_like(knobs.settled))
    budgets = [Budget(data.draw(loads(knobs)), data.draw(st.floats(1, 2e6))) for _ in range(2)]
    found, alone = decided(budgets, knobs), [decided([one], knobs) for one in budgets]
    # The larger reduction wins, and what is told first is what is needed the most of.
    assert found.point == min(one.point for one in alone)
    parts = [one.needs[0].now / budget.free for one, budget in zip(alone, budgets, strict=True)]
    assert parts[found.tightest] == max(parts)
    assert all(
        need.expected <= TOO_MUCH * budget.free or (found.values == knobs.at(Point(0, 0))).all()
        for need, budget in zip(found.needs, budgets, strict=True)
    )
    assert decided([budgets[0], replace(budgets[1], limit=math.inf)], knobs).point == alone[0].point


def test_what_does_not_depend_on_windows_counts_too() -> None:
    none, nobody = np.zeros(0), np.zeros(0, dtype=np.int64)
    empty = Load(5.0, none, none, none, none, nobody, none, none, nobody, none, nobody, none)
    knobs = Knobs(np.array([1]), np.array([9]), np.array([4]), np.array([True]))
    assert chosen(empty, knobs, 100).values.tolist() == [9]
    assert chosen(empty, knobs, 5).values.tolist() == [1]


def test_the_way_is_cut_into_hundredths_without_overflow() -> None:
    far = 2**61
    knobs = Knobs(np.array([0]), np.array([far]), np.array([0]), np.array([True]))
    assert [int(knobs.at(Point(0, part))[0]) for part in (0, 50, 99, 100)] == [
        0,
        far // 2,
        far * 99 // 100,
        far,
    ]
