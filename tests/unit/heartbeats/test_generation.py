"""Heartbeats of the paper's systems, of silent streams, and of those that are behind."""

from __future__ import annotations

import numpy as np

from generating import Driven, arrived, rules_of
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, next_due, start
from headrace.heartbeats.groups import GroupedMatrix
from headrace.heartbeats.rules import SilencePolicy, granule_for
from headrace.heartbeats.skew import STRICT, Bound, SkewMatrix, within
from headrace.heartbeats.state import State
from headrace.time import BEGINNING, INFINITY

SECOND = 1_000_000
EVERYBODY = np.ones(3, dtype=bool)


def test_the_closure_gives_a_heartbeat_that_the_bounds_alone_do_not() -> None:
    """Section 3.2, with a row of 10 at time 0: 7 on the third stream at time 1, and 8 at time 2."""
    bounds = {(0, 1): (Bound(1, 1),), (0, 2): (Bound(3, 1),), (1, 2): (Bound(1, 1),)}
    matrix = SkewMatrix((0, 0, 0), bounds)
    for known, third in ((matrix, [BEGINNING, 8, 8]), (matrix.closure(), [BEGINNING, 8, 9])):
        driven = Driven(rules_of(known))
        found = [driven.epoch(now, [(0, 10)] if now == 0 else ()) for now in range(3)]
        assert [heartbeats[2] for heartbeats in found] == third
        assert [heartbeats[1] for heartbeats in found] == [BEGINNING, 10, 10]


def heartbeats_of_duplicates(*bounds: Bound) -> list[int]:
    """Heartbeats as 5, 5, 5 and 6 come, each in an epoch of its own."""
    driven = Driven(rules_of(SkewMatrix((0,), {(0, 0): bounds})))
    return [driven.epoch(now, [(0, instant)])[0] for now, instant in enumerate((5, 5, 5, 6))]


def test_at_most_two_duplicates_of_each_timestamp() -> None:
    """Section 3.1: without either pair some heartbeats are delayed."""
    ordered, duplicates = within(0), Bound(0, rows=2)
    assert heartbeats_of_duplicates(ordered, duplicates) == [5, 5, 6, 6]
    assert heartbeats_of_duplicates(ordered) == [5, 5, 5, 6]
    assert heartbeats_of_duplicates(duplicates) == [BEGINNING, BEGINNING, 6, 6]


def test_k_ordered_arrival() -> None:
    """Section 8: (k, 0); a row is overtaken by at most three rows that should follow it."""
    driven = Driven(rules_of(SkewMatrix((0,), {(0, 0): (Bound(0, rows=3),)})))
    found = [driven.epoch(now, [(0, instant)])[0] for now, instant in enumerate((4, 9, 7, 5, 8, 12))]
    assert found == [BEGINNING, BEGINNING, BEGINNING, 5, 10, 10]


def test_large_numbers_of_rows_are_counted_in_steps() -> None:
    driven = Driven(rules_of(SkewMatrix((0,), {(0, 0): (Bound(0, rows=1000),)})))
    for now in range(1500):
        (heartbeat,) = driven.epoch(now, [(0, now)])
        behind = now - (heartbeat - 1 if heartbeat > BEGINNING else -1)
        assert 1000 <= behind <= 1000 + 31 or heartbeat == BEGINNING
        assert len(driven.state.counting[0][0].counted) <= 34
    assert heartbeat > 450


def paused(matrix: SkewMatrix, timeout: int | None) -> list[int]:
    """Heartbeats long after the first stream sent 105 and the second 100."""
    policies = [SilencePolicy(timeout=timeout)] * 2
    driven = Driven(rules_of(matrix, policies=policies, together=[(0, 1)]))
    driven.epoch(0, [(0, 105), (1, 100)])
    return driven.epoch(1_000)


def test_a_pause_of_all_streams() -> None:
    """Section 3.4: the overall heartbeat stays 5 behind, unless there is a timeout."""
    matrix = SkewMatrix((0, 0), {(0, 0): (STRICT,), (0, 1): (Bound(5),), (1, 1): (STRICT,)})
    assert paused(matrix, None) == [106, 101]
    assert paused(matrix, 1_001) == [106, 101]
    assert paused(matrix, 1_000) == [106, 106]


