"""The histograms of norms keep the bound of the paper, and sketches tell norms."""

from __future__ import annotations

import numpy as np
import pytest

from papers.norms import Sketches, bound, inputs, measure


@pytest.mark.parametrize("name", ["even", "Zipf", "in runs"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("k", [2, 8])
def test_no_answer_is_beyond_the_bound(name: str, p: float, k: int) -> None:
    values = inputs(500)[name]
    found = measure(Sketches.exact(p, int(values.max()) + 1), k, values, 150)
    # All but the oldest bucket: never too large.
    assert found.above <= 1e-9
    assert 0 < found.below <= bound(p, k)
    assert found.buckets < 150


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_a_sketch_tells_the_norm(p: float) -> None:
    sketches = Sketches.drawn(p, 50, 2000)
    counts = np.arange(50)
    exact = float((counts.astype(np.float64) ** p).sum())
    assert abs(sketches.power(counts @ sketches.numbers) / exact - 1) < 0.15
