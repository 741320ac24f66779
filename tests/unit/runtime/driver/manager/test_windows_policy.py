"""The policy that keeps state within a limit, as a function of values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import Int64Array
from headrace.runtime.driver.manager.load import Load
from headrace.runtime.driver.manager.policy import PARTS, TOO_MUCH, USED, Knobs, decided


def bytes_by_hand(load: Load, sizes: list[int]) -> float:
    """The definition, operator by operator."""
    found = load.fixed
    for number, per_row in enumerate(load.per_row.tolist()):
        rows = 0.0
        for owner, rate, lag, knob, length in zip(
            load.owners, load.rates, load.lags, load.knobs, load.lengths, strict=True
        ):
            if owner == number:
                rows += rate * ((sizes[knob] if knob >= 0 else length) + lag)
        found += per_row * rows * (rows / load.rows[number]) ** (load.degrees[number] - 1)
    return float(found)


@st.composite
def loads(draw: st.DrawFn, knobs: int) -> Load:
    """Some operators, each with a window below it at least."""
    operators = draw(st.integers(1, 4))
    owners = sorted([*range(operators), *draw(st.lists(st.integers(0, operators - 1), max_size=3))])

    def numbers(low: float, high: float, count: int) -> np.ndarray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)))

    which = draw(st.lists(st.integers(-1, knobs - 1), min_size=len(owners), max_size=len(owners)))
    return Load(
        draw(st.floats(0, 1000)),
        numbers(0, 100, operators),
        numbers(1, 50, operators),
        np.array(draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=operators, max_size=operators))),
        np.array(owners),
        numbers(0, 3, len(owners)),
        numbers(0, 3, len(owners)),
        np.array(which),
        numbers(1, 40, len(owners)),
    )


@st.composite
def knob_sets(draw: st.DrawFn) -> Knobs:
    """Sizes within bounds, settled or not."""
    found, settled = [], []
    for _ in range(draw(st.integers(1, 4))):
        low, more = draw(st.integers(1, 1000)), draw(st.integers(0, 5000))
        found.append((low, low + more, low + draw(st.integers(0, more))))
        settled.append(draw(st.booleans()))
    smallest, largest, sizes = np.array(found, dtype=np.int64).T
    return Knobs(smallest, largest, sizes, np.array(settled))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Load, Knobs, int]:
    knobs = draw(knob_sets())
    return draw(loads(len(knobs.sizes))), knobs, draw(st.integers(1, 2_000_000))


def after(knobs: Knobs, sizes: Int64Array) -> Knobs:
    return replace(knobs, sizes=sizes)


@given(cases())
def test_the_bytes_are_those_of_the_definition(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, _ = case
    assert load.bytes_at(knobs.sizes) == pytest.approx(bytes_by_hand(load, knobs.sizes.tolist()))


@given(cases())
def test_no_more_is_expected_than_the_limit_allows_unless_the_smallest_sizes_need_more(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = decided(load, knobs, limit)
    assert ((knobs.smallest <= found.sizes) & (found.sizes <= knobs.largest)).all()
    assert found.expected == pytest.approx(load.bytes_at(found.sizes))
    if found.missing:
        assert found.least > USED * limit
        assert found.missing == pytest.approx(found.least - USED * limit)
        return
    changes = (found.sizes != knobs.sizes).any()
    assert found.expected <= (USED if changes else TOO_MUCH) * limit * (1 + 1e-9)


@given(cases())
def test_where_the_smallest_sizes_need_more_than_there_is_windows_have_these(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = decided(load, knobs, limit)
    if load.bytes_at(knobs.smallest) > TOO_MUCH * limit:
        assert (found.sizes == knobs.smallest).all()
        assert found.part == 0


@given(cases(), st.integers(1, 2_000_000))
def test_a_smaller_limit_never_gives_larger_windows(case: tuple[Load, Knobs, int], other: int) -> None:
    load, knobs, limit = case
    low, high = sorted((limit, other))
    assert decided(load, knobs, low).part <= decided(load, knobs, high).part
    # Their sizes too, where all of them begin with the largest ones.
    first = replace(after(knobs, knobs.largest), settled=np.ones(len(knobs.sizes), dtype=np.bool_))
    assert (decided(load, first, low).sizes <= decided(load, first, high).sizes).all()


@given(cases())
def test_all_windows_have_their_largest_sizes_where_these_fit(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, limit = case
    settled = replace(knobs, settled=np.ones(len(knobs.sizes), dtype=np.bool_))
    roomy = int(load.bytes_at(knobs.largest) / 0.7) + limit + 1
    found = decided(load, settled, roomy)
    assert found.part == PARTS
    assert (found.sizes == knobs.largest).all()


@given(cases())
def test_what_was_decided_is_decided_again(case: tuple[Load, Knobs, int]) -> None:
    load, knobs, limit = case
    once = decided(load, knobs, limit).sizes
    assert (decided(load, after(knobs, once), limit).sizes == once).all()


@given(cases(), st.lists(st.floats(0.96, 1.04), min_size=1, max_size=8))
def test_sizes_do_not_go_to_and_fro_while_rows_come_about_as_they_do(
    case: tuple[Load, Knobs, int], noise: list[float]
) -> None:
    load, knobs, limit = case
    knobs = replace(knobs, settled=np.ones(len(knobs.sizes), dtype=np.bool_))
    first = decided(load, knobs, limit)
    if not (first.sizes != knobs.sizes).any() or first.missing:
        return
    for factor in noise:
        # The same rows, each a little longer or shorter.
        drifted = replace(load, fixed=load.fixed * factor, per_row=load.per_row * factor)
        assert (decided(drifted, after(knobs, first.sizes), limit).sizes == first.sizes).all()


@given(cases())
def test_only_windows_whose_last_change_has_taken_effect_become_longer(
    case: tuple[Load, Knobs, int],
) -> None:
    load, knobs, limit = case
    found = decided(load, knobs, limit)
    assert (found.sizes <= knobs.sizes)[~knobs.settled].all()


def test_without_a_limit_nothing_changes() -> None:
    none, nobody = np.zeros(0), np.zeros(0, dtype=np.int64)
    empty = Load(5.0, none, none, none, nobody, none, none, nobody, none)
    knobs = Knobs(np.array([1]), np.array([9]), np.array([4]), np.array([True]))
    assert decided(empty, knobs, None).sizes.tolist() == [4]
    assert decided(empty, knobs, 100).sizes.tolist() == [9]


def test_the_way_is_cut_into_hundredths_without_overflow() -> None:
    far = 2**61
    knobs = Knobs(np.array([0]), np.array([far]), np.array([0]), np.array([True]))
    assert [int(knobs.at(part)[0]) for part in (0, 50, 99, 100)] == [0, far // 2, far * 99 // 100, far]
