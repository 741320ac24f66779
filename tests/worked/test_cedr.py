"""The tables of the two papers on CEDR: bitemporal streams, a join, and what Finalize reads."""

from __future__ import annotations

from collections import Counter

import pytest

from driving import Arriving, drive, standing_for
from headrace.algebra.nodes import Aggregate, Join, Source
from headrace.elements import from_rows, to_rows
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.tree import Column
from headrace.history import canonical
from headrace.reference.contents import Element
from headrace.reference.events import Cti, Event, Insert, Retraction, is_ordered, is_valid, sync, table_of
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import INFINITY, TimeDomain

P = Schema((Field("P", STRING),))

# Goldstein and Hong, table 1, and table 2 of the other paper, which leaves the CTIs out.
STREAM: list[Event] = [
    Insert(1, INFINITY, ("P1",)),
    Cti(1),
    Retraction(1, INFINITY, 10, ("P1",)),
    Retraction(1, 10, 5, ("P1",)),
    Insert(4, 9, ("P2",)),
    Cti(10),
]
HISTORY = {(1, 5, ("P1",)): 1, (4, 9, ("P2",)): 1}
"""Table 2 of Goldstein and Hong."""


def elements(events: list[Event]) -> list[Element]:
    """Events as signed elements."""
    found: list[Element] = []
    for event in events:
        match event:
            case Insert(start=start, end=end, payload=payload):
                found.append((payload, start, end, 1))
            case Retraction(end=end, new_end=new_end, payload=payload):
                found.append((payload, new_end, end, -1))
            case Cti():
                pass
    return found


def history(rows: list[Element], schema: Schema = P) -> list[tuple[int, int, tuple[object, ...]]]:
    """The canonical history of elements, as rows of a history table."""
    return [(ts, te, row) for row, ts, te, _ in to_rows(canonical(from_rows(schema, rows)))]


def test_the_history_table_of_a_bitemporal_stream() -> None:
    assert table_of(STREAM) == HISTORY
    assert history(elements(STREAM)) == sorted(HISTORY)


@pytest.mark.parametrize("closed", [STREAM[:5], STREAM])
def test_the_printed_stream_is_valid_but_for_its_last_cti(closed: list[Event]) -> None:
    # It is out of order (10, 5, then 4), and CTI 10 is true: nothing after it begins or ends earlier.
    assert is_valid(closed)
    assert not is_ordered(closed)
    assert not is_valid([*STREAM, Insert(9, 12, ("P3",))])


def test_the_history_table_by_identifiers() -> None:
    # Table 1 of the other paper: rows by event and CEDR time, of which the last of an event counts.
    rows = [("E0", 1, INFINITY, "P1"), ("E0", 1, 10, "P1"), ("E0", 1, 5, "P1"), ("E1", 4, 9, "P2")]
    last = {name: (start, end, (payload,)) for name, start, end, payload in rows}
    assert Counter(last.values()) == table_of(STREAM)


# Tables 1 to 4 of section 4.3. Table 2 prints A0 as [0, 1), but nothing retracts the [0, 2) of table 1; it
# meets nothing either way.
JOIN: list[tuple[str, Event]] = [
    ("S1", Insert(0, 2, ("A0",))),
    ("S1", Cti(1)),
    ("S1", Insert(2, 6, ("A1",))),
    ("S2", Insert(3, 5, ("A1",))),
    ("S2", Cti(3)),
    ("S1", Retraction(2, 6, 4, ("A1",))),
]
LEFT, RIGHT = (Source(name, P, "t", TimeDomain.INTEGER) for name in ("S1", "S2"))
EQUAL = Join(LEFT, RIGHT, ((Column(0, "P", STRING), Column(0, "P", STRING)),), None, ("P", "Q"))


def test_the_join_of_physical_streams() -> None:
    assert table_of(event for name, event in JOIN if name == "S1") == {(0, 2, ("A0",)): 1, (2, 4, ("A1",)): 1}
    assert table_of(event for name, event in JOIN if name == "S2") == {(3, 5, ("A1",)): 1}
    promised = {"S1": 0, "S2": 0}
    epochs = []
    for name, event in JOIN:
        if isinstance(event, Cti):
            promised[name] = event.at
        epochs.append(Arriving({"S1": [], "S2": [], name: elements([event])}, dict(promised)))
    stand_ins = {side.name: standing_for(side, chronons=False, insert_only=False) for side in (LEFT, RIGHT)}
    steps = [(to_rows(emitted), heartbeat) for emitted, heartbeat in drive(EQUAL, stand_ins, epochs)]
    pair = ("A1", "A1")
    # Table 4: an insertion, CTI 1, a retraction.
    assert [row for rows, _ in steps for row in rows] == [(pair, 3, 5, 1), (pair, 4, 5, -1)]
    assert [heartbeat for _, heartbeat in steps] == [0, 0, 0, 0, 1, 1]
    # Table 3.
    both = Schema((Field("P", STRING), Field("Q", STRING)))
    assert history([row for rows, _ in steps for row in rows], both) == [(3, 4, pair)]


# Table 5 without its external CTI, which counts 5 events with sync times in [0, 8).
BROKEN: list[Event] = [
    Retraction(0, 10, 8, ("P0",)),
    Retraction(0, 6, 4, ("P0",)),
    Retraction(0, 8, 6, ("P0",)),
    Insert(0, 10, ("P0",)),
    Insert(1, 5, ("P1",)),
]


def test_a_broken_chain_adds_up_whatever_its_order() -> None:
    assert not is_valid(BROKEN)
    assert history(elements(BROKEN)) == [(0, 4, ("P0",)), (1, 5, ("P1",))]
    # The text counts four of them in [0, 8) when the CTI comes, and five in the end; but the first has sync
    # time 8.
    assert sum(0 <= sync(event) < 8 for event in BROKEN) == 4
    assert sum(0 <= sync(event) < 9 for event in BROKEN) == 5


def test_the_sum_begins_with_the_first_row() -> None:
    # Definition 5 begins sums at 0, where nothing has a value yet; here no rows make no row.
    source = Source("S", Schema((Field("A", BIGINT),)), "t", TimeDomain.INTEGER)
    total = Aggregate(source, (), (("total", resolve_aggregate("SUM", Column(0, "A", BIGINT))),))
    rows: list[Element] = [((2,), 3, 9, 1), ((5,), 4, 6, 1)]
    ((emitted, _),) = drive(
        total,
        {"S": standing_for(source, chronons=False, insert_only=False)},
        [Arriving({"S": rows}, {"S": INFINITY})],
    )
    assert history(to_rows(emitted), total.schema) == [(3, 4, (2,)), (4, 6, (7,)), (6, 9, (2,))]
