"""The elements that coalescing emits: that their content is the input's is a property of all operators."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Coalesce, Source
from headrace.elements import from_rows, to_rows
from headrace.operators.contract import OperatorProgress
from headrace.operators.presence import CoalesceOperator
from headrace.operators.state.runs import SortedRun
from headrace.reference.contents import Element
from headrace.schema import STRING, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain

SCHEMA = Schema((Field("x", STRING),))


def coalesced(*epochs: tuple[list[Element], int], schema: Schema = SCHEMA) -> list[Element]:
    """What is emitted in epochs of elements and heartbeats, in order of time, payload and sign."""
    plan = Coalesce(Source("s", schema, "t", TimeDomain.INTEGER))
    before = BEGINNING
    found: list[Element] = []
    state: dict[str, list[SortedRun]] = {}
    for elements, heartbeat in epochs:
        operator = CoalesceOperator(plan)
        for name, runs in state.items():
            operator.areas[name].runs = runs
        operator.process(0, from_rows(schema, elements))
        found += to_rows(operator.advance(OperatorProgress((before,), (heartbeat,))))
        state, before = {name: area.runs for name, area in operator.areas.items()}, heartbeat
    return sorted(found, key=lambda element: (element[1], element[0], element[2]))


def element(payload: str, ts: int, te: int, w: int = 1) -> Element:
    return (payload,), ts, te, w


TABLE = [("b", 1, 7), ("d", 3, 9), ("a", 4, 5), ("b", 7, 15), ("e", 10, 18)]


def test_the_example_of_the_thesis() -> None:
    """Table 11.15, whatever the order of arrival."""
    expected = [element("b", 1, 15), element("d", 3, 9), element("a", 4, 5), element("e", 10, 18)]
    arrived = [element(*row) for row in TABLE]
    assert coalesced((arrived, 20)) == expected
    assert coalesced((arrived[::-1], INFINITY)) == expected


def test_what_goes_on_after_a_heartbeat_is_continued() -> None:
    """Nothing waits for what may continue it, so that a row that is continued late is two elements."""
    early, late = [element("b", 1, 7)], [element("b", 7, 15)]
    assert coalesced((early, 5), (late, 20)) == [element("b", 1, 7), element("b", 7, 15)]
    assert coalesced((early + late, 5), ([], 20)) == [element("b", 1, 7), element("b", 7, 15)]


def test_only_a_change_of_the_multiplicity_ends_an_element() -> None:
    twice = [element("b", 1, 5), element("b", 3, 9), element("b", 5, 7), element("b", 7, 12)]
    assert coalesced((twice, 20)) == [element("b", 1, 3), element("b", 3, 9, 2), element("b", 9, 12)]


def test_rows_without_columns() -> None:
    """As a condition on a count of all rows leaves them."""
    rows: list[Element] = [((), 1, 4, 1), ((), 4, 6, 1), ((), 9, 11, 1)]
    assert coalesced((rows, 20), schema=Schema(())) == [((), 1, 6, 1), ((), 9, 11, 1)]


spans = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 6), st.integers(1, 2))


@given(st.lists(spans, max_size=12))
def test_no_element_ends_where_its_row_goes_on(made: list[tuple[str, int, int, int]]) -> None:
    elements = [element(name, ts, ts + length, w) for name, ts, length, w in made]
    found = defaultdict(list)
    for payload, ts, te, w in coalesced((elements, INFINITY)):
        assert ts < te
        assert w > 0
        found[payload].append((ts, te, w))
    for parts in found.values():
        for (_, end, count), (start, _, then) in pairwise(parts):
            assert end < start or (end == start and count != then)
