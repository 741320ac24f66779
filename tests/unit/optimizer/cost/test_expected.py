"""What nodes are expected to yield and to keep: the thesis' equations, and pairs and sessions as counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Granularity,
    Join,
    NestedAggregate,
    Plan,
    RowWindow,
    SessionWindow,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    column,
)
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.tree import Call, Column, Expression, Literal
from headrace.optimizer.cost.expected import expected
from headrace.optimizer.cost.flow import Flow, FlowSample, flow_of
from headrace.optimizer.cost.growth import ALL, growth_of
from headrace.schema import BIGINT, BOOLEAN, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain

SOURCE = Source("s", Schema((Field("v", BIGINT),)), "t", TimeDomain.INTEGER)
FOREVER = 1e9


def flow(rate: float, lifetime: float, step: float = 1.0) -> Flow:
    return Flow(rate, lifetime, step, (ALL,))


def sampled(values: list[int], instants: list[int]) -> Flow:
    rows = pa.RecordBatch.from_pydict({"v": pa.array(values, pa.int64())})
    return flow_of(FlowSample(rows, np.array(instants, dtype=np.int64)))


def output(plan: Plan, *inputs: Flow) -> tuple[float, float]:
    found = expected(plan, inputs, FOREVER).flow
    return found.rate, found.lifetime


def test_nested_windows_yield_what_each_does_and_keep_what_the_longest_does() -> None:
    rows = sampled([place % 4 for place in range(1000)], list(range(1000)))
    windows = [TimeWindow(SOURCE, Duration(size)) for size in (100, 80, 30)]
    keys, count = (("v", column(SOURCE, 0)),), (("n", resolve_aggregate("COUNT", None)),)
    below = [expected(window, (rows,), FOREVER).flow for window in windows]
    apart = [
        expected(Aggregate(window, keys, count), (part,), FOREVER)
        for window, part in zip(windows, below, strict=True)
    ]
    nested = NestedAggregate(windows[0], (Duration(80), Duration(30)), keys, count, "window")
    found = expected(nested, below[:1], FOREVER)
    assert found.flow.rate == pytest.approx(sum(part.flow.rate for part in apart))
    assert len(found.flow.values) == len(nested.schema)
    # Of 4 groups and a row at each instant.
    assert apart[0].state == pytest.approx(104)
    assert found.state == pytest.approx(104 + 2 * 4)


def test_unions_windows_splits_and_granules_follow_the_equations() -> None:
    union = Union((SOURCE, SOURCE))
    # 22.3: d' = 1 / (1/d1 + 1/d2), l' = (l1/d1 + l2/d2) / (1/d1 + 1/d2).
    assert output(union, flow(1 / 2, 10), flow(1 / 4, 40)) == pytest.approx((3 / 4, 20))
    assert output(TimeWindow(SOURCE, Duration(60)), flow(3, 1)) == (3, 60)
    # 22.8 with l_out = 1, and 22.9 for l below and above the granule.
    assert output(Split(SOURCE), flow(1 / 2, 10)) == (5, 1)
    assert output(Granularity(SOURCE, Duration(20)), flow(1 / 2, 5)) == (1 / 8, 20)
    assert output(Granularity(SOURCE, Duration(20)), flow(1 / 2, 50)) == (1 / 2, 50)


def test_pairs_without_condition_are_those_that_overlap() -> None:
    plan = Join(SOURCE, SOURCE, (), None, ("a", "b"))
    # 22.4: d' = d1 * d2 / (l1 + l2), l' = l1 * l2 / (l1 + l2); of discrete instants one less overlaps.
    assert output(plan, flow(1 / 2, 10), flow(1 / 4, 31)) == pytest.approx((1 / 8 * 40, 10 * 31 / 40))
    assert expected(plan, [flow(1 / 2, 10), flow(1 / 4, 31)], FOREVER).state == 10 / 2 + 31 / 4
    assert expected(plan, [flow(1 / 2, 1), flow(1 / 4, 31)], FOREVER).state == 31 / 4


def test_a_filter_lets_through_what_it_does_in_the_sample() -> None:
    plan = Filter(SOURCE, Call("<", (column(SOURCE, 0), Literal(3, BIGINT)), BOOLEAN))
    source = sampled([1, 2, 3, 4, 5], [0, 10, 20, 30, 49])
    found = expected(plan, [source], FOREVER).flow
    assert found.rate == pytest.approx(2 / 50)
    assert found.sample is not None
    assert found.sample.instants.tolist() == [0, 10]
    assert output(plan, flow(3, 1)) == (1, 1)


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=40)


@given(rows, rows, st.integers(1, 12), st.integers(1, 12))
def test_matches_are_counted_as_by_looking_at_every_pair(
    left: list[tuple[int, int]], right: list[tuple[int, int]], first: int, second: int
) -> None:
    # Both samples reach from 0 to 60, so that half of that is longer than any lifetime.
    ours, theirs = (sorted([*part, (9, 0), (8, 60)], key=lambda row: row[1]) for part in (left, right))
    theirs = [(value + 10 if value > 7 else value, instant) for value, instant in theirs]

    def met(mine: list[tuple[int, int]], others: list[tuple[int, int]], length: int, tie: int) -> float:
        whole = [(value, instant) for value, instant in mine if instant - tie >= length - 1]
        pairs = sum(
            value == other and 0 <= instant - tie - begin < length
            for value, instant in whole
            for other, begin in others
        )
        return pairs / len(whole) if whole and length else 0

    plan = Join(SOURCE, SOURCE, ((column(SOURCE, 0), column(SOURCE, 0)),), None, ("a", "b"))
    mine, yours = (sampled([v for v, _ in part], [t for _, t in part]) for part in (ours, theirs))
    flows = [replace(mine, lifetime=float(first)), replace(yours, lifetime=float(second))]
    wanted = mine.rate * met(ours, theirs, second, 0) + yours.rate * met(theirs, ours, first - 1, 1)
    if wanted:
        assert expected(plan, flows, FOREVER).flow.rate == pytest.approx(wanted)


def test_matches_that_lie_close_by_do_not_grow_with_the_window() -> None:
    # Each row of the right stream is met by the ten left ones that follow it, and by no others.
    left = sampled([place // 10 for place in range(1_000)], list(range(1, 1_001)))
    right = sampled(list(range(100)), [10 * place for place in range(100)])
    plan = Join(SOURCE, SOURCE, ((column(SOURCE, 0), column(SOURCE, 0)),), None, ("a", "b"))
    for length in (20, 100, 10_000_000):
        found = expected(plan, [left, replace(right, lifetime=float(length))], FOREVER)
        assert found.flow.rate == pytest.approx(1, rel=0.02)


def test_rows_that_never_match_are_not_expected_to_by_how_many_values_there_are() -> None:
    plan = Join(SOURCE, SOURCE, ((column(SOURCE, 0), column(SOURCE, 0)),), None, ("a", "b"))
    left = sampled([-1 - place % 10 for place in range(1_000)], list(range(1_000)))
    right = sampled([place % 10 for place in range(1_000)], list(range(1_000)))
    flows = [replace(left, lifetime=100.0), replace(right, lifetime=100.0)]
    # By the number of values it would be 20 at each instant. Where none was seen in 1,000, three may be.
    assert expected(plan, flows, FOREVER).flow.rate == pytest.approx(3 / 1_000)
    seldom = [replace(side, sample=replace(side.sample, part=0.1)) for side in flows if side.sample]
    assert expected(plan, seldom, FOREVER).flow.rate == pytest.approx(3 / 1_000 * 100)
    # Of windows that are ten times as long as the samples no more than ten times as many.
    longer = [replace(side, lifetime=5_000.5) for side in flows]
    assert expected(plan, longer, FOREVER).flow.rate == pytest.approx(3 / 1_000 * 10)


def test_rows_that_never_match_those_of_a_relation() -> None:
    plan = Join(SOURCE, SOURCE, ((column(SOURCE, 0), column(SOURCE, 0)),), None, ("a", "b"))
    stream = sampled([-1 - place % 10 for place in range(500)], [2 * place for place in range(500)])
    relation = replace(sampled(list(range(50)), [0] * 50), lifetime=FOREVER)
    found = expected(plan, [stream, relation], FOREVER).flow.rate
    assert found == pytest.approx(3 / 999)


def test_few_rows_are_not_below_the_largest_of_many() -> None:
    window = TimeWindow(SOURCE, Duration(100))
    below = expected(window, [sampled(list(range(1_000)), list(range(1_000)))], FOREVER).flow
    most = Aggregate(window, (), (("most", resolve_aggregate("MAX", column(SOURCE, 0))),))
    largest = expected(most, [below], FOREVER).flow
    least, at_least = (
        Call(name, (Column(0, "a", BIGINT), Column(1, "most", BIGINT)), BOOLEAN) for name in ("<=", ">=")
    )
    everything = expected(Join(window, most, (), None, ("a", "most")), [below, largest], FOREVER).flow.rate
    for condition, part in ((at_least, 1 / 101), (least, 1.0)):
        plan = Join(window, most, (), condition, ("a", "most"))
        found = expected(plan, [replace(below, sample=None), largest], FOREVER).flow.rate
        assert found == pytest.approx(everything * part)


def test_one_row_is_equal_to_the_largest_of_its_window() -> None:
    window = TimeWindow(SOURCE, Duration(100), Duration(100))
    # Ten rows of each value; as many are at the end of a window as are anywhere.
    source = sampled([place // 10 for place in range(10_000)], list(range(10_000)))
    below = replace(expected(window, [source], FOREVER).flow, sample=None)
    most = Aggregate(window, (), (("most", resolve_aggregate("MAX", column(SOURCE, 0))),))
    largest = expected(most, [below], FOREVER).flow
    plan = Join(window, most, ((column(window, 0), column(most, 0)),), None, ("a", "most"))
    assert expected(plan, [below, largest], FOREVER).flow.rate == pytest.approx(1 / 100, rel=0.02)


def test_elements_of_equal_windows_meet_in_one_window() -> None:
    plan = Join(SOURCE, SOURCE, (), None, ("a", "b"))
    # Two and three rows in each of windows that follow each other: six pairs.
    assert output(plan, flow(0.2, 10, 10), flow(0.3, 10, 10)) == pytest.approx((0.6, 10))


def test_the_rows_of_a_session_change_a_group_once() -> None:
    # Sessions of ten rows, far apart.
    instants = [1_000 * (place // 10) + place % 10 for place in range(1_000)]
    source = sampled([place // 10 % 7 for place in range(1_000)], instants)
    window = SessionWindow(SOURCE, Duration(50), (column(SOURCE, 0),))
    below = expected(window, [source], FOREVER).flow
    keys = (("v", column(window, 0)), ("begin", column(window, 1)))
    count = Aggregate(window, keys, (("n", resolve_aggregate("COUNT", None)),))
    found = expected(count, [below], FOREVER)
    assert found.flow.rate == pytest.approx(source.rate / 10, rel=0.02)


def test_a_row_waits_until_its_session_is_over() -> None:
    source = sampled([1, 1, 2, 1], [0, 3, 4, 20])
    found = expected(SessionWindow(SOURCE, Duration(5), (column(SOURCE, 0),)), [source], FOREVER)
    # Sessions end at 8, 8, 9 and 25.
    assert found.state == pytest.approx(source.rate * (8 + 5 + 5 + 5) / 4)
    assert found.flow.sample is not None
    assert found.flow.sample.rows.column(1).to_pylist() == [0, 0, 4, 20]
    assert found.flow.sample.rows.column(2).to_pylist() == [8, 8, 9, 25]


def test_row_windows_hold_their_rows_for_each_partition() -> None:
    source = Flow(2.0, 1.0, 1.0, (growth_of(np.arange(1_000) % 50),))
    found = expected(RowWindow(SOURCE, 10, 1, (column(SOURCE, 0),)), [source], FOREVER)
    assert found.state == pytest.approx(500)
    assert found.flow.lifetime == pytest.approx(250)


def test_what_is_distinct_lasts_as_long_as_an_element() -> None:
    # 22.5: d' = d and l' = n * d if that is at most l; here coalesced, so that each value is one element.
    source = replace(sampled([place % 50 for place in range(10_000)], list(range(10_000))), lifetime=1_000.0)
    found = expected(Distinct(SOURCE), [source], FOREVER)
    assert found.flow.rate == pytest.approx(50 / 1_000)
    assert found.state == pytest.approx(1_050)


def aggregate(*names: str, condition: Expression | None = None, distinct: bool = False) -> Aggregate:
    modifiers = Modifiers(distinct=distinct, condition=condition)
    calls = ((name, resolve_aggregate(name, column(SOURCE, 0), modifiers=modifiers)) for name in names)
    return Aggregate(SOURCE, (), tuple(calls))


def test_of_elements_without_an_end_nothing_is_kept_that_lies_ahead() -> None:
    window = TimeWindow(SOURCE, Duration(INFINITY))
    below = expected(window, [sampled(list(range(1_000)), list(range(1_000)))], 1_000.0).flow
    assert (below.lifetime, below.is_open) == (1_000, True)
    count = Aggregate(SOURCE, (("v", column(SOURCE, 0)),), (("n", resolve_aggregate("COUNT", None)),))
    found = expected(count, [below], 1_000.0)
    # A group for each value, which no other element changes, in place of a begin and an end for each.
    assert found.state == pytest.approx(1_000)
    assert found.flow.rate == pytest.approx(1)
    ended = replace(below, is_open=False)
    assert expected(count, [ended], 1_000.0).state == pytest.approx(2_000)


def test_one_value_is_kept_of_all_where_none_ends_and_the_largest_is_wanted() -> None:
    below = replace(sampled(list(range(1_000)), list(range(1_000))), lifetime=1_000.0, is_open=True)
    assert expected(aggregate("MAX"), [below], 1_000.0).state == pytest.approx(2)
    assert expected(aggregate("MIN", "MAX"), [below], 1_000.0).state == pytest.approx(3)
    # Of n values in random order 1 + 1/2 + ... + 1/n are larger than those before them.
    records = sum(1 / place for place in range(1, 1_001))
    rate = expected(aggregate("MAX"), [below], 1_000.0).flow.rate
    assert rate * 1_000 == pytest.approx(records, rel=1e-3)
    # As many are larger than all that come after, and so are the largest when what is better has ended.
    ending = replace(below, is_open=False)
    assert expected(aggregate("MAX"), [ending], 1e6).state == pytest.approx(1 + 1_000 + records, rel=1e-3)


def test_distinct_values_are_kept_once_for_each_argument_and_condition() -> None:
    below = replace(sampled([place % 50 for place in range(1_000)], list(range(1_000))), lifetime=1_000.0)
    below = replace(below, is_open=True)
    assert expected(aggregate("COUNT", distinct=True), [below], 1_000.0).state == pytest.approx(1 + 50)
    twice = aggregate("COUNT", "SUM", "AVG", distinct=True)
    assert expected(twice, [below], 1_000.0).state == pytest.approx(1 + 50)
    few = Call("<", (column(SOURCE, 0), Literal(10, BIGINT)), BOOLEAN)
    assert expected(
        aggregate("COUNT", condition=few, distinct=True), [below], 1_000.0
    ).state == pytest.approx(1 + 10)


def test_what_takes_the_place_of_another_changes_what_is_above_once() -> None:
    below = replace(sampled([7] * 1_000, list(range(1_000))), lifetime=10.0)
    count = aggregate("COUNT")
    # 22.6: twice as often as elements come; here less by those that end in a group of no others, of ten.
    assert expected(count, [below], FOREVER).flow.rate == pytest.approx(2, rel=1e-4)
    replaced = expected(count, [replace(below, is_replaced=True)], FOREVER).flow
    assert replaced.rate == pytest.approx(1)
    assert replaced.is_replaced


def test_of_each_value_so_many_rows_are_among_the_first() -> None:
    # Half of the rows have one value, and every other one a value of its own.
    codes = [0 if place % 2 else place for place in range(1_000)]
    found = sampled(codes, list(range(1_000)))
    assert found.among_first([column(SOURCE, 0)], 10, 1_000) == pytest.approx(499 + 10)
    # From how many values there are alone, it might be ten of each.
    assert replace(found, sample=None).among_first([column(SOURCE, 0)], 10, 1_000) == 1_000
    top = TopK(SOURCE, (column(SOURCE, 0),), (), 10)
    below = replace(found, lifetime=1_000.0, is_open=True)
    assert expected(top, [below], 1_000.0).state == pytest.approx(500 + 509)


def test_a_row_meets_the_one_group_that_has_its_key() -> None:
    below = replace(sampled([place % 100 for place in range(10_000)], list(range(10_000))), is_open=True)
    counts = Aggregate(SOURCE, (("v", column(SOURCE, 0)),), (("n", resolve_aggregate("COUNT", None)),))
    groups = expected(counts, [replace(below, lifetime=10_000.0)], 10_000.0).flow
    assert groups.live == pytest.approx(100)
    plan = Join(SOURCE, counts, ((column(SOURCE, 0), column(counts, 0)),), None, ("a", "b", "n"))
    assert expected(plan, [flow(1 / 2, 1), groups], 10_000.0).flow.rate == pytest.approx(1 / 2, rel=0.01)