def test_a_global_counter_passes_the_latest_token_by_itself() -> None:
    """Section 4.1, with sources that take 2 to 9, 3 to 5 and 20 to 30, and latencies 7, 0 and 2."""
    shortest, longest, latencies = (2, 3, 20), (9, 5, 30), (7, 0, 2)
    bounds = {
        (i, j): (STRICT,) if i == j else (Bound(0, max(longest[j] - shortest[i], 0)), Bound(0, rows=1))
        for i in range(3)
        for j in range(3)
    }
    driven = Driven(rules_of(SkewMatrix(latencies, bounds).closure()))
    driven.epoch(0, [(1, 50)])
    assert driven.heartbeats == [BEGINNING, 51, BEGINNING]
    found = {now: driven.epoch(now) for now in range(1, 31)}
    assert found[12] == [BEGINNING, 51, BEGINNING]
    assert found[13] == [51, 51, BEGINNING]
    assert found[28] == [51, 51, BEGINNING]
    assert found[29] == [51, 51, 51]


def test_sensors_with_clocks_that_run_need_no_timeout() -> None:
    """Section 4.2, for deviations of 4 and 2, with and without clocks that run at 1 per unit of time."""
    plain = {(0, 0): (Bound(4),), (0, 1): (Bound(6),), (1, 0): (Bound(6),), (1, 1): (Bound(2),)}
    running = {pair: (*bounds, Bound(0, bounds[0].delta)) for pair, bounds in plain.items()}
    for bounds, later in ((plain, [97, 95]), (running, [101, 101])):
        driven = Driven(rules_of(SkewMatrix((0, 0), bounds)))
        assert driven.epoch(0, [(0, 100)]) == [97, 95]
        assert driven.epoch(10) == later


def test_an_idle_stream_follows_the_slowest_of_those_beside_it() -> None:
    matrix = SkewMatrix((0, 0, 0), {(place, place): (within(0),) for place in range(3)})
    policies = (SilencePolicy(idle_after=10), SilencePolicy(), SilencePolicy())
    driven = Driven(rules_of(matrix, policies=policies, together=[(0, 1), (0, 2)]))
    assert driven.epoch(0, [(0, 5), (1, 20), (2, 30)]) == [5, 20, 30]
    assert driven.epoch(9, [(1, 40)]) == [5, 40, 30]
    assert next_due(driven.rules, driven.state, EVERYBODY[: driven.rules.matrix.size]) == 1
    assert driven.epoch(10) == [30, 40, 30]
    assert driven.epoch(11, [(2, 35)]) == [35, 40, 35]
    # It speaks again: rows at or above its heartbeat are taken, and it follows nobody any more.
    assert driven.epoch(12, [(0, 35), (2, 50)]) == [35, 40, 50]
    assert driven.epoch(21) == [35, 40, 50]
    assert driven.epoch(22) == [40, 40, 50]


def test_streams_that_are_all_idle_pass_what_came_and_do_not_wait_for_the_timeout() -> None:
    matrix = SkewMatrix((0, 0), {(place, place): (within(5),) for place in range(2)})
    policies = (SilencePolicy(10, 30), SilencePolicy(10))
    driven = Driven(rules_of(matrix, policies=policies, together=[(0, 1)]))
    assert driven.epoch(0, [(0, 100), (1, 50)]) == [95, 45]
    assert driven.epoch(9) == [95, 45]
    assert driven.epoch(10) == [101, 101]
    # Without IDLE AFTER of both, only the timeout of the first counts.
    driven = Driven(rules_of(matrix, policies=(policies[0], SilencePolicy()), together=[(0, 1)]))
    assert driven.epoch(0, [(0, 100), (1, 50)]) == [95, 45]
    assert driven.epoch(20) == [95, 45]
    assert driven.epoch(30) == [101, 45]


def test_one_that_follows_others_at_once_does_not_say_that_all_is_there() -> None:
    matrix = SkewMatrix((0, 0), {(place, place): (within(5),) for place in range(2)})
    policies = (SilencePolicy(0), SilencePolicy(10))
    driven = Driven(rules_of(matrix, policies=policies, together=[(0,), (0, 1)]))
    assert driven.epoch(0, [(0, 100)]) == [95, BEGINNING]
    assert driven.epoch(9, [(1, 50)]) == [95, 45]
    assert driven.epoch(19) == [101, 101]


def test_a_stream_that_has_ended_is_followed_by_nobody() -> None:
    matrix = SkewMatrix((0, 0), {(place, place): (within(0),) for place in range(2)})
    driven = Driven(rules_of(matrix, policies=(SilencePolicy(10, 30), SilencePolicy()), together=[(0, 1)]))
    assert driven.epoch(0, [(0, 5), (1, 9)], {1: INFINITY}) == [5, INFINITY]
    assert driven.epoch(9) == [5, INFINITY]
    # The one that is left is idle, so that all that came is all there is.
    assert driven.epoch(10) == [10, INFINITY]
    driven = Driven(rules_of(matrix, policies=(SilencePolicy(None, 30), SilencePolicy()), together=[(0, 1)]))
    driven.epoch(0, [(0, 5), (1, 9)])
    driven.epoch(7, (), {1: INFINITY})
    assert next_due(driven.rules, driven.state, EVERYBODY[: driven.rules.matrix.size]) == 23


