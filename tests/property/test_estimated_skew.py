"""How far streams are behind others, estimated: against figure 4, row by row."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from generating import arrived
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import Estimate
from headrace.heartbeats.estimated_skew import after_epoch, follow_others, skews_in_force
from headrace.heartbeats.estimation import Adaptivity, EstimationState
from headrace.heartbeats.skew import within
from headrace.heartbeats.state import StreamState
from headrace.heartbeats.timing import Follow, Timing
from headrace.reference.estimation import estimated
from headrace.time import BEGINNING

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(-20, 20)), min_size=1, max_size=40)


def delta(found: Estimate | None) -> float | None:
    """The estimate as figure 4 has it; None if nothing could be compared."""
    if found is None:
        return None
    assert isinstance(found.known, EstimationState)
    return float(found.known.estimates.delta[0, 0]) if found.known.estimates.rows[0, 0] else None


@given(ROWS, st.integers(1, 10), st.sampled_from((0.0, 0.5, 1.0)))
def test_one_row_per_epoch_is_figure_4(rows: list[tuple[int, int]], window: int, alpha: float) -> None:
    rule, found, newest = Adaptivity(window, alpha=alpha), None, BEGINNING
    for stream, instant in rows:
        seen = arrived([(stream, instant)])
        newest = max(newest, instant) if stream == 0 else newest
        found = follow_others(rule, found, newest, seen.get(1, Arrivals()), 0)
        # What is remembered between two epochs goes through a commit record.
        found = found and Estimate.from_json(json.loads(json.dumps(found.to_json())))
    timed = [(at, *row) for at, row in enumerate(rows)]
    assert delta(found) == estimated(timed, 0, 1, 0, window, alpha)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-20, 20)), min_size=1, max_size=40),
    st.integers(1, 6),
    st.integers(1, 10),
    st.sampled_from((0.0, 0.5, 1.0)),
)
def test_a_bound_that_holds_after_a_wait_is_figure_4_too(
    rows: list[tuple[int, int, int]], wait: int, window: int, alpha: float
) -> None:
    rule, found, newest = Adaptivity(window, alpha=alpha, wait=wait), None, BEGINNING
    timed, counted = [], 0
    for passed, stream, instant in rows:
        counted += passed
        newest = max(newest, instant) if stream == 0 else newest
        arrivals = arrived([(stream, instant)]).get(1, Arrivals())
        found = follow_others(rule, found, newest, arrivals, 0, counted)
        found = found and Estimate.from_json(json.loads(json.dumps(found.to_json())))
        # What holds is concluded just before the row comes, as by an epoch without rows.
        timed += [(counted, 2, 0), (counted, stream, instant)]
    # Nothing is compared before the first row of the other stream, not even the time.
    begins = next((place for place, (_, stream, _) in enumerate(timed) if stream == 0), len(timed))
    assert delta(found) == estimated(timed[begins:], 0, 1, wait, window, alpha)


@given(st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30)), max_size=6), max_size=12))
def test_no_row_that_was_compared_is_beyond_an_estimate_that_never_falls(
    epochs: list[list[tuple[int, int]]],
) -> None:
    found, newest, most = None, BEGINNING, 0
    for rows in epochs:
        behind = [newest - instant + 1 for stream, instant in rows if stream == 1 and newest > BEGINNING]
        most = max([most, *behind])
        newest = max([newest, *(instant for stream, instant in rows if stream == 0)])
        found = follow_others(Adaptivity(1, alpha=1.0), found, newest, arrived(rows).get(1, Arrivals()), 0)
    assert (delta(found) or 0) == most


def many(behind: int, newest: int) -> Arrivals:
    """Enough rows to learn from, one of which is so far behind."""
    return arrived([(0, newest - behind), *[(0, newest)] * 200])[0]


RULE = Adaptivity(1000)
GROUP = Follow(("a", "b", "c"), (), RULE, ("a", "b", "c"))
TIMES = {"a": StreamState(latest=100), "b": StreamState(latest=90), "c": StreamState(latest=80)}
TIMINGS = dict.fromkeys("abc", Timing(follows=(GROUP,)))


def test_streams_of_a_group_share_the_weakest_bound() -> None:
    running = dict.fromkeys("abc", True)
    known: dict[str, dict[str, Estimate]] = {"a": {}, "b": {}, "c": {}}
    known |= after_epoch(TIMINGS, known, {}, TIMES, running, 1)
    known |= after_epoch(TIMINGS, known, {"b": many(15, 100), "c": many(5, 100)}, TIMES, running, 2)
    assert {name: one[GROUP.key].disorder for name, one in known.items()} == {"a": None, "b": 15, "c": 5}
    assert [change.at for change in known["b"][GROUP.key].changes] == [2]
    force = skews_in_force(TIMINGS, known)
    assert {name: timing.follows[0].bounds for name, timing in force.items()} == {
        "a": (),
        "b": (within(15),),
        "c": (within(15),),
    }
    # The newest row of the others is not its own: a is compared with b's.
    known |= after_epoch(TIMINGS, known, {"a": many(0, 88)}, TIMES, running, 3)
    assert known["a"][GROUP.key].disorder == 2


def test_bounds_that_hold_later_are_in_force_where_they_are_smaller() -> None:
    follow = Follow(("a",), (), Adaptivity(1000, wait=400), ("b",))
    timings = {"a": Timing(), "b": Timing(follows=(follow,))}
    known: dict[str, dict[str, Estimate]] = {"a": {}, "b": {}}
    running = dict.fromkeys("ab", True)
    for clock, newest in ((0, 10), (100, 20), (200, 30), (300, 40), (400, 50)):
        times = {"a": StreamState(latest=newest, clock=clock), "b": StreamState(clock=clock)}
        known |= after_epoch(timings, known, {}, times, running, clock)
    known |= after_epoch(timings, known, {"b": many(0, 25)}, times, running, 401)
    assert follow.waits == (0, 100, 200, 300, 400)
    found = [known["b"][follow.key_after(wait)].disorder for wait in follow.waits]
    assert found == [25, 15, 5, 0, 0], "50, 40, 30 and 20 had come at 400, 300, 200 and 100, and 10 at 0"
    force = skews_in_force(timings, known)["b"].follows[0].bounds
    assert [(one.wait, one.delta - 1) for one in sorted(force, key=lambda one: one.wait)] == [
        (0, 25),
        (100, 15),
        (200, 5),
        (300, 0),
    ]


def test_rows_that_waited_are_compared_with_what_was_known_before_they_did() -> None:
    known: dict[str, dict[str, Estimate]] = {"a": {}, "b": {}, "c": {}}
    behind = {"a": True, "b": False, "c": True}
    known |= after_epoch(TIMINGS, known, {}, TIMES, behind, 1)
    known |= after_epoch(TIMINGS, known, {"b": many(60, 100)}, TIMES, behind, 2)
    assert known["b"][GROUP.key].disorder is None
    known |= after_epoch(TIMINGS, known, {}, TIMES, dict.fromkeys("abc", True), 3)
    known |= after_epoch(TIMINGS, known, {"b": many(7, 100)}, TIMES, behind, 4)
    assert known["b"][GROUP.key].disorder == 7
