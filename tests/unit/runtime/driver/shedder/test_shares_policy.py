"""Which shares are kept under a load: the policy as a function of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.tunings.loss import Loss
from headrace.operators.semantic_drop import BANDS
from headrace.runtime.driver.facts.capacity import HEADROOM
from headrace.runtime.driver.shedder.policy import (
    EARLY,
    LEAST,
    LOWERED,
    TOO_MUCH,
    Pressure,
    ShareKnob,
    shares_at,
    shares_wanted,
)
from headrace.runtime.driver.shedder.values_seen import ValuesSeen
from headrace.steps import WHOLE
from headrace.value_graph import ValueGraph
from how_many import examples


def utility(*points: tuple[float, str]) -> Callable[[int], float]:
    return Loss(tuple((round(share * WHOLE), Decimal(worth)) for share, worth in points)).utility


PLAIN = utility()
STEEP = utility((0.2, "0.9"))
"""A fifth of the rows is worth nine tenths: what is left out first costs little."""


def knob(
    cost: float,
    worth: Callable[[int], float] = PLAIN,
    share: int = WHOLE,
    queries: int = 1,
    least: int = LEAST,
) -> ShareKnob:
    return ShareKnob(share, cost, worth, queries, least)


def pressure(needed: float, behind: float | None = 2.0, bound: float = 2.0) -> Pressure:
    return Pressure(needed, behind, bound)


def needed_with(before: float, knobs: Sequence[ShareKnob], shares: Sequence[int]) -> float:
    return before - sum(one.needs(one.share - share) for one, share in zip(knobs, shares, strict=True))


def test_without_overload_nothing_is_left_out() -> None:
    for load in (pressure(0.89), pressure(3.0, behind=0.9), pressure(0.5, behind=10.0)):
        assert shares_wanted(load, [knob(0.4), knob(0.2)]) == (WHOLE, WHOLE)


def test_a_run_of_which_nobody_knows_what_waits_is_judged_by_what_it_needs() -> None:
    (share,) = shares_wanted(pressure(0.95, behind=None), [knob(0.6)])
    assert needed_with(0.95, [knob(0.6)], [share]) == pytest.approx(HEADROOM, abs=1e-5)


def test_where_nobody_bears_loss_nothing_is_done() -> None:
    assert shares_wanted(pressure(5.0), []) == ()


def test_what_costs_readers_least_for_what_it_saves_is_left_out_first() -> None:
    knobs = [knob(0.5), knob(0.5, STEEP)]
    plain, steep = shares_wanted(pressure(1.0), knobs)
    assert plain == WHOLE
    assert steep == pytest.approx(0.6 * WHOLE, abs=2)
    # A fifth of its rows is worth nine tenths; then it is the turn of the other one.
    plain, steep = shares_wanted(pressure(1.3), knobs)
    assert plain == pytest.approx(0.8 * WHOLE, abs=2)
    assert steep == pytest.approx(WHOLE // LOWERED, abs=2)
    assert shares_at(1.3, 1.0, knobs)[1] == pytest.approx(0.2 * WHOLE, abs=2)


def test_of_two_that_are_worth_the_same_the_dearer_one_is_left_out() -> None:
    assert shares_wanted(pressure(0.9001), [knob(0.2), knob(0.4)])[0] == WHOLE


def test_a_share_of_more_queries_is_left_out_later() -> None:
    many, one = shares_wanted(pressure(1.0), [knob(0.4, queries=3), knob(0.4)])
    assert many == WHOLE
    assert one < WHOLE


def test_a_graph_with_a_step_is_walked_to_the_foot_of_the_step_and_not_into_it() -> None:
    # To half of the rows nothing is lost, and then all at once.
    step = utility((0.499999, "0"), (0.5, "1"))
    knobs = [knob(0.4, step), knob(0.4)]
    assert shares_at(1.0, 1.0, knobs) == (WHOLE // 2, WHOLE)
    assert shares_at(1.1, 1.0, knobs) == (WHOLE // 2, 3 * WHOLE // 4)


def test_a_change_leaves_a_quarter_of_a_share_at_least() -> None:
    assert shares_wanted(pressure(50.0), [knob(40.0), knob(9.0)]) == (WHOLE // LOWERED, WHOLE // LOWERED)
    assert shares_at(50.0, 1.0, [knob(40.0), knob(9.0)]) == (LEAST, LEAST)


def test_a_share_whose_rows_need_next_to_nothing_is_left_as_it_is() -> None:
    assert shares_wanted(pressure(2.0), [knob(0.01)]) == (WHOLE,)


def test_what_is_promised_is_kept_whatever_the_load() -> None:
    assert shares_wanted(pressure(9.0), [knob(3.0, least=900_000)]) == (900_000,)
    low = knob(3.0, share=100_000, least=300_000)
    assert shares_wanted(pressure(9.0), [low]) == (300_000,)
    assert shares_wanted(pressure(0.8), [low]) == (300_000,)


def test_more_is_kept_again_where_there_is_room_and_windows_have_drained() -> None:
    low = knob(0.4, share=250_000)
    calm = pressure(0.3, behind=0.0)
    assert shares_wanted(calm, [low]) == (500_000,)
    assert shares_wanted(calm, [replace(low, drained=False)]) == (250_000,)
    assert shares_wanted(pressure(0.3, behind=EARLY * 2.0 + 0.01), [low]) == (250_000,)
    assert shares_wanted(pressure(0.71, behind=0.0), [low]) == (250_000,)


def test_what_gains_most_is_kept_again_first() -> None:
    knobs = [knob(0.4, share=500_000), knob(0.4, utility((0.5, "0.1")), share=500_000)]
    assert shares_wanted(pressure(0.6, behind=0.0), knobs) == (500_000, WHOLE)


@st.composite
def threshold_knobs(draw: st.DrawFn) -> ShareKnob:
    """A knob by values: of some bands of utility there are rows, of others none."""
    worths = np.zeros((2, BANDS + 2))
    bands = st.integers(0, BANDS) | st.just(BANDS + 1)
    for band, rows in draw(st.dictionaries(bands, st.integers(1, 50), max_size=6)).items():
        worths[:, band] = rows, rows * band / BANDS if band <= BANDS else 0
    values = ValuesSeen(ValueGraph("x", ((Decimal(0), Decimal(0)), (Decimal(1), Decimal(1)))), worths)
    threshold = draw(st.sampled_from([0, 10_000, 250_000, 333_333, 500_000, WHOLE]))
    return values.knob(threshold, draw(st.floats(0, 2)), draw(st.integers(1, 3)), draw(st.booleans()))


Knobs = st.lists(
    st.builds(
        ShareKnob,
        st.integers(LEAST, WHOLE),
        st.floats(0, 2),
        st.sampled_from([PLAIN, STEEP, utility((0.5, "0.1")), utility((0.3, "0"), (0.31, "1"))]),
        st.integers(1, 3),
        st.just(LEAST),
        st.booleans(),
    )
    | threshold_knobs(),
    max_size=4,
)


def sales(*worth: int, threshold: int = 0, cost: float = 0.5) -> ShareKnob:
    """Rows of utilities in hundredths, each with so many others that are worth as much."""
    worths = np.zeros((2, BANDS + 2))
    for band in worth:
        worths[:, band] += 1, band / BANDS
    graph = ValueGraph("x", ((Decimal(0), Decimal(0)), (Decimal(1), Decimal(1))))
    return ValuesSeen(graph, worths).knob(threshold, cost)


def test_rows_of_least_utility_go_before_a_share_of_rows_that_are_worth_the_same() -> None:
    # Of four rows two are worth a tenth together, and are half of the costs.
    sold, plain = sales(5, 5, 95, 95), knob(0.5)
    first, second = shares_wanted(pressure(1.0), [sold, plain])
    assert (first, sold.number(first), second) == (WHOLE // 2, 60_000, WHOLE)
    # Then the half that is left is worth more than what it costs of the other one.
    first, second = shares_wanted(pressure(1.3), [sold, plain])
    assert first == WHOLE // 2
    assert second < WHOLE


def test_what_is_worth_most_is_kept_whatever_the_load() -> None:
    worths = np.zeros((2, BANDS + 2))
    worths[:, 50] = 10, 5
    graph = ValueGraph("x", ((Decimal(0), Decimal("0.2")), (Decimal(9), Decimal("0.5"))))
    (share,) = shares_wanted(pressure(9.0), [ValuesSeen(graph, worths).knob(0, 8.0)])
    assert share == WHOLE


def test_a_threshold_goes_over_rows_that_are_all_alike_at_once() -> None:
    # Nine of ten rows are worth the same: a quarter of the rows cannot be kept.
    alike = sales(*[10] * 9, 90, cost=4.0)
    (share,) = shares_wanted(pressure(4.0), [alike])
    assert (share, alike.number(share)) == (WHOLE // 10, 110_000)
    back = sales(*[10] * 9, 90, threshold=110_000, cost=0.1)
    (share,) = shares_wanted(pressure(0.1, behind=0.0), [back])
    assert (share, back.number(share)) == (WHOLE, 0)


def test_of_rows_that_nobody_has_counted_no_threshold_changes() -> None:
    graph = ValueGraph("x", ((Decimal(0), Decimal(0)), (Decimal(1), Decimal(1))))
    unknown = ValuesSeen(graph, np.zeros((2, BANDS + 2))).knob(300_000, 3.0)
    for load in (pressure(9.0), pressure(0.1, behind=0.0)):
        (share,) = shares_wanted(load, [unknown])
        assert unknown.number(share) == 300_000


@examples(60, 400)
@given(Knobs, st.floats(0, 5), st.floats(0, 5))
def test_of_a_larger_load_no_more_is_kept(knobs: list[ShareKnob], one: float, other: float) -> None:
    low, high = sorted((one, other))
    smaller, larger = (shares_wanted(pressure(load), knobs) for load in (low, high))
    assert all(after <= before for before, after in zip(smaller, larger, strict=True))


def settled(knobs: list[ShareKnob], rest: float, behind: float, rows: float = 1.0) -> list[ShareKnob]:
    """The shares that changes come to, one after the other, where so many times the rows come."""
    for _ in range(20):
        scaled = [replace(one, cost=one.cost * rows) for one in knobs]
        needed = rest + sum(one.needs(one.share) for one in scaled)
        found = shares_wanted(pressure(needed, behind), scaled)
        knobs = [replace(one, share=share) for one, share in zip(knobs, found, strict=True)]
    return knobs


@examples(60, 400)
@given(Knobs, st.floats(0, 0.7), st.floats(0, 4))
def test_on_a_constant_load_shares_settle_whatever_the_noise(
    knobs: list[ShareKnob], rest: float, behind: float
) -> None:
    found = settled(knobs, rest, behind)
    needed = rest + sum(one.needs(one.share) for one in found)
    assert shares_wanted(pressure(needed, behind), found) == tuple(one.share for one in found)
    # The least load that there is may let shares be worth more. Then no other one changes them any more,
    # between the bands.
    found = settled(found, 0.96 * rest, behind, 0.96)
    needed = rest + sum(one.needs(one.share) for one in found)
    if 0.76 <= needed <= 0.84:
        for noise in (0.96, 1.0, 1.04):
            noisy = [replace(one, cost=one.cost * noise) for one in found]
            assert shares_wanted(pressure(needed * noise, behind), noisy) == tuple(one.share for one in found)


@examples(60, 400)
@given(Knobs, st.floats(0, 0.7))
def test_shares_come_to_those_that_a_load_allows_and_back_to_all(knobs: list[ShareKnob], rest: float) -> None:
    knobs = [replace(one, share=WHOLE, drained=True) for one in knobs]
    low = settled(knobs, rest, 5.0)
    needed = rest + sum(one.needs(one.share) for one in low)
    if rest + sum(one.needs(one.floor(1.0)) for one in low) <= HEADROOM:
        assert needed <= TOO_MUCH
    assert all(one.share == WHOLE for one in settled(low, 0.0, 0.0, rows=0.01))