def test_heartbeats_that_a_source_sends() -> None:
    """One counts as a sign of life, and where closure is wanted as a row of the timestamp before it."""
    matrix = SkewMatrix((0, 0), {(0, 1): (Bound(3),)})
    for follows_on, other in ((True, 17), (False, BEGINNING)):
        driven = Driven(rules_of(matrix, follows_on=follows_on))
        assert driven.epoch(0, (), {0: 20}) == [20, other]
        assert driven.epoch(1, (), {0: 10}) == [20, other]
    driven = Driven(rules_of(matrix, policies=(SilencePolicy(10), SilencePolicy()), together=[(0, 1)]))
    driven.epoch(0, [(1, 90)], {0: 1, 1: 90})
    driven.epoch(9, (), {0: 1})
    assert driven.epoch(18) == [1, 90]
    assert driven.epoch(19) == [90, 90]


def test_counted_rows_promise_things_of_other_streams_too() -> None:
    """The path begins with counted rows, so that no bound says it: it is found as they come."""
    matrix = SkewMatrix((0, 0, 0), {(0, 1): (Bound(1, rows=2),), (1, 2): (Bound(1, 4),)})
    driven = Driven(rules_of(matrix.closure()))
    driven.epoch(0, [(0, 10)])
    driven.epoch(1, [(1, 3)])
    assert driven.epoch(2, [(1, 3)]) == [BEGINNING, 10, BEGINNING]
    assert driven.epoch(5)[2] == 3
    assert driven.epoch(6)[2] == 9


def test_rows_on_their_way_are_waited_for_before_and_after_counting() -> None:
    matrix = SkewMatrix((0, 3), {(0, 1): (Bound(0, rows=1),)})
    driven = Driven(rules_of(matrix))
    driven.epoch(0, [(0, 10)])
    # A row that comes by time 3 may have been sent before the other stream's.
    assert driven.epoch(3, [(1, 5)])[1] == BEGINNING
    driven.epoch(4, [(1, 12)])
    assert driven.epoch(6)[1] == BEGINNING
    assert driven.epoch(7)[1] == 11


def test_an_epoch_that_is_repeated_gives_the_same() -> None:
    matrix = SkewMatrix((5, 7), {(0, 1): (Bound(2, 3), Bound(0, rows=2)), (1, 1): (within(2),)})
    rules = rules_of(matrix, policies=(SilencePolicy(3, 9), SilencePolicy()), together=[(0, 1)])
    before = Driven(rules)
    before.epoch(0, [(0, 3), (1, 4)])
    written = before.state.streams(1)
    rows, clocks = arrived([(0, 9), (1, 8)]), DrainedClocks.running((4, 4))
    after = generate(rules, before.state, rows, clocks, {1: 2})
    assert before.state.streams(1) == written
    again = generate(rules, before.state, rows, clocks, {1: 2})
    assert again.streams(1) == after.streams(1)


def test_promises_made_for_other_rules_are_kept() -> None:
    matrix = SkewMatrix((0,), {(0, 0): (Bound(0, 10),)})
    driven = Driven(rules_of(matrix))
    driven.epoch(0, [(0, 7)])
    coarse = rules_of(SkewMatrix((0,)), granule=4)
    state = State.of(driven.state.streams(1), coarse.granule, coarse.width)
    assert generate(coarse, state, {}, DrainedClocks.running([11]), {}).heartbeats.tolist() == [BEGINNING]
    assert generate(coarse, state, {}, DrainedClocks.running([12]), {}).heartbeats.tolist() == [8]


def test_when_clocks_are_needed() -> None:
    own: dict[tuple[int, int], tuple[Bound, ...]] = {(0, 0): (within(3), Bound(0, rows=2))}
    assert not rules_of(SkewMatrix((0, 0), own)).needs_clocks
    assert rules_of(SkewMatrix((0, 0), own | {(0, 1): (Bound(3),)})).needs_clocks
    assert rules_of(SkewMatrix((1, 0), own)).needs_clocks
    assert rules_of(SkewMatrix((0,), own), policies=(SilencePolicy(timeout=1),)).needs_clocks


def test_the_granule_bounds_what_is_kept() -> None:
    matrix = SkewMatrix((SECOND, 5 * SECOND), {(0, 1): (Bound(1, 60 * SECOND),)})
    rules = rules_of(matrix, granule_for(GroupedMatrix.single(matrix)))
    assert rules.width <= 66
    assert start(rules).pending.shape == (2, rules.width)


