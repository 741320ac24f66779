"""Heartbeats from arrivals and time: the algorithm of figure 2, once per epoch.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, sections 3 and 5.1. When
a row of timestamp `tau` arrives on a stream, each bound `(t, delta)` from it to a second stream with the
latency bound `L` makes the heartbeat of the second at least `tau - delta + 1` once `t + L` more has passed.

Epochs are taken for arrivals: the rows of an epoch have come when its clocks were read, and rows of two
streams have no order in it. Waits are on the clock of the second stream, which runs only while everything
that it has sent is taken (`drained`); so a row is late only if a bound is broken, whatever the system was
busy with.

Everything here is a pure function of the state, the arrivals and the clocks: an epoch that is repeated gives
the same heartbeats and the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from headrace.elements import BoolArray, Int64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.rules import Rules
from headrace.heartbeats.state import State, StreamState
from headrace.kernels.instants.promises import matured, put
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, MIN_INSTANT


def generate(
    rules: Rules,
    state: State,
    arrivals: Mapping[int, Arrivals],
    clocks: DrainedClocks,
    promises: Mapping[int, int],
) -> State:
    """The state after an epoch, with the streams' heartbeats.

    Each heartbeat is the largest that the bounds, the policies and the granule allow, given what came.

    Args:
        rules: the bounds and policies.
        state: after the epoch before.
        arrivals: what arrived, by stream; one that sent nothing may be left out.
        clocks: the streams' counted time, not less than before, and which of them are caught up. Of the rows
            of one that is not, some may have been sent long before.
        promises: by stream, heartbeats that came beside its rows (instants), in order with them: from the
            source itself, or INFINITY at the end of a stream.
    """
    now, caught_up = clocks.counted, clocks.caught_up
    news, rows, sent = _arrived(state, arrivals)
    granules = state.clocks // rules.granule, now // rules.granule
    heartbeats, pending = matured(state.heartbeats, state.pending, *granules)
    lively, promises = news > BEGINNING, dict(promises)
    for place, promise in sent.items():
        promises[place] = max(promises.get(place, BEGINNING), promise)
    for place, promise in promises.items():
        lively[place] = True
        heartbeats[place] = max(heartbeats[place], promise)
    latest, last_heard = np.maximum(state.latest, news), np.where(lively, now, state.heard)
    after = State(heartbeats, latest, rows, now, last_heard, pending, state.counting, state.tallies)
    reached: dict[int, int] = {}
    if rules.counted.starts:
        after, reached = _reached(rules, after)
    if rules.follows_on:
        _follow_on(news, (*promises.items(), *reached.items()))
    if rules.counted.starts:
        after = _begun(rules, after, news, caught_up)
    if rules.timed.steps.kinds:
        _apply_timed(rules, after, news, caught_up)
    if rules.has_policies:
        _follow_clock(rules, after, clocks)
        _apply_policies(rules, after, caught_up)
    return after


def start(rules: Rules) -> State:
    """The state before the first epoch."""
    return State.of([StreamState()] * rules.matrix.size, rules.granule, rules.width)


def next_due(rules: Rules, state: State, caught_up: BoolArray) -> int | None:
    """How much time has to count until some heartbeat moves if nothing arrives (microseconds), or None.

    A heartbeat that moves may make others move later; ask again then.

    Args:
        rules: the bounds and policies.
        state: after the last epoch.
        caught_up: bool[streams], whether the clock of each runs; ask again when that changes.
    """
    width = state.pending.shape[1]
    granules = state.clocks // rules.granule
    ahead = (np.arange(width)[None, :] - granules[:, None] - 1) % width + 1
    times = (granules[:, None] + ahead) * rules.granule - state.clocks[:, None]
    due = times[(state.pending > state.heartbeats[:, None]) & caught_up[:, None]]
    sure = int(due.min()) if len(due) else None
    for wait in _moments(rules, state) if rules.has_policies else ():
        if sure is not None and wait >= sure:
            break
        clocks = DrainedClocks(state.clocks + wait * caught_up, caught_up)
        after = generate(rules, state, {}, clocks, {})
        if (after.heartbeats > state.heartbeats).any():
            return wait
    return sure


def _moments(rules: Rules, state: State) -> list[int]:
    """After how much time some stream becomes idle or times out (microseconds), in order."""
    quiet = _quiet(state)
    silence = rules.meeting.least(quiet)
    moments = ((rules.idle_after, quiet), (rules.timeouts, silence))
    waits = (wait for limits, since in moments for wait in (limits - since)[limits < INFINITY].tolist())
    return sorted({wait for wait in waits if wait > 0})


def _arrived(state: State, arrivals: Mapping[int, Arrivals]) -> tuple[Int64Array, Int64Array, dict[int, int]]:
    """Per stream the largest timestamp of an epoch (instant), and how many rows have come in all; and the
    heartbeats that sources have sent among them."""
    news, rows = np.full_like(state.latest, BEGINNING), state.rows.copy()
    if arrivals:
        places = list(arrivals)
        news[places] = [seen.latest for seen in arrivals.values()]
        rows[places] += [seen.rows + seen.late for seen in arrivals.values()]
    sent = {place: seen.promise for place, seen in arrivals.items() if seen.promise > BEGINNING}
    return news, rows, sent


def _follow_on(news: Int64Array, promises: Iterable[tuple[int, int]]) -> None:
    """Take what streams have promised as if they had sent the timestamp before it; writes to `news`."""
    for place, promise in promises:
        # A stream that has ended has no clock any more.
        if MIN_INSTANT < promise <= MAX_INSTANT:
            news[place] = max(news[place], promise - 1)


def _quiet(state: State) -> Int64Array:
    """For how long each stream has sent nothing (microseconds); one that has ended, for ever."""
    quiet: Int64Array = np.where(state.heartbeats == INFINITY, INFINITY, state.clocks - state.heard)
    return quiet


def _put(rules: Rules, state: State, second: Int64Array, wait: Int64Array, promise: Int64Array) -> None:
    """Promise things of streams at once, or after a wait on their clocks; writes to the state's arrays."""
    put(state.heartbeats, state.pending, state.clocks, second, wait, promise, rules.granule)


