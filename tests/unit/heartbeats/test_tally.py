"""External CTIs against CEDR's Finalize as printed, and what they promise in whatever order they come."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.tally import ExternalCti, Tally, is_cut
from headrace.reference import finalize
from headrace.reference.events import Cti, Insert
from headrace.time import BEGINNING

Sent = int | ExternalCti
"""A row by its instant, or an external CTI."""


def heartbeats(sent: list[Sent]) -> list[int]:
    """After each of them, one at a time."""
    tally, heartbeat, found = Tally(), BEGINNING, []
    for one in sent:
        times = np.array([one] if isinstance(one, int) else [], dtype=np.int64)
        promises = [one] if isinstance(one, ExternalCti) else []
        assert not (times < heartbeat).any(), "a row is late that the counts have not counted"
        heartbeat, tally = tally.after(times, promises, heartbeat)
        tally = Tally.from_json(tally.to_json())
        found.append(heartbeat)
    return found


def printed(sent: list[Sent]) -> list[int]:
    """The last CTI of Finalize after each of them."""
    operator, found = finalize.FinalizeDefinition(), []
    for number, one in enumerate(sent):
        event: Insert | finalize.ReferenceCti
        if isinstance(one, int):
            event = Insert(one, one + 1, (number,))
        else:
            event = finalize.ReferenceCti(one.start, one.end, one.count)
        assert all(isinstance(issued, Cti | Insert) for issued in operator.process(event))
        found.append(operator.last)
    return found


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], list[ExternalCti]]:
    """Rows in any order, and adjoining intervals that count them."""
    rows = draw(st.lists(st.integers(0, 30), max_size=12))
    borders = sorted({BEGINNING, 31, *draw(st.lists(st.integers(1, 30), max_size=4))})
    counts = [
        ExternalCti(start, end, sum(start <= at < end for at in rows)) for start, end in pairwise(borders)
    ]
    return rows, counts


@given(streams(), st.data())
def test_in_order_of_their_intervals_they_promise_what_finalize_does(
    made: tuple[list[int], list[ExternalCti]], data: st.DataObject
) -> None:
    rows, counts = made
    among = st.lists(st.integers(0, len(rows)), min_size=len(counts), max_size=len(counts))
    places = sorted(data.draw(among))
    sent: list[Sent] = list(rows)
    for place, one in reversed(list(zip(places, counts, strict=True))):
        sent.insert(place, one)
    assert heartbeats(sent) == printed(sent)


@given(streams(), st.data())
def test_in_any_order_no_row_is_late_and_in_the_end_all_is_final(
    made: tuple[list[int], list[ExternalCti]], data: st.DataObject
) -> None:
    rows, counts = made
    mixed: list[Sent] = [*rows, *counts]
    sent = data.draw(st.permutations(mixed))
    assert heartbeats(sent)[-1] == 31


def test_what_is_promised_otherwise_passes_intervals() -> None:
    waiting = ExternalCti(10, 20, 3)
    heartbeat, tally = Tally().after(np.array([12, 25]), [waiting], BEGINNING)
    assert (heartbeat, tally.waiting) == (BEGINNING, (waiting,))
    heartbeat, tally = tally.after(np.array([15], dtype=np.int64), [], 14)
    assert heartbeat == 14
    assert tally.received == ((12, 1), (15, 1), (25, 1)), "what an interval counts is known to its end"
    heartbeat, tally = tally.after(np.array([16], dtype=np.int64), [], 14)
    assert (heartbeat, tally) == (20, Tally((), ((25, 1),)))
    assert Tally((waiting,)).after(np.array([], dtype=np.int64), [], 30) == (30, Tally())


@pytest.mark.parametrize(
    ("start", "end", "cut"), [(5, 15, True), (10, 15, False), (5, 10, False), (BEGINNING, 15, False)]
)
def test_an_interval_of_which_a_part_is_final_is_known(start: int, end: int, cut: bool) -> None:
    assert is_cut(ExternalCti(start, end, 1), 10) is cut
