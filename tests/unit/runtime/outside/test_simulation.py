"""Lives of a store on a disk that fails or dies come to the answers that nothing disturbed; by seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from how_many import how_many
from simulation import broken_by


@pytest.mark.slow("each seed is five processes")
def test_lives_of_a_store() -> None:
    ends = Counter[str]()
    for seed in range(how_many(6, 18)):
        wrong = broken_by(seed, ends)
        assert not wrong, f"seed {seed}: {wrong}"
    assert min(ends["killed"], ends["a call failed"], ends["done"]) > 1, ends
