"""Table 12.1 of the PIPES thesis for every node: which ones yield chronons, and in which order elements end.

By the properties of its input an operator is chosen: of chronons nothing is coalesced and a window needs no
split, where nothing is retracted MIN, MAX and the first rows of a group keep only what can still be shown,
and where nothing ends DISTINCT keeps no ends.

Nothing is chosen by the order of ends. PIPES chooses a list or a priority queue by it, whereas a run here
keeps an index of its ends always. Not to sort that index where ends are in order by themselves was tried on a
join with 180,000 rows of state, and took as long. So that column is checked on what operators emit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from random import Random
from typing import Final, get_args

import pytest

from driving import standing_for
from headrace.algebra.frames import RangeFrame
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import BloomKind, Filling, JoinKind, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    ApproximateAggregate,
    BloomFilter,
    Clip,
    Coalesce,
    Distinct,
    Draw,
    Dstream,
    Early,
    Filter,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Leaf,
    Lifetime,
    Match,
    NestedAggregate,
    OuterJoin,
    Over,
    Plan,
    Project,
    Remember,
    RowWindow,
    Rstream,
    Sample,
    SemanticDrop,
    SemiJoin,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Shed,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    WindowBounds,
    column,
)
from headrace.algebra.properties import has_skyband, is_insert_only
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import SortKey, Within
from headrace.operators.aggregates.live_values import Envelope, create_live_values
from headrace.reference.contents import Element, Stream
from headrace.schema import STRING, Field, Schema
from headrace.time import Duration, TimeDomain
from headrace.value_graph import ValueGraph
from worked.tables import LOGICAL, emitted

ONE, TWO = (Source(name, Schema((Field("e", STRING),)), "t", TimeDomain.INTEGER) for name in ("S1", "S2"))
COUNT: Final = (("n", resolve_aggregate("COUNT", None)),)
WITHIN: Final = (("n", resolve_aggregate("COUNT", None, modifiers=Modifiers(bound=Within(Decimal(20))))),)
COUNT_OVER: Final = (("n", resolve_aggregate("COUNT", None), RangeFrame(Duration(3))),)
SAME: Final = ((column(ONE, 0), column(TWO, 0)),)

Condition = Callable[[bool, bool], bool]
"""What holds of the output, by whether the inputs are chronons, of which none is retracted."""


class Ends(Enum):
    """In which order the elements of an output end that are in the order of their starts (table 12.1)."""

    RETAINED = "retained"
    """In order, if those of the input are."""
    DESTROYED = "destroyed"
    """Perhaps in no order, even if those of the input are in order."""
    ENFORCED = "enforced"
    """In order."""


def never(one: bool, two: bool) -> bool:
    return False


def always(one: bool, two: bool) -> bool:
    return True


def first(one: bool, two: bool) -> bool:
    return one


def either(one: bool, two: bool) -> bool:
    return one or two


def both(one: bool, two: bool) -> bool:
    return one and two


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Attributes:
        build: the node, over two plans.
        chronons: when its output holds chronons.
        ends: in which order they end.
        insert_only: when none of its elements is ever taken back.
    """

    build: Callable[[Plan, Plan], Plan]
    chronons: Condition
    ends: Ends
    insert_only: Condition


GRAPH = ValueGraph("v", ((Decimal(0), Decimal(1)),))


def _numbered(rows: Plan) -> Plan:
    return Project(rows, (("e", column(rows, 0)), ("n", literal(1))))