class Watched:
    """A stream whose heartbeat another one makes after 10 seconds, and the clocks that the driver reads."""

    def __init__(self) -> None:
        matrix = SkewMatrix((0, 0), {(0, 1): (Bound(0, 10 * SECOND),)})
        policies = (SilencePolicy(), SilencePolicy(idle_after=20 * SECOND))
        self.rules = rules_of(matrix, granule=SECOND, policies=policies, together=[(0, 1)])
        self.state = start(self.rules)
        self.clocks = DrainedClocks.stopped((0, 0))

    def at(self, second: float, rows: tuple[tuple[int, int], ...] = (), caught_up: bool = True) -> int:
        """The second stream's heartbeat after an epoch at some second of the wall clock."""
        self.clocks = self.clocks.look(int(second * SECOND), (True, caught_up), longest=SECOND)
        self.state = generate(self.rules, self.state, arrived(rows), self.clocks, {})
        return int(self.state.heartbeats[1])


def test_time_counts_second_by_second() -> None:
    watched = Watched()
    watched.at(100, ((0, 7),))
    assert [watched.at(100 + second) for second in range(1, 11)] == [BEGINNING] * 9 + [8]


def test_rows_that_wait_are_not_judged_by_those_of_others() -> None:
    """A bound without a wait holds at once, and for a stream with a backlog when that has been taken."""
    bounds = {(0, 1): (Bound(2), Bound(0, rows=1)), (1, 1): (within(3),)}
    rules = rules_of(
        SkewMatrix((0, 0), bounds), policies=(SilencePolicy(), SilencePolicy(5, 5)), together=[(0, 1)]
    )
    state, clocks = start(rules), DrainedClocks.stopped((0, 0))
    found = []
    for now, rows, caught_up in (
        (0, [(0, 100)], False),
        (9, [(1, 20)], False),
        (10, [(1, 30)], True),
        (11, [], True),
        (12, [(1, 120)], True),
    ):
        clocks = clocks.look(now, (True, caught_up), longest=10)
        state = generate(rules, state, arrived(rows), clocks, {})
        found.append(int(state.heartbeats[1]))
    assert found == [BEGINNING, 17, 27, 99, 117]


def test_the_clock_moves_a_stream_once_its_backlog_is_taken() -> None:
    matrix = SkewMatrix((0, 0), {(place, place): (within(0),) for place in range(2)})
    rules = rules_of(matrix, policies=(SilencePolicy(behind=5), SilencePolicy()), together=[(0, 1)])
    state, clocks, found = start(rules), DrainedClocks.stopped((0, 0)), []
    for now, rows, caught_up, promises in (
        (1_000, [(0, 20)], False, {}),
        (1_010, [(0, 30)], True, {}),
        (1_011, [(0, 1_009)], True, {}),
        (900, [], True, {}),
        (1_020, [], True, {0: INFINITY}),
    ):
        clocks = clocks.look(now, (caught_up, True), longest=10)
        state = generate(rules, state, arrived(rows), clocks, promises)
        found.append(state.heartbeats.tolist())
    assert found == [
        [20, BEGINNING],
        [1_005, BEGINNING],
        [1_009, BEGINNING],
        [1_009, BEGINNING],
        [INFINITY, BEGINNING],
    ]


def test_an_hour_without_the_system_does_not_count() -> None:
    """It starts again with a full queue: the stream's time goes on when the queue has been emptied."""
    watched = Watched()
    watched.at(100, ((0, 7),))
    watched.at(101)
    watched.clocks = DrainedClocks.stopped(watched.clocks.counted)
    assert watched.at(3_700, ((1, 1),), caught_up=False) == BEGINNING
    assert [watched.at(3_701 + second, ((1, 2),), caught_up=False) for second in range(30)] == [
        BEGINNING
    ] * 30
    assert watched.at(3_731) == BEGINNING
    assert [watched.at(3_731 + second) for second in range(1, 10)] == [BEGINNING] * 8 + [8]


def test_an_epoch_of_ten_times_idle_makes_nobody_idle() -> None:
    watched = Watched()
    watched.at(100, ((0, 7), (1, 2)))
    assert watched.at(300, ((0, 200),)) == BEGINNING
    assert watched.state.clocks.tolist() == [SECOND, SECOND]
    assert watched.at(301, ((1, 3),)) == BEGINNING


def test_a_clock_that_is_set_forward_or_back_counts_a_second_at_most() -> None:
    watched = Watched()
    watched.at(100, ((0, 7),))
    assert watched.at(9_000) == BEGINNING
    assert watched.at(50) == BEGINNING
    assert watched.state.clocks.tolist() == [SECOND, SECOND]
    assert [watched.at(50 + second) for second in range(1, 10)] == [BEGINNING] * 8 + [8]
