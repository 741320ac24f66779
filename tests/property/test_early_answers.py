"""Operators that speak up to a horizon: after every epoch they have said what follows from what came so far.

Their answer is that of the definition over the rows that have arrived, at every instant below the horizon; so
it is the final answer below the heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driving import Arriving, drive, standing_for, steps
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import Distinct, Plan, SetOperation, inputs_of
from headrace.algebra.properties import output_heartbeat, sources_of
from headrace.elements import concat, from_rows
from headrace.history import equivalent
from headrace.lowering.early import early
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING, INFINITY
from how_many import examples
from property.plan_strategies import ROOTS, cases
from property.strategies import BUCKETS
from property.test_operators import (
    BY_INSTANT,
    EPOCHS,
    LEFT,
    RIGHT,
    UNARY,
    WINDOWS,
    Arrival,
    assert_equal,
    chronon_histories,
    heartbeats,
    histories,
    window_histories,
)
from support import run_plans

MAXIMAL = -INFINITY
"""The block of a query that says all that it knows: its horizon is at the end of time."""

OF_ENDS = (
    *("grouped ends", "scalar ends", "scalar ends of one order", "scalar extremes of one value"),
    *("grouped extremes", "grouped by a float"),
)
"""Aggregates that are values of the smallest or the largest row."""

blocks = st.sampled_from([MAXIMAL, -3, 0, 1, 2, 5])


def in_order(arrivals: list[Arrival]) -> list[Arrival]:
    """The same, where nothing is taken back before it came."""
    found: list[Arrival] = []
    for arrival in arrivals:
        came = found[-1].epoch if found and arrival.element[3] < 0 else 0
        found.append(Arrival(arrival.element, max(arrival.epoch, came)))
    return found


def check_early(
    plan: Plan,
    inputs: list[list[Arrival]],
    slack: int,
    block: int,
    *,
    chronons: bool = False,
    insert_only: bool = False,
) -> None:
    """The law for an operator that speaks up to a horizon.

    Args:
        plan: an operator over sources.
        inputs: what arrives, by port.
        slack: how far the heartbeats stay behind what they could be.
        block: so far behind the newest row it speaks (instants).
        chronons: whether the operator knows that its input holds for one instant.
        insert_only: whether it knows that nothing is retracted.
    """
    sources = dict(zip((LEFT, RIGHT), map(in_order, inputs), strict=False))
    known = {
        source.name: standing_for(source, chronons=chronons, insert_only=insert_only) for source in sources
    }
    arriving = {source.name: arrivals for source, arrivals in sources.items()}
    check_plan(plan, known, arriving, slack, block)


def check_plan(
    plan: Plan, known: Mapping[str, Plan], arriving: Mapping[str, list[Arrival]], slack: int, block: int
) -> None:
    """The law for a plan that speaks up to a horizon.

    Args:
        plan: any plan over sources.
        known: by source name, what stands for the source.
        arriving: by source name, what arrives.
        slack: how far the heartbeats stay behind what they could be.
        block: so far behind the newest row it speaks (instants).
    """
    hearts = {name: heartbeats(arrivals, EPOCHS, slack) for name, arrivals in arriving.items()}
    epochs = [
        Arriving(
            {
                name: [one.element for one in arrivals if one.epoch == epoch]
                for name, arrivals in arriving.items()
            },
            {name: heart[epoch] for name, heart in hearts.items()},
        )
        for epoch in range(EPOCHS)
    ]
    found, newest = [], BEGINNING
    read = {source.name for source in sources_of(plan)}
    horizon = Horizon(tuple(read), block)
    for epoch, (emitted, heartbeat) in enumerate(drive(early(plan, horizon), known, epochs)):
        found.append(emitted)
        streams = {
            name: Stream(known[name].schema.names, [one.element for one in arrivals if one.epoch <= epoch])
            for name, arrivals in arriving.items()
        }
        newest = max([newest, *(ts for name in read for _, ts, _, _ in epochs[epoch].elements[name])])
        reached = BEGINNING if newest == BEGINNING else min(newest - block + 1, INFINITY)
        reached = max(heartbeat, output_heartbeat_of(plan, reached))
        expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)])
        assert_equal(concat(plan.schema, found), expected, reached, f"after {epoch + 1} epochs")


def output_heartbeat_of(plan: Plan, reached: int) -> int:
    """Up to where a plan speaks if all its streams are spoken about so far."""
    below = [output_heartbeat_of(part, reached) for part in inputs_of(plan)]
    return output_heartbeat(plan, tuple(below)) if below else reached


@pytest.mark.parametrize("name", UNARY)
@examples(2, 8)
@given(arrivals=histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_unary_operators(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    check_early(UNARY[name], [arrivals], slack, block)


@pytest.mark.parametrize("name", BY_INSTANT)
@examples(5, 20)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_what_depends_on_the_instant(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    check_early(BY_INSTANT[name], [arrivals], slack, block, chronons=True)


@pytest.mark.parametrize("name", OF_ENDS)
@examples(3, 12)
@given(
    arrivals=histories(EPOCHS, retractions=False, most=16) | window_histories(EPOCHS),
    slack=st.integers(0, 3),
    block=blocks,
)
def test_values_that_are_never_retracted(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    """Of which only those are kept that can still be the smallest or the largest."""
    check_early(UNARY[name], [arrivals], slack, block, insert_only=True)


@pytest.mark.parametrize("name", WINDOWS)
@examples(2, 8)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_windows(name: str, arrivals: list[Arrival], slack: int, block: int) -> None:
    check_early(WINDOWS[name], [arrivals], slack, block, chronons=True)


@pytest.mark.parametrize("kind", SetKind, ids=lambda kind: kind.value)
@examples(3, 8)
@given(left=histories(EPOCHS), right=histories(EPOCHS), slack=st.integers(0, 3), block=blocks)
def test_set_operations(
    kind: SetKind, left: list[Arrival], right: list[Arrival], slack: int, block: int
) -> None:
    check_early(SetOperation(LEFT, RIGHT, kind), [left, right], slack, block)


def test_what_was_said_below_the_heartbeat_goes_beyond_the_horizon() -> None:
    arriving = [[("a", 0, 100)], [("a", 70, 90)], [("b", 85, 86)], [("a", 71, 72)]]
    heartbeats = [1, 50, 50, 60]

    def row(name: str) -> tuple[object, ...]:
        return name, 0, 0.0

    epochs = [
        Arriving({LEFT.name: [(row(x), ts, te, 1) for x, ts, te in rows]}, {LEFT.name: heartbeat})
        for rows, heartbeat in zip(arriving, heartbeats, strict=True)
    ]
    known = {LEFT.name: standing_for(LEFT, chronons=False, insert_only=False)}
    found = [batch for batch, _ in drive(early(Distinct(LEFT), Horizon((LEFT.name,), 10)), known, epochs)]
    assert steps(concat(LEFT.schema, found)) == {
        ("'a'", "0", "0.0", 0): 1,
        ("'a'", "0", "0.0", 90): -1,
    }


@pytest.mark.parametrize("root", ROOTS)
@examples(4, 10)
@given(st.data(), st.integers(0, 3), blocks)
def test_whole_plans(root: str, data: st.DataObject, slack: int, block: int) -> None:
    case = data.draw(cases(root=root))
    arriving = {}
    for stream in case.streams:
        read = [stream.schema.names.index(name) for name in stream.source.schema.names]
        arriving[stream.name] = [
            Arrival((tuple(row[place] for place in read), ts, te, w), data.draw(st.integers(0, EPOCHS - 1)))
            for row, ts, te, w in stream.elements
        ]
    check_plan(case.plan, {stream.name: stream.source for stream in case.streams}, arriving, slack, block)


@examples(17)
@given(st.data(), BUCKETS, st.sampled_from((1, 2, 3, 1000)), blocks)
def test_whole_runs(data: st.DataObject, buckets: int, epoch_rows: int, block: int) -> None:
    case = data.draw(cases(max_relations=2))
    names = tuple(source.name for source in sources_of(case.plan))
    queries = {"strong": case.plan, "early": early(case.plan, Horizon(names, block))}
    readers = run_plans(queries, case.inputs(), buckets=buckets, epoch_rows=epoch_rows)
    assert equivalent(readers["early"].elements(), readers["strong"].elements())
    # By their texts, since NaN is not equal to itself there.
    histories = [str(readers[name].history().to_pylist()) for name in queries]
    assert histories[0] == histories[1]
