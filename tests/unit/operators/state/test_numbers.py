"""Numbers of keys over batches, against a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.state import numbers as module
from headrace.operators.state.keys import hash_rows, normalise
from headrace.operators.state.numbers import Numbers
from headrace.schema import DOUBLE
from how_many import examples

KEYS = st.none() | st.text("abc", max_size=3)
BATCHES = st.lists(st.lists(KEYS, max_size=12), max_size=6)


@examples(17)
@given(st.sets(KEYS, max_size=5).map(list), BATCHES, st.sampled_from((2**62, 3, 1)))
def test_a_key_keeps_its_number(known: list[str | None], batches: list[list[str | None]], size: int) -> None:
    """Whatever keys share a hash, and if the numbers are made anew from the keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "hash_rows", lambda columns, count: hash_rows(columns, count) % size)
        numbers, seen = Numbers(pa.array(known, pa.string())), known
        for batch in batches:
            column = pa.array(batch, pa.string())
            found = numbers.of(column)
            assert numbers.keys.take(pa.array(found)).to_pylist() == batch
            assert numbers.keys.to_pylist()[: len(seen)] == seen
            seen = numbers.keys.to_pylist()
            assert Numbers(numbers.keys).of(column).tolist() == found.tolist()
        assert len(numbers) == len(set(seen)) == len(set(known).union(*batches))


def test_many_keys() -> None:
    numbers = Numbers(pa.array([7, None]))
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000)
    for batch in (values[:10], values[:3_000], values):
        assert numbers.of(pa.array(batch)).tolist() == [2 + place for place in range(len(batch))]
    assert numbers.of(pa.array([None, 7, values[-1]])).tolist() == [1, 0, 5_001]


@pytest.mark.parametrize("known", [[], [-0.0, float("nan")]])
def test_keys_are_equal_as_in_grouping(known: list[float]) -> None:
    numbers = Numbers(normalise(pa.array(known, DOUBLE)))
    found = numbers.of(pa.array([0.0, float("nan"), -0.0, -float("nan"), 1.0], DOUBLE))
    assert found.tolist() == [0, 1, 0, 1, 2]
