"""Heartbeats per value of a column: each device has a disorder of its own, and the slowest holds the stream.

A row is late by the rows of its own value before it, or if it is below the stream's heartbeat as it was
before the epoch. The stream's heartbeat is the smallest of those of the values that are known and not idle.
A new value begins at the stream's heartbeat, so that it can be forgotten how far a value had come once the
stream's heartbeat is there. Values are numbered; where they are spread over shards, each has a state of its
own, and `heartbeat_after` takes what all of them say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.elements import Int64Array
from headrace.kernels.disorder import limits_by_value
from headrace.time import BEGINNING, INFINITY

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ValueRules:
    """What is promised of each value of a stream's column.

    Attributes:
        disorder: how much older than the newest row of its value a row may be (instants).
        idle_after: after how long without rows a value holds the stream back no more (microseconds of counted
            time); None: never.
        wait: for how long after the stream's first row its heartbeat does not move, so that values that come
            first in this time are not late (microseconds of counted time).
    """

    disorder: int
    idle_after: int | None = None
    wait: int = 0


@dataclass(frozen=True, eq=False)
class ValuesState:
    """What is remembered of the values, or of those of a shard, by their numbers.

    Attributes:
        newest: int64[values], the largest timestamp of each (instant), BEGINNING for a listed value that
            has not come yet: it holds the stream back from the beginning.
        heard: int64[values], when it last came, or the stream began (microseconds of counted time).
    """

    newest: Int64Array
    heard: Int64Array

    @classmethod
    def listed(cls, values: int) -> ValuesState:
        """Before the first row, with so many values that are listed."""
        return cls(np.full(values, BEGINNING, dtype=np.int64), np.zeros(values, dtype=np.int64))

    def joined_by(self, values: int) -> ValuesState:
        """The same with values that come for the first time, which get the next numbers.

        They have no rows yet and must come in the same epoch.
        """
        new = ValuesState.listed(values)
        return ValuesState(np.append(self.newest, new.newest), np.append(self.heard, new.heard))

    def without(self, forgotten: Mask) -> ValuesState:
        """The same without some values; the others are numbered anew in their order."""
        return ValuesState(self.newest[~forgotten], self.heard[~forgotten])


@dataclass(frozen=True, eq=False)
class ValuesJudged:
    """Rows judged, each by those of its own value.

    Attributes:
        late: int64[n], the places of the late rows, increasing.
        heartbeats: int64[n], the heartbeat (instant) that each of them is below.
        newest: int64[values], the largest timestamp of each value after the rows (instant).
    """

    late: Int64Array
    heartbeats: Int64Array
    newest: Int64Array


def judge_by_value(
    codes: Int64Array, times: Int64Array, newest: Int64Array, heartbeat: int, disorder: int
) -> ValuesJudged:
    """Judge consecutive rows.

    Args:
        codes: int64[n], the number of each row's value.
        times: int64[n], their timestamps, none out of range.
        newest: int64[values], the largest timestamp of each value before them (instant).
        heartbeat: the stream's, before the epoch (instant).
        disorder: how much older than the newest row of its value a row may be.
    """
    after, limits = newest.copy(), np.empty_like(times)
    limits_by_value(codes, times, heartbeat, disorder, after, limits)
    late = np.flatnonzero(times < limits)
    return ValuesJudged(late, limits[late], after)


def after_rows(state: ValuesState, codes: Int64Array, newest: Int64Array, clock: int) -> ValuesState:
    """The state after an epoch.

    Args:
        state: before, with all values of the epoch's rows.
        codes: the numbers of the values that came, late rows included, in any order and as often as you like.
        newest: int64[values], the largest timestamp of each value (instant).
        clock: counted time (microseconds).
    """
    heard = state.heard.copy()
    heard[codes] = clock
    return ValuesState(newest, heard)


def least(rules: ValueRules, state: ValuesState, clock: int) -> int:
    """The smallest heartbeat of the values that are not idle (instant); INFINITY if all are."""
    active = state.newest[~_idle(rules, state, clock)]
    smallest = int(active.min()) if len(active) else INFINITY
    return smallest if smallest in (BEGINNING, INFINITY) else smallest - rules.disorder


def heartbeat_after(
    rules: ValueRules, heartbeat: int, smallest: Iterable[int], begun: int | None, clock: int
) -> int:
    """The stream's heartbeat after an epoch.

    Args:
        rules: of the values.
        heartbeat: before (instant).
        smallest: `least` of each shard.
        begun: when the stream's first row came (microseconds of counted time), None before it.
        clock: counted time (microseconds).
    """
    reached = min(smallest, default=INFINITY)
    if begun is None or clock - begun < rules.wait or reached == INFINITY:
        return heartbeat
    return max(heartbeat, reached)


def forgettable(rules: ValueRules, state: ValuesState, heartbeat: int, clock: int) -> Mask:
    """bool[values], those that a row would find the same if they were new: idle, and no further than the
    stream."""
    come = state.newest > BEGINNING
    return come & _idle(rules, state, clock) & (np.where(come, state.newest, 0) - rules.disorder <= heartbeat)


def until_idle(rules: ValueRules, state: ValuesState, clock: int) -> int | None:
    """After how much counted time `least` rises if nothing comes (microseconds); None if it does not.

    It rises when the last of the values that hold the stream back is idle, if another is not by then.
    """
    if rules.idle_after is None:
        return None
    active = ~_idle(rules, state, clock)
    heard, newest = state.heard[active], state.newest[active]
    if not len(heard):
        return None
    last = int(heard[newest == newest.min()].max())
    return last + rules.idle_after - clock if int(heard.max()) > last else None


def _idle(rules: ValueRules, state: ValuesState, clock: int) -> Mask:
    limit = INFINITY if rules.idle_after is None else rules.idle_after
    idle: Mask = clock - state.heard >= limit
    return idle