TABLE: dict[str, Line] = {
    "filter": Line(lambda one, two: Filter(one, literal(True)), first, Ends.RETAINED, always),
    "map": Line(lambda one, two: Project(one, (("e", column(one, 0)),)), first, Ends.RETAINED, always),
    # Always into instants, l_out = 1, so that it does more than retain the order.
    "split": Line(lambda one, two: Split(one), always, Ends.ENFORCED, always),
    "union": Line(lambda one, two: Union((one, two)), both, Ends.DESTROYED, always),
    "join": Line(lambda one, two: Join(one, two, SAME, None, ("x", "y")), either, Ends.DESTROYED, always),
    "duplicate elimination": Line(lambda one, two: Distinct(one), first, Ends.DESTROYED, first),
    "difference": Line(
        lambda one, two: SetOperation(one, two, SetKind.EXCEPT_ALL), first, Ends.DESTROYED, first
    ),
    "grouping": Line(
        lambda one, two: Aggregate(one, (("e", column(one, 0)),), COUNT), first, Ends.DESTROYED, first
    ),
    "scalar aggregation": Line(lambda one, two: Aggregate(one, (), COUNT), first, Ends.ENFORCED, first),
    # A window is over chronons, of a split where they are not (section 12.3.2).
    "partitioned window": Line(
        lambda one, two: RowWindow(Split(one), 1, keys=(column(one, 0),)), never, Ends.DESTROYED, never
    ),
    "count window": Line(lambda one, two: RowWindow(Split(one), 2), never, Ends.ENFORCED, never),
    "time window": Line(lambda one, two: TimeWindow(Split(one), Duration(3)), never, Ends.ENFORCED, always),
    "now-window": Line(lambda one, two: TimeWindow(Split(one), Duration(1)), always, Ends.ENFORCED, always),
    # Always as far as a row goes on: l_max is never 1.
    "coalesce": Line(lambda one, two: Coalesce(one), never, Ends.DESTROYED, never),
    # What follows is not printed.
    "corrections": Line(lambda one, two: Finalize(one), first, Ends.DESTROYED, first),
    "sliding window": Line(
        lambda one, two: TimeWindow(Split(one), Duration(4), Duration(2)), never, Ends.ENFORCED, always
    ),
    "lifetime": Line(lambda one, two: Lifetime(Split(one), literal(3)), never, Ends.ENFORCED, always),
    "bounds": Line(
        lambda one, two: WindowBounds(
            TimeWindow(Split(one), Duration(4), Duration(2)), Duration(4), Duration(2)
        ),
        never,
        Ends.ENFORCED,
        always,
    ),
    "session": Line(
        lambda one, two: SessionWindow(Split(one), Duration(2), ()), never, Ends.ENFORCED, always
    ),
    "series": Line(
        lambda one, two: GapFill(
            Project(Split(one), (("e", column(one, 0)), ("at", literal(0)))),
            *(Duration(2), Duration(4), Filling.LAST, (column(one, 0),), 1),
        ),
        always,
        Ends.ENFORCED,
        always,
    ),
    "groups of sessions": Line(
        lambda one, two: SessionAggregate(
            Split(one), Duration(2), (), None, None, (("e", column(one, 0)),), COUNT
        ),
        never,
        Ends.ENFORCED,
        always,
    ),
    "sample": Line(lambda one, two: Sample(one, Decimal(99)), first, Ends.DESTROYED, first),
    "a share": Line(lambda one, two: Shed(Split(one), ("S1",), "LOSS"), always, Ends.ENFORCED, always),
    "draws": Line(lambda one, two: Draw(Split(one), ("S1",), "LOSS"), always, Ends.ENFORCED, always),
    "Bloom filter": Line(
        lambda one, two: BloomFilter(Split(one), Duration(3), BloomKind.NEW, 9, "LOSS"),
        always,
        Ends.ENFORCED,
        always,
    ),
    "values": Line(
        lambda one, two: SemanticDrop(_numbered(Split(one)), ("S1",), "LOSS", place=1, graph=GRAPH),
        always,
        Ends.ENFORCED,
        always,
    ),
    "largest weight": Line(
        lambda one, two: LargestWeight(one, ("S1",), "LOSS"), first, Ends.RETAINED, always
    ),
    "unnest": Line(
        lambda one, two: Unnest(one, resolve("ARRAY", (column(one, 0),)), (0,), ("v",)),
        first,
        Ends.RETAINED,
        always,
    ),
    "granules": Line(lambda one, two: Granularity(one, Duration(2)), never, Ends.RETAINED, always),
    "clip": Line(lambda one, two: Clip(one, 2, 6), first, Ends.RETAINED, always),
    "over": Line(lambda one, two: Over(Split(one), (), COUNT_OVER), always, Ends.ENFORCED, always),
    "outer join": Line(
        lambda one, two: OuterJoin(one, two, SAME, None, ("x", "y"), JoinKind.LEFT),
        first,
        Ends.DESTROYED,
        first,
    ),
    "semi-join": Line(lambda one, two: SemiJoin(one, two, SAME, None), either, Ends.DESTROYED, both),
    "first rows": Line(
        lambda one, two: TopK(one, (), (SortKey(column(one, 0)),), 1), first, Ends.ENFORCED, first
    ),
    "insertions": Line(lambda one, two: Istream(one), always, Ends.ENFORCED, always),
    "deletions": Line(lambda one, two: Dstream(one), always, Ends.ENFORCED, always),
    "content": Line(lambda one, two: Rstream(Split(one)), always, Ends.ENFORCED, always),
    "groups of two windows": Line(
        lambda one, two: NestedAggregate(
            TimeWindow(Split(one), Duration(4)), (Duration(3),), (("e", column(one, 0)),), COUNT, "window"
        ),
        never,
        Ends.DESTROYED,
        never,
    ),
    "approximate groups": Line(
        lambda one, two: ApproximateAggregate(
            TimeWindow(Split(one), Duration(4)), Duration(4), (("e", column(one, 0)),), WITHIN
        ),
        never,
        Ends.DESTROYED,
        never,
    ),
    "rows of several predicates": Line(
        lambda one, two: Match(one, ((0, resolve("IS NOT NULL", (column(one, 0),))),), "query"),
        first,
        Ends.RETAINED,
        always,
    ),
    "before it is final": Line(lambda one, two: Early(one, Horizon(("S1",), 0)), first, Ends.RETAINED, never),
}

