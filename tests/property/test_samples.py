"""Aggregates of samples: the operator is its definition, and the definition keeps its bound."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driving import Arriving, check_chronons, drive
from headrace.algebra.nodes import ApproximateAggregate, Plan, Source, TimeWindow, WindowBounds
from headrace.elements import concat, to_rows
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.aggregates.within import sample_size
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import AggregateCall, Column, Expression, Side, SortKey, Within
from headrace.history import canonical, clip
from headrace.operators.create import create_operator
from headrace.operators.early import unreported
from headrace.operators.state.runs import SortedRun
from headrace.reference.contents import Element, Payload, payload
from headrace.reference.summaries import approximate
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain
from how_many import examples

EPOCHS = 4
SCHEMA = Schema((Field("k", STRING), Field("v", BIGINT), Field("d", DOUBLE)))
LEFT = Source("left", SCHEMA, "t", TimeDomain.INTEGER)
K, V, D = (Column(place, field.name, field.type) for place, field in enumerate(SCHEMA))


def sampled(
    name: str,
    argument: Expression,
    percent: str = "50",
    *others: Expression,
    condition: Expression | None = None,
    side: Side = Side.ESTIMATE,
) -> AggregateCall:
    """An aggregate of a sample."""
    modifiers = Modifiers(condition=condition, bound=Within(Decimal(percent), side))
    return resolve_aggregate(name, argument, *others, modifiers=modifiers)


def counted(*, few: bool) -> tuple[tuple[str, AggregateCall], ...]:
    """Distinct counts and percentiles, also of a part of the rows."""
    positive = resolve(">", (V, literal(0)))
    half, most = literal(0.5), literal(0.9)
    calls = [
        sampled("APPROX_COUNT_DISTINCT", V),
        sampled("APPROX_PERCENTILE", V, "50", half),
        sampled("APPROX_PERCENTILE", D, "50", most),
        sampled("APPROX_TOP_K", V, "50", literal(2)),
        sampled("APPROX_COUNT_DISTINCT", V, side=Side.LOWER),
        sampled("APPROX_PERCENTILE", D, "40", half, side=Side.UPPER),
    ]
    if not few:
        last_first = Modifiers(order=(SortKey(K, descending=True),), bound=Within(Decimal(30), Side.LOWER))
        calls += [
            sampled("APPROX_COUNT_DISTINCT", V, side=Side.UPPER),
            sampled("APPROX_PERCENTILE", V, "40", half, side=Side.LOWER),
            sampled("APPROX_PERCENTILE", D, "50", most, side=Side.UPPER),
            sampled("APPROX_PERCENTILE", K, "30", literal(0.3), side=Side.UPPER),
            resolve_aggregate("PERCENTILE_DISC", K, literal(0.6), modifiers=last_first),
            sampled("APPROX_PERCENTILE", K, "50", half),
            sampled("APPROX_COUNT_DISTINCT", D, "40", condition=positive),
            sampled("APPROX_PERCENTILE", V, "40", half, condition=positive),
        ]
    return tuple((f"a{place}", call) for place, call in enumerate(calls))


def groups(rows: Plan, size: int, *, keyed: bool = True) -> ApproximateAggregate:
    """Groups of samples of the rows of windows."""
    keys = (("k", K),) if keyed else ()
    return ApproximateAggregate(rows, Duration(size), keys, counted(few=not keyed))


_SLIDING = TimeWindow(LEFT, Duration(8), Duration(4))
PLANS: dict[str, Plan] = {
    "by key": groups(TimeWindow(LEFT, Duration(7)), 7),
    "of all": groups(TimeWindow(LEFT, Duration(12)), 12, keyed=False),
    "that slide": groups(TimeWindow(LEFT, Duration(8), Duration(2), Duration(1)), 8),
    "shown when they are over": groups(WindowBounds(_SLIDING, Duration(8), Duration(4)), 4, keyed=False),
    "of an instant": groups(LEFT, 1),
    "longer than all": groups(TimeWindow(LEFT, Duration(60)), 60, keyed=False),
    "that no row leaves": groups(TimeWindow(LEFT, Duration(INFINITY)), INFINITY),
}


@st.composite
def epochs_of_rows(draw: st.DrawFn, most: int = 40) -> list[list[Element]]:
    """Chronons by epoch, many of them of one instant; some are taken back before a heartbeat passes them."""
    epochs: list[list[Element]] = [[] for _ in range(EPOCHS)]
    random = Random(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from([3, 9, 1000]))
    for _ in range(draw(st.integers(0, most))):
        value = random.choice([None, *range(-1, values)]) if values < 10 else random.randrange(values)
        number = random.choice([None, -0.0, 0.0, float("nan"), random.random()])
        payload = random.choice("aab"), value, number
        ts, w = random.randint(-9, 30), random.choice([1, 1, 1, 2, 5])
        at = random.randrange(EPOCHS)
        epochs[at].append((payload, ts, ts + 1, w))
        if random.randrange(6) == 0:
            epochs[random.randint(at, EPOCHS - 1)].append((payload, ts, ts + 1, -1))
    return epochs


@pytest.mark.parametrize("name", PLANS)
@examples(25, 100)
@given(epochs=epochs_of_rows(), slack=st.integers(0, 3))
def test_the_operator_is_the_definition(name: str, epochs: list[list[Element]], slack: int) -> None:
    check_chronons(LEFT, PLANS[name], epochs, slack)


@pytest.mark.parametrize(("every", "size"), [(1, 40), (7, 20), (7, 90), (40, 70)])
def test_samples_of_many_epochs_are_those_of_the_definition(every: int, size: int) -> None:
    random = Random(every * size)
    rows: list[Element] = []
    ts = 0
    for _ in range(100):
        ts += random.randint(0, 2)
        value = random.randrange(random.choice([5, 500, 500, 500]))
        rows.append((("a", value, 0.5), ts, ts + 1, random.choice([1, 1, 3])))
    plan = groups(TimeWindow(LEFT, Duration(size)), size, keyed=False)
    parts = [rows[at : at + every] for at in range(0, len(rows), every)]
    hearts = [part[0][1] for part in parts[1:]] + [ts + 1]
    epochs = [Arriving({"left": part}, {"left": at}) for part, at in zip(parts, hearts, strict=True)]
    found = [batch for batch, _ in drive(plan, {"left": LEFT}, epochs)]
    said = canonical(clip(concat(plan.schema, found), ts + 1))
    named = [call for _, call in plan.aggregates]
    lasted = 0
    for row, since, until, _ in to_rows(said):
        lasted += until - since
        for instant in range(since, until):
            begun = begun_by(rows, instant)
            assert row[0] == approximate(named[0], begun, size, instant), instant
            assert row[1] == approximate(named[1], begun, size, instant), instant
            assert payload(row[3:5]) == payload(
                [approximate(call, begun, size, instant) for call in named[3:5]]
            ), instant
    assert lasted == sum(any(at <= instant < at + size for _, at, _, _ in rows) for instant in range(ts + 1))


def begun_by(rows: list[Element], instant: int) -> dict[int, list[Payload]]:
    """By instant up to one, the values of the second column, as aggregates of it take them."""
    begun: dict[int, list[Payload]] = {}
    for row, ts, _, w in rows:
        if ts <= instant:
            begun.setdefault(ts, []).extend([(row[1],)] * w)
    return begun


def test_groups_that_have_ended_leave_nothing() -> None:
    plan = groups(TimeWindow(LEFT, Duration(7)), 7)
    rows: list[Element] = [(("ab"[at % 2], at, 1.0), at, at + 1, 1) for at in range(20)]
    state: dict[int, dict[str, list[SortedRun]]] = {}
    arriving = [Arriving({"left": rows}, {"left": 20}), Arriving({"left": []}, {"left": 30})]
    areas = []
    for _ in drive(plan, {"left": LEFT}, arriving, state):
        operator = create_operator(plan, reduced=False, report=unreported)
        for name, runs in state[max(state)].items():
            operator.areas[name].runs = list(runs)
        contents = [operator.areas[name].content() for name in operator.areas if name.startswith("sample")]
        areas.append(sum(0 if content is None else content.num_rows for content in contents))
    assert areas[0] > 0
    assert areas[1] == 0


@pytest.mark.parametrize("percent", ["20", "10"])
def test_nineteen_of_twenty_distinct_counts_keep_their_bound(percent: str) -> None:
    call = sampled("APPROX_COUNT_DISTINCT", V, percent)
    wrong = 0
    for sample in range(100):
        values = range(sample * 10**6, sample * 10**6 + 2500)
        found = approximate(call, {0: [(value,) for value in values]}, 1, 0)
        assert isinstance(found, int)
        wrong += abs(found - 2500) * 100 > Decimal(percent) * 2500
    # On average 5 of 100 miss a bound of two standard errors.
    assert 0 < wrong <= 12


@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_nineteen_of_twenty_percentiles_keep_their_bound(fraction: float) -> None:
    call = sampled("APPROX_PERCENTILE", V, "10", literal(fraction))
    wrong = 0
    for sample in range(100):
        random = Random(sample)
        values = [int(random.paretovariate(1) * 10**6) for _ in range(1000)]
        found = approximate(call, {0: [(value,) for value in values]}, 1, 0)
        assert isinstance(found, float)
        below, upto = sum(value < found for value in values), sum(value <= found for value in values)
        wrong += not below - 100 <= fraction * 1000 <= upto + 100
    assert wrong <= 12


@pytest.mark.parametrize(("name", "others"), [("APPROX_COUNT_DISTINCT", ()), ("APPROX_PERCENTILE", (0.7,))])
def test_nineteen_of_twenty_bounds_hold_and_what_is_small_has_none_but_itself(
    name: str, others: tuple[float, ...]
) -> None:
    low, high, estimate = (
        sampled(name, V, "20", *map(literal, others), side=side)
        for side in (Side.LOWER, Side.UPPER, Side.ESTIMATE)
    )
    wrong = 0
    for sample in range(100):
        random = Random(sample)
        values = [random.randrange(10**7) for _ in range(1000)]
        begun: dict[int, list[Payload]] = {0: [(value,) for value in values]}
        least, most = (approximate(call, begun, 1, 0) for call in (low, high))
        assert isinstance(least, int | float)
        assert isinstance(most, int | float)
        exact = sorted(values)[round(0.7 * 999)] if others else len(set(values))
        wrong += not least <= exact <= most
        few: dict[int, list[Payload]] = {0: [(value,) for value in values[:20]]}
        assert len({approximate(call, few, 1, 0) for call in (low, high, estimate)}) == 1
    assert wrong <= 12


def test_beyond_the_values_of_a_sample_a_percentile_has_no_bound() -> None:
    call = sampled("APPROX_PERCENTILE", V, "20", literal(0.9), side=Side.UPPER)
    begun: dict[int, list[Payload]] = {0: [(value,) for value in range(1000)]}
    assert approximate(call, begun, 1, 0) is None
    assert approximate(call, {0: [(3,), (4,)]}, 1, 0) == pytest.approx(3.9)


@examples(50, 300)
@given(values=st.lists(st.integers(-5, 10**6), max_size=17), size=st.integers(1, 9))
def test_what_is_small_is_exact(values: list[int], size: int) -> None:
    begun: dict[int, list[Payload]] = {at % size: [] for at in range(len(values))}
    for at, value in enumerate(values):
        begun[at % size].append((value,))
    call = sampled("APPROX_COUNT_DISTINCT", V, "50")
    assert sample_size(call) == 18
    assert approximate(call, begun, size, size - 1) == len(set(values))


def test_nineteen_of_twenty_counts_of_frequent_values_keep_their_bound() -> None:
    call = sampled("APPROX_TOP_K", V, "20", literal(2))
    wrong = 0
    for sample in range(100):
        random = Random(sample)
        values = [int(random.paretovariate(1)) for _ in range(1000)]
        found = approximate(call, {0: [(value,) for value in values]}, 1, 0)
        assert isinstance(found, tuple)
        assert len(found) == 2
        wrong += sum(abs(count - values.count(item)) > 200 for item, count in found)
    assert wrong <= 24


@pytest.mark.parametrize(("size", "most"), [(INFINITY, 120), (1000, 350)])
def test_little_is_kept_however_many_rows_come(size: int, most: int) -> None:
    call = sampled("APPROX_COUNT_DISTINCT", V, "50")
    plan = ApproximateAggregate(TimeWindow(LEFT, Duration(size)), Duration(size), (), (("n", call),))
    epochs = [
        Arriving(
            {"left": [(("a", at * 7919, 0.5), at, at + 1, 1) for at in range(first, first + 200)]},
            {"left": first + 200},
        )
        for first in range(0, 4000, 200)
    ]
    state: dict[int, dict[str, list[SortedRun]]] = {}
    kept = []
    for _ in drive(plan, {"left": LEFT}, epochs, state):
        runs = state[max(state)]
        kept.append(sum(run.rows for name in runs if name != "waiting" for run in runs[name]))
    assert max(kept) <= most, kept
    assert kept[-1] > 18
