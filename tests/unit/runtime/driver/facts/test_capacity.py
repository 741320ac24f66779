"""Aurora's static analysis: rates, costs and selectivities of boxes, and the capacity that they need."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.runtime.driver.facts.capacity import Box, Headroom, above, needs, rates_in, room

CHAIN = (Box((), 0.0, 1.0), Box((0,), 0.005, 0.5), Box((1,), 0.004, 1.0))
"""A source, a box that takes 5 ms for a row and lets half of them pass, and one that takes 4 ms."""


def at(rate: float, boxes: tuple[Box, ...] = CHAIN) -> np.ndarray:
    return np.array([rate, *([0.0] * (len(boxes) - 1))])


def test_the_rates_of_a_chain_of_boxes() -> None:
    assert rates_in(CHAIN, at(100)).tolist() == [100, 100, 50]


def test_the_capacity_that_a_chain_of_boxes_needs() -> None:
    found = needs(CHAIN, at(100))
    assert found.tolist() == pytest.approx([0, 0.5, 0.2])
    assert found.sum() == pytest.approx(0.7)


def test_a_capacity_does_and_leaves_little_room() -> None:
    needed = float(needs(CHAIN, at(100)).sum())
    assert room(needed, 1.0, 0.6) is Headroom.LITTLE
    assert room(needed, 1.0, 0.8) is Headroom.ENOUGH
    assert room(needed, 0.69) is Headroom.NONE
    assert room(float(needs(CHAIN, at(150)).sum()), 1.0) is Headroom.NONE


def test_boxes_with_several_inputs_and_readers_are_counted_once() -> None:
    boxes = (
        Box((), 0.0, 1.0),
        Box((), 0.0, 1.0),
        Box((0,), 0.001, 0.1),
        Box((1, 2), 0.01, 1.0),
        Box((0,), 0.002, 1.0),
    )
    rates = np.array([100.0, 20.0, 0.0, 0.0, 0.0])
    assert rates_in(boxes, rates).tolist() == [100, 20, 100, 30, 100]
    assert needs(boxes, rates).sum() == pytest.approx(0.1 + 0.3 + 0.2)
    assert list(above(boxes, [2])) == [3]
    assert list(above(boxes, [0])) == [2, 3, 4]


def test_needs_grow_in_proportion_to_the_rates() -> None:
    assert needs(CHAIN, at(300)).tolist() == pytest.approx((3 * needs(CHAIN, at(100))).tolist())
