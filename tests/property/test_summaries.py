"""Approximate aggregates: the operator is its definition, and the definition keeps its bound."""

from __future__ import annotations

from decimal import Decimal
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driving import Arriving, check_chronons, drive
from headrace.algebra.nodes import ApproximateAggregate, Plan, Source, TimeWindow
from headrace.elements import concat, to_rows
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.aggregates.within import blocks_of
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import AggregateCall, Column, Expression, Side, Within
from headrace.history import canonical, clip
from headrace.operators.create import create_operator
from headrace.operators.early import unreported
from headrace.operators.state.runs import SortedRun
from headrace.reference.contents import Element, Payload
from headrace.reference.summaries import approximate, bounds
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import Duration, TimeDomain
from how_many import examples

SCHEMA = Schema((Field("k", STRING), Field("v", BIGINT)))
LEFT = Source("left", SCHEMA, "t", TimeDomain.INTEGER)
K, V = (Column(place, field.name, field.type) for place, field in enumerate(SCHEMA))


def within(
    name: str,
    argument: Expression | None,
    percent: str,
    side: Side = Side.ESTIMATE,
    condition: Expression | None = None,
) -> AggregateCall:
    """An approximate aggregate."""
    modifiers = Modifiers(condition=condition, bound=Within(Decimal(percent), side))
    return resolve_aggregate(name, argument, modifiers=modifiers)


def counted(percent: str, *, also: bool = False) -> tuple[tuple[str, AggregateCall], ...]:
    """Counts, sums and means with all their bounds, and those of a part of the rows."""
    calls = [
        within(name, argument, percent, side)
        for name, argument in (("COUNT", None), ("SUM", V), ("AVG", V))
        for side in Side
    ]
    if also:
        positive = resolve(">", (V, literal(0)))
        calls += [within("COUNT", V, "7"), within("SUM", V, "50", Side.ESTIMATE, positive)]
    return tuple((f"a{place}", call) for place, call in enumerate(calls))


def approximately(rows: Plan, size: int, percent: str, *, keyed: bool = True) -> ApproximateAggregate:
    """Approximate aggregates of windows of some rows."""
    keys = (("k", K),) if keyed else ()
    return ApproximateAggregate(rows, Duration(size), keys, counted(percent, also=keyed))


PLANS: dict[str, Plan] = {
    "by key": approximately(TimeWindow(LEFT, Duration(7)), 7, "50"),
    "of all": approximately(TimeWindow(LEFT, Duration(9)), 9, "50", keyed=False),
    "within a third": approximately(TimeWindow(LEFT, Duration(12)), 12, "33.4"),
    "that slide": approximately(TimeWindow(LEFT, Duration(8), Duration(2), Duration(1)), 8, "50"),
    "of an instant": approximately(LEFT, 1, "50"),
    "of two instants": approximately(TimeWindow(LEFT, Duration(2)), 2, "50"),
    "longer than all": approximately(TimeWindow(LEFT, Duration(60)), 60, "50", keyed=False),
}


EPOCHS = 4


@st.composite
def epochs_of_rows(draw: st.DrawFn, most: int = 40) -> list[list[Element]]:
    """Chronons by epoch, many of them of one instant; some are taken back before a heartbeat passes them."""
    epochs: list[list[Element]] = [[] for _ in range(EPOCHS)]
    for _ in range(draw(st.integers(0, most))):
        payload = draw(st.sampled_from("ab")), draw(st.sampled_from([None, 0, 1, 7, 20]))
        ts, w = draw(st.integers(-9, 30)), draw(st.sampled_from([1, 1, 2, 5]))
        at = draw(st.integers(0, EPOCHS - 1))
        epochs[at].append((payload, ts, ts + 1, w))
        if draw(st.integers(0, 5)) == 0:
            epochs[draw(st.integers(at, EPOCHS - 1))].append((payload, ts, ts + 1, -1))
    return epochs


@pytest.mark.parametrize("name", PLANS)
@examples(25, 100)
@given(epochs=epochs_of_rows(), slack=st.integers(0, 3))
def test_the_operator_is_the_definition(name: str, epochs: list[list[Element]], slack: int) -> None:
    check_chronons(LEFT, PLANS[name], epochs, slack)


