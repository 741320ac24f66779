"""How many different values so many rows have, as a sample shows it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.optimizer.cost.growth import ALL, ONE, codes_of, evenly_spread, growth_of, together


def test_different_values_grow_with_the_rows_and_a_constant_does_not() -> None:
    different, same = growth_of(np.arange(10_000)), growth_of(np.zeros(10_000, dtype=np.int64))
    for rows in (0.5, 1, 7, 4_000, 10_000, 1e6):
        assert different.at(rows) == pytest.approx(rows)
        assert same.at(rows) == min(1, rows)


def test_values_that_come_again_are_counted_as_in_the_sample_and_stop_beyond_it() -> None:
    codes = np.random.default_rng(1).integers(0, 100, 10_000)
    growth = growth_of(codes)
    # Cardenas: n rows hit 100 * (1 - 0.99 ** n) of a hundred values.
    for rows in (20, 50, 200, 700):
        assert growth.at(rows) == pytest.approx(100 * (1 - 0.99**rows), rel=0.1)
    assert growth.at(10_000) == growth.at(1e9) == 100


@pytest.mark.parametrize("rows", [300, 1_000, 3_000])
def test_the_number_of_values_is_that_of_as_many_rows_with_equally_frequent_ones(rows: int) -> None:
    codes = np.random.default_rng(2).integers(0, 300, 10_000)
    growth = evenly_spread(rows, len(np.unique(codes[:rows])))
    for more in (10, 100, 1_000, 4_000):
        assert growth.at(more) == pytest.approx(300 * (1 - (1 - 1 / 300) ** more), rel=0.15)


def test_one_value_stays_one_and_different_ones_stay_different() -> None:
    assert evenly_spread(1_000, 1).at(1e6) == 1
    assert evenly_spread(1_000, 1_000).at(2_000) == pytest.approx(2_000, rel=0.01)
    assert evenly_spread(1, 1).at(50) == 50


def test_a_share_of_new_values_goes_on_beyond_the_sample() -> None:
    # Every fourth row brings a new value; the others have one of ten.
    codes = np.where(np.arange(40_000) % 4 == 0, np.arange(40_000) + 10, np.arange(40_000) % 10)
    assert growth_of(codes).at(400_000) == pytest.approx(100_010, rel=0.05)


def test_codes_are_equal_where_all_columns_are_and_null_equals_null() -> None:
    columns = [pa.array(["a", "a", None, None, "a"]), pa.array([1, 2, None, None, 1])]
    codes = codes_of(columns, 5).tolist()
    assert [codes[0], codes[2]] == [codes[4], codes[3]]
    assert len(set(codes)) == 3
    assert codes_of([], 3).tolist() == [0, 0, 0]
    assert codes_of([pa.array([], pa.string())], 0).tolist() == []


def test_combinations_are_at_most_as_many_as_rows() -> None:
    ten = growth_of(np.arange(1_000) % 10)
    assert together([ten, ten]).at(1_000) == pytest.approx(100)
    assert together([ten, ALL]).at(500) == pytest.approx(500)
    assert together([]) == ONE
    assert growth_of(np.zeros(0, dtype=np.int64)) == ALL


def test_groups_have_as_many_values_as_their_rows() -> None:
    pairs = np.random.default_rng(1).integers(0, [100, 5], (10_000, 2))
    groups, first = growth_of(pairs[:, 0] * 5 + pairs[:, 1]), growth_of(pairs[:, 0])
    # All 500 groups have a hundred values in the first column, and each group is one of its own.
    assert first.among(groups).at(500) == pytest.approx(100)
    assert groups.among(groups).at(300) == pytest.approx(300)
    assert ONE.among(groups).at(300) == pytest.approx(1)
    # The keys of a third of them: more than a third of the hundred.
    assert 60 < first.among(groups).at(167) < 100
