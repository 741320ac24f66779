"""The histograms for correlated aggregates: the examples of the notes, and what the paper finds, small."""

from __future__ import annotations

import pytest

from papers.correlated import EPSILON, of_average, of_minimum, ours, streams
from papers.focused_histograms import (
    POLICIES,
    Histogram,
    average,
    balanced,
    landmark_minimum,
    memoryless,
    piecemeal,
    quantiles,
    reallocated,
    rival,
    rmse,
    sliding_minimum,
)

OLD = Histogram((10, 30, 50, 70, 90), (8, 4, 2, 6))


def test_the_wholesale_policy_shares_frequencies_by_width() -> None:
    # Worked by hand: epsilon is 8, and the minimum becomes 8.
    assert OLD.over((8, 24, 40, 56, 72)).counts == pytest.approx((5.6, 4.4, 2.6, 2.0))


def test_the_piecemeal_policy_keeps_buckets_and_splits_the_widest() -> None:
    found = piecemeal(Histogram((8, 30, 50, 70, 90), (8, 4, 2, 6)), 8, 60, 4)
    assert found == Histogram((8, 19, 30, 50, 60), (4.0, 4.0, 4, 1.0))


def test_quantiles_have_equally_many_and_balancing_brings_them_nearer() -> None:
    assert quantiles(OLD, 10, 90, 2) == [10, 40, 90]
    uneven = Histogram((0, 10, 20, 30, 40), (1, 1, 1, 9))
    assert balanced(uneven) == Histogram((0, 20, 30, 35, 40), (2, 1, 4.5, 4.5))
    assert balanced(OLD) == Histogram((10, 20, 30, 70, 90), (4, 4, 6, 6))
    even = Histogram((0, 10, 20, 30), (2, 2, 3))
    assert balanced(even) == even


@pytest.mark.parametrize("policy", POLICIES)
def test_of_fewer_values_than_buckets_all_is_exact(policy: str) -> None:
    values = [5.0, 3.0, 9.0, 3.0]
    (kind,) = (one for one in POLICIES if one == policy)
    assert average(values, 5, kind) == [0, 1, 1, 1]
    assert landmark_minimum(values, 1, 5, kind) == sliding_minimum(values, 1, 5, kind, 9) == [1, 2, 2, 3]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_minimum_far_below_begins_anew_without_an_error(policy: str) -> None:
    values = [float(value) for value in [*range(1000, 1100), *([3, 4, 5] * 20)]]
    (kind,) = (one for one in POLICIES if one == policy)
    exact = [sum(one <= 2 * min(values[:end]) for one in values[:end]) for end in range(1, len(values) + 1)]
    assert landmark_minimum(values, 1, 4, kind) == pytest.approx(exact)


def test_rivals_know_all_values_and_heuristics_enclose_the_answer() -> None:
    values = [4.0, 2.0, 8.0, 6.0, 1.0, 7.0]
    answers, exact = rival(values, lambda _, mean: mean, True, 6, deep=True)
    assert exact == [0, 1, 1, 2, 2, 3]
    assert rmse(answers, exact)[-1] < 1
    assert memoryless([4.0, 2.0, 3.0], 1, resets=True) == [1, 1, 2]
    assert memoryless([4.0, 2.0, 3.0], 1, resets=False) == [1, 2, 3]
    assert rmse([1, 3], [1, 1]) == pytest.approx([0, 2**0.5])
    assert rmse([1, 3, 1], [1, 1, 1], 1) == [0, 2, 0]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_reallocation_loses_values_of_what_it_covers(policy: str) -> None:
    (kind,) = (one for one in POLICIES if one == policy)
    assert sum(reallocated(OLD, 10, 90, 4, kind).counts) == pytest.approx(20)


def test_the_papers_histograms_stay_near_where_equidepth_grows() -> None:
    values = streams(6_000)
    found = of_average(values["MULTIFRAC"], None).errors
    assert found["piecemeal-uniform"][-1] < 30 < found["equidepth"][-1]
    assert found["equidepth"][-1] > 1.5 * found["equidepth"][1500]
    small = of_minimum(values["USAGE"], EPSILON["USAGE"], None).errors
    assert max(small[policy][-1] for policy in POLICIES) < 5 < small["equidepth"][-1]
    # Where the mean does not converge, true equidepth histograms are better (3.2.5).
    turned = of_average(values["reverse"], None).errors
    assert turned["equidepth"][-1] < turned["piecemeal-uniform"][-1]


@pytest.mark.parametrize("window", [None, 50])
def test_ours_is_exact(window: int | None) -> None:
    values = streams(300)["MULTIFRAC"]
    _, exact = rival(values, lambda _, mean: mean, True, 10, deep=True, window=window)
    assert ours(values, "x > AVG(x)", window)[0] == exact[:-1]