@pytest.mark.parametrize("percent", ["50", "20", "12.5"])
@examples(30, 200)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([1, 1, 1, 2, 3, 9])), min_size=60, max_size=120
    ),
    size=st.integers(20, 70),
    every=st.integers(1, 40),
)
def test_counts_of_many_epochs_are_those_of_the_definition(
    percent: str, rows: list[tuple[int, int]], size: int, every: int
) -> None:
    instants = list(accumulate(gap for gap, _ in rows))
    amounts = dict(zip(instants, (weight for _, weight in rows), strict=True))
    calls = (("n", within("COUNT", None, percent)), ("low", within("COUNT", None, percent, Side.LOWER)))
    plan = ApproximateAggregate(TimeWindow(LEFT, Duration(size)), Duration(size), (), calls)
    parts = [instants[at : at + every] for at in range(0, len(instants), every)]
    epochs = [
        Arriving({"left": [(("a", 1), at, at + 1, amounts[at]) for at in part]}, {"left": part[-1] + 1})
        for part in parts
    ]
    found = [batch for batch, _ in drive(plan, {"left": LEFT}, epochs)]
    said = canonical(clip(concat(plan.schema, found), instants[-1] + 1))
    for row, ts, te, _ in to_rows(said):
        for instant in range(ts, te):
            least, most = bounds(amounts, size, instant, blocks_of(calls[0][1]))
            assert row == ((least + most) // 2, least), instant
    assert sum(te - ts for _, ts, te, _ in to_rows(said)) == sum(
        any(at <= instant < at + size for at in instants) for instant in range(instants[-1] + 1)
    )


def test_groups_that_have_ended_leave_nothing() -> None:
    plan = approximately(TimeWindow(LEFT, Duration(7)), 7, "50")
    rows: list[Element] = [(("ab"[at % 2], 1), at, at + 1, 1) for at in range(20)]
    state: dict[int, dict[str, list[SortedRun]]] = {}
    arriving = [Arriving({"left": rows}, {"left": 20}), Arriving({"left": []}, {"left": 30})]
    areas = []
    for _ in drive(plan, {"left": LEFT}, arriving, state):
        operator = create_operator(plan, reduced=False, report=unreported)
        for name, runs in state[max(state)].items():
            operator.areas[name].runs = list(runs)
        content = operator.areas["points"].content()
        areas.append(0 if content is None else content.num_rows)
    assert areas[0] > 0
    assert areas[1] == 0


amounts = st.dictionaries(st.integers(-30, 60), st.integers(0, 50) | st.integers(0, 10**6), max_size=40)


@examples(300, 2000)
@given(
    amounts=amounts,
    size=st.integers(1, 40),
    instant=st.integers(-20, 90),
    percent=st.sampled_from(["50", "33.4", "20", "10", "3", "0.1"]),
)
def test_the_definition_keeps_its_bound(
    amounts: dict[int, int], size: int, instant: int, percent: str
) -> None:
    exact = sum(amount for when, amount in amounts.items() if instant - size < when <= instant)
    least, most = bounds(amounts, size, instant, blocks_of(within("COUNT", None, percent)))
    assert least <= exact <= most
    assert abs((least + most) // 2 - exact) * 100 <= Decimal(percent) * exact


@examples(200, 1000)
@given(
    rows=st.dictionaries(
        st.integers(-30, 60), st.lists(st.integers(0, 50) | st.integers(0, 10**6), max_size=9), max_size=40
    ),
    instant=st.integers(-20, 90),
    percent=st.sampled_from(["50", "20", "3"]),
)
def test_means_keep_their_bound(rows: dict[int, list[int]], instant: int, percent: str) -> None:
    size = 25
    valid = [value for when, some in rows.items() if instant - size < when <= instant for value in some]
    begun: dict[int, list[Payload]] = {when: [(value,) for value in some] for when, some in rows.items()}
    least, mean, most = (
        approximate(within("AVG", V, percent, side), begun, size, instant)
        for side in (Side.LOWER, Side.ESTIMATE, Side.UPPER)
    )
    if not valid:
        assert (least, mean, most) == (None, None, None)
        return
    exact = sum(valid) / len(valid)
    assert isinstance(least, float)
    assert isinstance(mean, float)
    assert isinstance(most, float)
    # The middle of two sums is rounded down to a whole number.
    assert least <= exact <= most
    assert abs(mean - exact) <= float(Decimal(percent)) / 100 * exact + 1e-9