def _apply_timed(rules: Rules, state: State, news: Int64Array, caught_up: BoolArray) -> None:
    """Line 4 of figure 2, for all bounds at once; writes to the state's arrays."""
    timed = rules.timed
    promises = timed.steps.promised(news)
    # What others promise at once of rows that still wait to be taken holds when they have been.
    behind = (timed.wait == 0) & ~timed.own & ~caught_up[timed.second]
    _put(rules, state, timed.second, timed.wait + behind, promises)


def _reached(rules: Rules, state: State) -> tuple[State, dict[int, int]]:
    """The state once the epoch's rows have been counted, and what that promises of the streams."""
    counting = []
    reached: dict[int, int] = {}
    for place, (known, count) in enumerate(zip(state.counting, state.rows.tolist(), strict=True)):
        found = [one.reach(count) for one in known]
        counting.append(tuple(one for _, one in found))
        promise = max((promise for promise, _ in found), default=BEGINNING)
        if promise > BEGINNING:
            reached[place] = promise
    second = np.array(list(reached), dtype=np.int64)
    # Rows that were emitted before the last one counted may still be on their way.
    wait = rules.matrix.latencies[second]
    _put(rules, state, second, wait, np.array(list(reached.values()), dtype=np.int64))
    return replace(state, counting=tuple(counting)), reached


def _begun(rules: Rules, state: State, news: Int64Array, caught_up: BoolArray) -> State:
    """The state with what tuple-based bounds say of the epoch's rows."""
    counted = rules.counted
    promises = counted.steps.promised(news).tolist()
    clocks, rows, running = state.clocks.tolist(), state.rows.tolist(), caught_up.tolist()
    counting: list[list[Counting]] = [[] for _ in state.counting]
    for (second, begin), promise in zip(counted.starts, promises, strict=True):
        known = next((one for one in state.counting[second] if one.is_like(begin)), begin)
        begun = known.begin(promise, clocks[second], rows[second], rules.granule, running[second])
        counting[second].append(begun)
    return replace(state, counting=tuple(map(tuple, counting)))


def _follow_clock(rules: Rules, state: State, clocks: DrainedClocks) -> None:
    """Let the clock move the streams whose rows are never far behind it; writes to the state's heartbeats.

    What has come when the clock was read is taken, of those that are caught up, and what comes later is bound
    by a later reading.
    """
    if clocks.reading is not None:
        moved = (rules.behind < INFINITY) & clocks.caught_up & (state.heartbeats < INFINITY)
        reached = np.maximum(state.heartbeats, clocks.reading - np.where(moved, rules.behind, 0))
        state.heartbeats[moved] = reached[moved]


def _apply_policies(rules: Rules, state: State, caught_up: BoolArray) -> None:
    """Silence of all streams that are read together, then streams that are idle; writes to the state's
    heartbeats. A stream whose rows still wait to be read is not silent."""
    heartbeats = state.heartbeats
    ended = heartbeats == INFINITY
    quiet = np.where(caught_up | ended, _quiet(state), -1)
    idle = ~ended & (quiet >= rules.idle_after)
    silent = ~ended & (rules.meeting.least(quiet) >= rules.timeouts)
    silent |= ~ended & _all_idle(rules, idle, ended)
    if silent.any():
        _finish(rules, state, silent)
    if idle.any():
        active = ~ended & ~idle
        followed = rules.meeting.least(np.where(active, heartbeats, INFINITY))
        followers = idle & (followed < INFINITY)
        heartbeats[followers] = np.maximum(heartbeats, followed)[followers]


def _all_idle(rules: Rules, idle: BoolArray, ended: BoolArray) -> BoolArray:
    """Whether each stream and those that are read with it are idle, one of them at least by IDLE AFTER; one
    that follows others at once says nothing."""
    says = idle & (rules.idle_after > 0)
    if not says.any():
        return says
    everybody = rules.meeting.least((idle | ended).astype(np.int64)) > 0
    found: BoolArray = everybody & (rules.meeting.largest(says.astype(np.int64)) > 0)
    return found


def _finish(rules: Rules, state: State, silent: BoolArray) -> None:
    """Let the heartbeats of silent streams pass the rows that came, and the windows that hold them; writes to
    the state's heartbeats."""
    heartbeats = state.heartbeats
    newest = rules.meeting.largest(state.latest)
    passing = silent & (newest > BEGINNING)
    heartbeats[passing] = np.maximum(heartbeats, newest + 1)[passing]
    for places, endings in rules.awaited:
        if any(silent[place] for place in places.values()):
            latest = {name: int(state.latest[place]) for name, place in places.items()}
            for name, needed in endings.heartbeats(latest).items():
                place = places[name]
                if silent[place]:
                    heartbeats[place] = max(int(heartbeats[place]), needed)
