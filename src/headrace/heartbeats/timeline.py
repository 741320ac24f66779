"""Heartbeats over wall-clock time: what some arrivals, and the time between them, make of the bounds.

The generation is that of runs, with an epoch per moment and clocks that always count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from headrace.heartbeats.bounded import Arrivals, judge_in_order, judge_together
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, next_due, start
from headrace.heartbeats.rules import Rules, SilencePolicy
from headrace.heartbeats.state import State
from headrace.heartbeats.timing import Timing


class Arrival(NamedTuple):
    """A row that arrives, or a moment at which nothing does.

    Attributes:
        clock: when (microseconds).
        stream: the number of its stream.
        instant: its timestamp, or None for nothing.
    """

    clock: int
    stream: int
    instant: int | None


class Judged(NamedTuple):
    """A row that has arrived, and whether it was late."""

    arrival: Arrival
    is_late: bool


class Move(NamedTuple):
    """A heartbeat that moves.

    Attributes:
        clock: when (microseconds).
        stream: the number of its stream.
        heartbeat: what it is from then on (instant).
        cause: what moved it, as text; streams are named in it.
    """

    clock: int
    stream: int
    heartbeat: int
    cause: str


@dataclass(frozen=True)
class ArrivalTimeline:
    """What became of some arrivals.

    Attributes:
        rows: all of them, in order of arrival.
        moves: of the heartbeats, in order of time.
        end: when the last of both happened (microseconds).
    """

    rows: tuple[Judged, ...]
    moves: tuple[Move, ...]
    end: int


DUE: Final = "a wait is over"
OWN: Final = "its row"
IDLE: Final = "idle"
TIMEOUT: Final = "timeout"


def timeline(rules: Rules, timings: Mapping[str, Timing], arrivals: Sequence[Arrival]) -> ArrivalTimeline:
    """Let rows arrive, and after the last of them time pass until it moves nothing any more.

    Args:
        rules: the bounds and policies of the streams.
        timings: what the streams declare, by name, in the order of their numbers.
        arrivals: in any order; those of one moment make one epoch, in the order in which they are given.
    """
    ordered = sorted(arrivals, key=lambda arrival: arrival.clock)
    began = ordered[0].clock if ordered else 0
    state, rows, moves = start(rules), list[Judged](), list[Move]()

    def step(counted: int, seen: Mapping[int, Arrivals]) -> State:
        after = generate(rules, state, seen, DrainedClocks.running([counted] * rules.matrix.size), {})
        for place in np.flatnonzero(after.heartbeats > state.heartbeats).tolist():
            cause = _cause(rules, tuple(timings), state, after, seen, place)
            moves.append(Move(began + counted, place, int(after.heartbeats[place]), cause))
        return after

    counted, everybody = 0, np.ones(rules.matrix.size, dtype=bool)
    for clock, moment in groupby(ordered, key=lambda arrival: arrival.clock):
        while (due := next_due(rules, state, everybody)) is not None and counted + due < clock - began:
            counted += due
            state = step(counted, {})
        counted = clock - began
        judged, seen, by_position = _judge(timings, state, tuple(moment))
        rows += judged
        state = step(counted, seen).counted_on(by_position)
    while (due := next_due(rules, state, everybody)) is not None:
        counted += due
        state = step(counted, {})
    return ArrivalTimeline(tuple(rows), tuple(moves), began + counted)


def _judge(
    timings: Mapping[str, Timing], state: State, moment: Sequence[Arrival]
) -> tuple[list[Judged], dict[int, Arrivals], dict[int, tuple[Counting, ...]]]:
    """The rows of one epoch with which of them are late, and by stream their summaries and what they promise
    by their position."""
    times: dict[int, list[Arrival]] = {}
    for arrival in moment:
        if arrival.instant is not None:
            times.setdefault(arrival.stream, []).append(arrival)
    judged, seen, by_position = [], {}, {}
    declared = tuple(timings.items())
    for place, rows in times.items():
        instants = np.array([row.instant for row in rows], dtype=np.int64)
        heartbeat, (name, timing) = int(state.heartbeats[place]), declared[place]
        if not timing.is_in_order:
            found = judge_together(instants, heartbeat)
        elif bounds := timing.by_position(name):
            found, positions = state.positions(place, bounds, timing.disorder).judge(instants)
            by_position[place] = positions.counting
        else:
            found = judge_in_order(instants, heartbeat, timing.disorder)
        late = set(found.late.tolist())
        judged += [Judged(row, number in late) for number, row in enumerate(rows)]
        seen[place] = found.arrivals
    return judged, seen, by_position


def _cause(
    rules: Rules, names: Sequence[str], before: State, after: State, seen: Mapping[int, Arrivals], place: int
) -> str:
    """What moved a heartbeat: the first of time, rows and policies that is enough for it."""
    bare = replace(rules, policies=(SilencePolicy(),) * rules.matrix.size)
    patient = replace(rules, policies=tuple(replace(policy, timeout=None) for policy in rules.policies))
    tries: list[tuple[str, Rules, Mapping[int, Arrivals]]] = [(DUE, bare, {})]
    for other in sorted(seen, key=lambda other: other != place):
        tries.append((OWN if other == place else f"a row of {names[other]}", bare, {other: seen[other]}))
    tries += [("rows of others", bare, seen), (IDLE, patient, seen)]
    wanted, clocks = after.heartbeats[place], DrainedClocks.running(after.clocks)
    for cause, some_rules, some in tries:
        found = generate(some_rules, before, some, clocks, {})
        if found.heartbeats[place] == wanted:
            return cause
    return TIMEOUT
