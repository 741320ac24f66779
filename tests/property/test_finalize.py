"""CEDR's Finalize and what corrections add up to have one history, once all chains are whole."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.elements import from_rows, to_rows
from headrace.history import canonical
from headrace.reference.contents import Element
from headrace.reference.events import Cti, Event, Insert, Retraction, table_of
from headrace.reference.finalize import FinalizeDefinition, ReferenceCti
from headrace.schema import BIGINT, STRING, Field, Schema

SCHEMA = Schema((Field("vs", BIGINT), Field("p", STRING)))
P0, P1 = ("P0",), ("P1",)


def run(events: list[Insert | Retraction | ReferenceCti]) -> list[list[Event]]:
    """What Finalize yields after each event."""
    operator = FinalizeDefinition()
    return [operator.process(event) for event in events]


TABLE_5: list[Insert | Retraction | ReferenceCti] = [
    Retraction(0, 10, 8, P0),
    Retraction(0, 6, 4, P0),
    Retraction(0, 8, 6, P0),
    Insert(0, 10, P0),
]


def test_the_worked_example() -> None:
    found = run([*TABLE_5, ReferenceCti(0, 9, 5), Insert(1, 5, P1)])
    assert found == [[], [], [], [Insert(0, 4, P0)], [], [Insert(1, 5, P1), Cti(9)]]


def test_the_printed_count_is_one_too_many() -> None:
    found = run([*TABLE_5, ReferenceCti(0, 8, 5), Insert(1, 5, P1)])
    assert found[4:] == [[], [Insert(1, 5, P1)]]
    assert run([*TABLE_5, ReferenceCti(0, 8, 4), Insert(1, 5, P1)])[5] == [Insert(1, 5, P1), Cti(8)]


@st.composite
def chains(draw: st.DrawFn) -> list[Insert | Retraction]:
    """Whole chains of a few tuples, no two alike at any time, in any order."""
    events: list[Insert | Retraction] = []
    for start, name in draw(st.sets(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=4)):
        ends = sorted(draw(st.sets(st.integers(start, start + 6), min_size=1, max_size=4)), reverse=True)
        first = ends[0] + 1
        events.append(Insert(start, first, (name,)))
        events += [
            Retraction(start, old, new, (name,)) for old, new in zip([first, *ends], ends, strict=False)
        ]
    return draw(st.permutations(events))


def element(event: Insert | Retraction) -> Element:
    """What is read of a row of a physical stream."""
    payload = (event.start, *event.payload)
    if isinstance(event, Insert):
        return payload, event.start, event.end, 1
    return payload, event.new_end, event.end, -1


@settings(max_examples=100)
@given(chains())
def test_whole_chains_in_any_order(events: list[Insert | Retraction]) -> None:
    table = table_of([one for output in run([*events]) for one in output])
    expected = [((start, *payload), start, end, 1) for (start, end, payload) in table.elements()]
    added = canonical(from_rows(SCHEMA, map(element, events)))
    assert to_rows(added) == to_rows(canonical(from_rows(SCHEMA, expected)))