INPUTS: Final = [(one, two) for one in (True, False) for two in (True, False)]


def built(name: str, one: bool, two: bool) -> Plan:
    """The node of a line over chronons, or over what may be intervals."""
    left, right = (
        standing_for(source, chronons=chronons, insert_only=True)
        for source, chronons in ((ONE, one), (TWO, two))
    )
    return TABLE[name].build(left, right)


def test_every_node_has_a_line() -> None:
    # A memory is above sources alone.
    elsewhere = {*get_args(Leaf), Remember}
    assert {type(line.build(ONE, TWO)) for line in TABLE.values()} == set(get_args(Plan)) - elsewhere


@pytest.mark.parametrize("name", TABLE)
def test_who_yields_chronons_and_who_takes_back(name: str) -> None:
    line = TABLE[name]
    for one, two in INPUTS:
        plan = built(name, one, two)
        assert plan.is_chronon is line.chronons(one, two)
        assert is_insert_only(plan) is line.insert_only(one, two)
        # The streams of table 8.1, in which rows go on from one instant to the next.
        for cuts in (1, 2):
            elements = emitted(plan, LOGICAL, cuts)
            assert elements
            assert not plan.is_chronon or all(te == ts + 1 for _, ts, te, _ in elements)
            assert not is_insert_only(plan) or all(w > 0 for *_, w in elements)


@pytest.mark.parametrize("name", TABLE)
def test_what_is_kept_is_chosen_by_whether_rows_are_taken_back(name: str) -> None:
    for one, two in INPUTS:
        plan = built(name, one, two)
        value = column(plan, 0)
        largest = resolve_aggregate("MAX", value)
        kept = create_live_values((), Ordering.of(largest), [largest], is_insert_only(plan))
        assert isinstance(kept, Envelope) is TABLE[name].insert_only(one, two)
        assert has_skyband(TopK(plan, (), (SortKey(value),), 1)) is TABLE[name].insert_only(one, two)


def in_order(elements: Sequence[Element]) -> bool:
    """Whether elements that are in the order of their starts end in order; those taken back do not count."""
    left: dict[tuple[object, int, int], int] = {}
    for row, ts, te, w in elements:
        left[row, ts, te] = left.get((row, ts, te), 0) + w
    times = sorted((ts, te) for (_, ts, te), count in left.items() if count)
    return all(before <= after for (_, before), (_, after) in pairwise(times))


def random_stream(random: Random, lengths: Sequence[int]) -> Stream:
    """A few elements, each of one of some lengths."""
    starts = sorted(random.randrange(1, 8) for _ in range(random.randrange(1, 7)))
    return Stream(("e",), [((random.choice("ab"),), ts, ts + random.choice(lengths), 1) for ts in starts])


@pytest.mark.parametrize("name", TABLE)
def test_the_order_of_ends(name: str) -> None:
    line, random = TABLE[name], Random(1)
    plan = line.build(ONE, TWO)

    def all_in_order(one: Sequence[int], two: Sequence[int]) -> bool:
        streams = ({"S1": random_stream(random, one), "S2": random_stream(random, two)} for _ in range(60))
        return all(in_order(emitted(plan, part)) for part in streams)

    of_any_order = range(1, 6)
    match line.ends:
        case Ends.ENFORCED:
            assert all_in_order(of_any_order, of_any_order)
        case Ends.RETAINED:
            assert all_in_order([3], [5])
            assert not all_in_order(of_any_order, of_any_order)
        case Ends.DESTROYED:
            assert not all_in_order([3], [5])
