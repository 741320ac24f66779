"""Memory is spread so that most pairs are found: beside a search through all shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.driver.facts.remembered import KeptSide, part_found
from headrace.runtime.driver.remembering.allocation import FLOOR, allocated, size_at
from how_many import examples

GRID = (FLOOR, *(part / 20 for part in range(1, 21)))
SPANS = st.floats(1, 1000)
SIZES = st.floats(1, 1000)


def best_of_grid(kept: Sequence[KeptSide], spans: Sequence[float], room: float) -> float:
    now = (1.0,) * len(spans)
    tried = (shares for shares in product(GRID, repeat=len(spans)) if size_at(shares, kept, now) <= room)
    return max((part_found(shares, spans) for shares in tried), default=0.0)


@examples(60, 600)
@given(st.lists(st.tuples(SPANS, SIZES), min_size=2, max_size=2), st.floats(0.05, 1.2))
def test_of_two_streams_no_other_shares_find_more(sides: list[tuple[float, float]], part: float) -> None:
    kept = [KeptSide((number,), size) for number, (_, size) in enumerate(sides)]
    spans, room = [span for span, _ in sides], part * sum(size for _, size in sides)
    found = allocated(kept, spans, (1.0, 1.0), (1.0, 1.0), room)
    assert size_at(found, kept, (1.0, 1.0)) <= room * (1 + 1e-6)
    assert part_found(found, spans) >= best_of_grid(kept, spans, room) - 1e-6


@examples(12, 120)
@given(st.lists(st.tuples(SPANS, SIZES), min_size=3, max_size=3), SIZES, st.floats(0.05, 1.2))
def test_of_three_streams_hardly_any_find_more(
    sides: list[tuple[float, float]], inner: float, part: float
) -> None:
    kept = [KeptSide((number,), size) for number, (_, size) in enumerate(sides)]
    kept.append(KeptSide((0, 1), inner))
    spans, room = [span for span, _ in sides], part * sum(side.size for side in kept)
    found = allocated(kept, spans, (1.0,) * 3, (1.0,) * 3, room)
    assert size_at(found, kept, (1.0,) * 3) <= room * (1 + 1e-6)
    assert part_found(found, spans) >= best_of_grid(kept, spans, room) - 0.02


def test_the_rarer_rows_are_remembered_first() -> None:
    kept = [KeptSide((0,), 1000.0), KeptSide((1,), 100.0)]
    first, second = allocated(kept, [10.0, 10.0], (1.0, 1.0), (1.0, 1.0), 550.0)
    assert (first, second) == pytest.approx((0.45, 1.0))
    # Rows of which half are remembered already are as many as if none had been forgotten.
    kept = [KeptSide((0,), 500.0), KeptSide((1,), 100.0)]
    assert allocated(kept, [10.0, 10.0], (0.5, 1.0), (1.0, 1.0), 550.0) == pytest.approx((0.45, 1.0))


def test_what_does_not_fit_at_all_is_made_to_fit() -> None:
    kept = [KeptSide((0,), 1000.0), KeptSide((1,), 1000.0)]
    found = allocated(kept, [10.0, 10.0], (1.0, 1.0), (1.0, 1.0), 2.0)
    assert 0 < sum(found) <= 0.0021


def test_a_join_finds_what_its_older_rows_let_it_find() -> None:
    # A row of the first stream waits for 30 instants for one of the second, and is so often the older one.
    assert part_found((0.5, 1.0), (30.0, 10.0)) == pytest.approx((30 * 0.5 + 10 * 1.0) / 40)
    assert part_found((0.5, 0.4, 1.0), (5.0, 5.0, 5.0)) == pytest.approx((0.5 * 0.4 + 0.5 + 0.4) / 3)
