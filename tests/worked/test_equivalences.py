"""Equalities of plans that the PIPES thesis prints: rules 10.4 to 10.12, example 10.1, lemmas 12.1 and 20.1.

Both sides are run on random streams, by the reference and by their operators, whether or not the optimizer
uses the rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Filter,
    Granularity,
    Join,
    Plan,
    Project,
    RowWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    Union,
    column,
)
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, make_case, resolve
from headrace.reference.contents import Element, Stream, content_at
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import Duration, TimeDomain
from how_many import examples
from worked.tables import equivalent

SCHEMA = Schema((Field("e", STRING), Field("v", BIGINT)))
ONE, TWO, THREE = (Source(name, SCHEMA, "t", TimeDomain.INTEGER) for name in ("S1", "S2", "S3"))


def window(plan: Plan) -> Plan:
    return TimeWindow(plan, Duration(3))


def product(left: Plan, right: Plan) -> Plan:
    width = len(left.schema) + len(right.schema)
    return Join(left, right, (), None, tuple(f"c{place}" for place in range(width)))


def selected(plan: Plan) -> Plan:
    return Filter(plan, resolve(">", (column(plan, 1), literal(0))))


def mapped(plan: Plan) -> Plan:
    """A map that makes some payloads equal and keeps the column that groups."""
    small = resolve("<", (column(plan, 1), literal(1)))
    return Project(plan, (("e", column(plan, 0)), ("v", make_case(((small, literal(0)),), column(plan, 1)))))


def last_of_each(plan: Plan) -> Plan:
    return RowWindow(plan, 2, keys=(column(plan, 0),))


def counted(plan: Plan) -> Plan:
    return Aggregate(plan, (("e", column(plan, 0)),), (("n", resolve_aggregate("COUNT", None)),))


def difference(left: Plan, right: Plan) -> Plan:
    return SetOperation(left, right, SetKind.EXCEPT_ALL)


W1, W2, W3 = map(window, (ONE, TWO, THREE))

RULES: dict[str, tuple[Plan, Plan]] = {
    "10.4, products": (product(product(W1, W2), W3), product(W1, product(W2, W3))),
    "10.5, filter and union": (selected(Union((W1, W2))), Union((selected(W1), selected(W2)))),
    "10.6, duplicates and product": (Distinct(product(W1, W2)), product(Distinct(W1), Distinct(W2))),
    "10.7, now-window": (TimeWindow(ONE, Duration(1)), ONE),
    "10.8, filter and window": (selected(window(ONE)), window(selected(ONE))),
    "10.9, map and window": (mapped(window(ONE)), window(mapped(ONE))),
    "10.10, union and window": (Union((window(ONE), window(TWO))), window(Union((ONE, TWO)))),
    "remark 12.1, now-window of intervals": (TimeWindow(Split(W1), Duration(1)), W1),
}
"""Both sides of each rule, over streams with any rows."""

ROW_RULES: dict[str, tuple[Plan, Plan]] = {
    "10.11, map and count window": (mapped(RowWindow(ONE, 2)), RowWindow(mapped(ONE), 2)),
    "10.12, map and partitioned window": (mapped(last_of_each(ONE)), last_of_each(mapped(ONE))),
}
"""Those over streams with one row at an instant, for which alone the thesis defines these windows."""

REDUCIBLE: dict[str, Callable[[Plan, Plan], Plan]] = {
    "filter": lambda one, two: selected(one),
    "map": lambda one, two: mapped(one),
    "union": lambda one, two: Union((one, two)),
    "product": product,
    "duplicate elimination": lambda one, two: Distinct(one),
    "difference": difference,
    "grouping": lambda one, two: counted(one),
}
"""The operators that are snapshot-reducible, by lemma 10.1."""

payloads = st.tuples(st.sampled_from("ab"), st.integers(-1, 2))


@st.composite
def some_streams(draw: st.DrawFn, one_at_a_time: bool = False) -> dict[str, Stream]:
    streams = {}
    for name in ("S1", "S2", "S3"):
        instants = st.lists(st.integers(0, 7), max_size=5, unique=one_at_a_time)
        rows = [(draw(payloads), at, at + 1, 1) for at in sorted(draw(instants))]
        streams[name] = Stream(SCHEMA.names, rows)
    return streams


cuts = st.integers(1, 3)


@pytest.mark.parametrize("name", RULES)
@examples(17)
@given(some_streams(), cuts)
def test_rules(name: str, streams: dict[str, Stream], cuts: int) -> None:
    equivalent(*RULES[name], streams, cuts)


@pytest.mark.parametrize("name", ROW_RULES)
@examples(17)
@given(some_streams(one_at_a_time=True), cuts)
def test_rules_of_row_windows(name: str, streams: dict[str, Stream], cuts: int) -> None:
    equivalent(*ROW_RULES[name], streams, cuts)


def test_a_count_window_commutes_with_no_filter_and_no_union() -> None:
    # "their semantics depends on the stream size" (section 10.3.2).
    first, second = (("a", 1), 1, 2, 1), (("b", 0), 3, 4, 1)
    streams = {"S1": Stream(SCHEMA.names, [first, second]), "S2": Stream(SCHEMA.names, [(("c", 1), 2, 3, 1)])}
    last = RowWindow(ONE, 1)
    assert evaluate(selected(last), streams) != evaluate(RowWindow(selected(ONE), 1), streams)
    apart, together = Union((last, RowWindow(TWO, 1))), RowWindow(Union((ONE, TWO)), 1)
    assert evaluate(apart, streams) != evaluate(together, streams)


@pytest.mark.parametrize("name", REDUCIBLE)
@examples(17)
@given(some_streams(), st.sampled_from((Split, Coalesce)), cuts)
def test_split_and_coalesce_commute_with_what_is_snapshot_reducible(
    name: str, streams: dict[str, Stream], commuting: Callable[[Plan], Plan], cuts: int
) -> None:
    # Lemma 12.1.
    operator = REDUCIBLE[name]
    equivalent(operator(commuting(W1), commuting(W2)), commuting(operator(W1, W2)), streams, cuts)


@pytest.mark.parametrize("name", REDUCIBLE)
@given(some_streams(), st.sampled_from((2, 3)))
def test_a_coarser_granularity_changes_nothing_at_its_instants(
    name: str, streams: dict[str, Stream], granule: int
) -> None:
    # Lemma 20.1, for the granularity of the time domain and a coarser one.
    operator, size = REDUCIBLE[name], Duration(granule)
    fine = [(row, ts, te, 1) for row, ts, te in evaluate(operator(W1, W2), streams)]
    coarse_plan = operator(Granularity(W1, size), Granularity(W2, size))
    coarse = [(row, ts, te, 1) for row, ts, te in evaluate(coarse_plan, streams)]
    for at in range(0, 12, granule):
        assert content_at(coarse, at) == content_at(fine, at)


# --- example 10.1: the closing price, aggregated below a join ----------------------------------------------

BIDS = Source("bids", Schema((Field("item", BIGINT), Field("price", BIGINT))), "t", TimeDomain.INTEGER)
CLOSED = Source("closed", Schema((Field("item", BIGINT),)), "t", TimeDomain.INTEGER)
OPENED = Source("opened", Schema((Field("item", BIGINT), Field("seller", STRING))), "t", TimeDomain.INTEGER)


def by_item(left: Plan, right: Plan) -> Plan:
    """The join on the first columns."""
    width = len(left.schema) + len(right.schema)
    names = tuple(f"c{place}" for place in range(width))
    return Join(left, right, ((column(left, 0), column(right, 0)),), None, names)


def highest(plan: Plan, *keys: int) -> Plan:
    grouped = tuple((f"k{key}", column(plan, key)) for key in keys)
    return Aggregate(plan, grouped, (("price", resolve_aggregate("MAX", column(plan, 1))),))


@st.composite
def auctions(draw: st.DrawFn) -> dict[str, Stream]:
    """Bids for items, each of which is opened and closed once: an invariant of auctions."""
    bids: list[Element] = [
        ((draw(st.integers(1, 3)), draw(st.integers(1, 5))), at, at + 1, 1)
        for at in draw(st.lists(st.integers(0, 7), max_size=6))
    ]
    opened: list[Element] = []
    closed: list[Element] = []
    for item in (1, 2, 3):
        start, end = draw(st.integers(0, 4)), draw(st.integers(3, 8))
        opened.append(((item, draw(st.sampled_from("xy"))), start, start + 1, 1))
        closed.append(((item,), end, end + 1, 1))
    streams: dict[str, list[Element]] = {"bids": bids, "opened": opened, "closed": closed}
    names = {source.name: source.schema.names for source in (BIDS, OPENED, CLOSED)}
    return {name: Stream(names[name], sorted(rows, key=lambda row: row[1])) for name, rows in streams.items()}


@examples(17)
@given(auctions(), cuts)
def test_the_closing_price_is_grouped_below_the_join(streams: dict[str, Stream], cuts: int) -> None:
    size = Duration(6)
    closing = by_item(TimeWindow(BIDS, size), CLOSED)
    sellers = TimeWindow(OPENED, size)
    above = highest(by_item(closing, sellers), 0, 4)
    joined = by_item(highest(closing, 0), sellers)
    below = Project(joined, tuple((f"c{place}", column(joined, place)) for place in (0, 3, 1)))
    equivalent(above, below, streams, cuts)
