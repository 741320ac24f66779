"""Operators that speak up to a horizon: after every epoch they have said what follows from what came so far.

Their answer is that of the definition over the rows that have arrived, at every instant below the horizon; so
it is the final answer below the heartbeat.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import Arriving, drive, standing_for
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import Plan, SetOperation
from headrace.elements import concat, from_rows
from headrace.lowering.early import early
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING, INFINITY
from property.test_operators import (
    EPOCHS,
    LEFT,
    RIGHT,
    SCHEMA,
    UNARY,
    WINDOWS,
    Arrival,
    assert_equal,
    chronon_histories,
    heartbeats,
    histories,
)

MAXIMAL = -INFINITY
"""The block of a query that says all that it knows: its horizon is at the end of time."""

blocks = st.sampled_from([MAXIMAL, -3, 0, 1, 2, 5])


def in_order(arrivals: list[Arrival]) -> list[Arrival]:
    """The same, where nothing is taken back before it came."""
    found: list[Arrival] = []
    for arrival in arrivals:
        came = found[-1].epoch if found and arrival.element[3] < 0 else 0
        found.append(Arrival(arrival.element, max(arrival.epoch, came)))
    return found


def check_early(
    plan: Plan, inputs: list[list[Arrival]], slack: int, block: int, *, chronons: bool = False
) -> None:
    """The law for an operator that speaks up to a horizon.

    Args:
        plan: an operator over sources.
        inputs: what arrives, by port.
        slack: how far the heartbeats stay behind what they could be.
        block: so far behind the newest row it speaks (instants).
        chronons: whether the operator knows that its input holds for one instant.
    """
    arriving = dict(zip((LEFT, RIGHT), map(in_order, inputs), strict=False))
    hearts = {source.name: heartbeats(arrivals, EPOCHS, slack) for source, arrivals in arriving.items()}
    known = {source.name: standing_for(source, chronons=chronons, insert_only=False) for source in arriving}
    horizon = Horizon(tuple(known), block)
    epochs = [
        Arriving(
            {
                source.name: [one.element for one in arrivals if one.epoch == epoch]
                for source, arrivals in arriving.items()
            },
            {name: heart[epoch] for name, heart in hearts.items()},
        )
        for epoch in range(EPOCHS)
    ]
    found, newest = [], BEGINNING
    for epoch, (emitted, heartbeat) in enumerate(drive(early(plan, horizon), known, epochs)):
        found.append(emitted)
        streams = {
            source.name: Stream(SCHEMA.names, [one.element for one in arrivals if one.epoch <= epoch])
            for source, arrivals in arriving.items()
        }
        newest = max([newest, *(row[1] for rows in epochs[epoch].elements.values() for row in rows)])
        reached = heartbeat if newest == BEGINNING else max(heartbeat, min(newest - block + 1, INFINITY))
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)])
        assert_equal(concat(plan.schema, found), expected, reached, f"after {epoch + 1} epochs")


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=15)
@given(arrivals=histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_unary_operators(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    check_early(UNARY[name], [arrivals], slack, block)


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=15)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_windows(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    check_early(WINDOWS[name], [arrivals], slack, block, chronons=True)


@pytest.mark.parametrize("kind", SetKind, ids=lambda kind: kind.value)
@settings(max_examples=15)
@given(left=histories(EPOCHS), right=histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_set_operations(
    kind: SetKind, left: list[Arrival], right: list[Arrival], slack: int, block: int
) -> None:
    check_early(SetOperation(LEFT, RIGHT, kind), [left, right], slack, block)
