"""Heartbeats over wall-clock time: when each moves, and what moved it."""

from __future__ import annotations

from random import Random

from headrace.heartbeats.groups import GroupedMatrix
from headrace.heartbeats.rules import Rules, SilencePolicy, granule_for
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.heartbeats.timeline import DUE, OWN, TIMEOUT, Arrival, timeline
from headrace.heartbeats.timing import Timing
from headrace.workloads.simulated import Behaviour, Sources

SECOND = 1_000_000


def rules_for(matrix: SkewMatrix, *policies: SilencePolicy) -> Rules:
    found = GroupedMatrix.single(matrix)
    everybody = (tuple(range(matrix.size)),)
    return Rules(found, policies or (SilencePolicy(),) * matrix.size, granule_for(found), together=everybody)


def test_rows_waits_idle_streams_and_timeouts_move_heartbeats() -> None:
    """Two streams in order; `b` is at `a`'s instant after 3 seconds and idle after 10; `a` has a timeout."""
    matrix = SkewMatrix((0, 0), {(0, 0): (Bound(1),), (1, 1): (Bound(1),), (0, 1): (Bound(1, 3 * SECOND),)})
    rules = rules_for(matrix, SilencePolicy(None, 60 * SECOND), SilencePolicy(10 * SECOND))
    arrivals = [
        Arrival(0, 0, 50),
        Arrival(SECOND, 1, 40),
        Arrival(2 * SECOND, 1, 39),
        Arrival(8 * SECOND, 0, 70),
    ]
    # b, which had its last row after 2 seconds, is idle at 12, when a's row has moved it already at 11.
    found = timeline(rules, {"a": Timing(), "b": Timing()}, arrivals)
    assert [row.is_late for row in found.rows] == [False, False, True, False]
    moves = [
        (move.clock // SECOND, "ab"[move.stream], move.heartbeat, move.cause)
        for move in found.moves
        if move.clock <= 11 * SECOND + SECOND // 10
    ]
    assert moves == [(0, "a", 50, OWN), (1, "b", 40, OWN), (3, "b", 50, DUE), (8, "a", 70, OWN),
                     (11, "b", 70, DUE)]  # fmt: skip
    later = [
        (move.clock // SECOND, "ab"[move.stream], move.heartbeat, move.cause) for move in found.moves[5:]
    ]
    assert later == [(68, "a", 71, TIMEOUT), (68, "b", 71, TIMEOUT)]


def test_a_row_of_another_stream_is_named() -> None:
    matrix = SkewMatrix((0, 0), {(0, 1): (Bound(4),)})
    found = timeline(rules_for(matrix), {"a": Timing(), "b": Timing(disorder=None)}, [Arrival(7, 0, 20)])
    assert [(move.stream, move.heartbeat, move.cause) for move in found.moves] == [(1, 17, "a row of a")]


def test_simulated_sources_are_never_late_and_heartbeats_never_fall() -> None:
    bounds = {
        (0, 0): (Bound(3),),
        (1, 1): (Bound(1, rows=2),),
        (0, 1): (Bound(2, 4),),
        (1, 0): (Bound(6),),
    }
    matrix = SkewMatrix((0, 3), bounds).closure()
    timings = {"a": Timing(disorder=2), "b": Timing(disorder=None, rows=2, latency=3)}
    moved = 0
    for seed in range(20):
        sent = Sources(matrix, Behaviour(), Random(seed)).run(40)
        arrivals = [Arrival(row.arrives, row.stream, row.instant) for row in sent]
        # Rows that arrive at one moment are judged by the heartbeats before it, a's among themselves too.
        found = timeline(rules_for(matrix), timings, arrivals)
        assert not any(row.is_late for row in found.rows)
        for stream in range(2):
            heartbeats = [move.heartbeat for move in found.moves if move.stream == stream]
            assert heartbeats == sorted(set(heartbeats))
        moved += len(found.moves)
    assert moved > 200
