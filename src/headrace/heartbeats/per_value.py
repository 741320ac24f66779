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
from typing import Final

import numpy as np

from headrace.elements import BoolArray, Int64Array
from headrace.heartbeats.timing import PerValue, Timing
from headrace.kernels.instants.disorder import late_by_value, suffix_candidates, suffix_minima
from headrace.kernels.rows.sorting import stable_order
from headrace.time import BEGINNING, INFINITY

_STEPS: Final = 32
"""How many rises of a heartbeat are foreseen at most; others come with the next of these."""


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


def rules_of(timing: Timing, per: PerValue) -> ValueRules:
    """What a stream that declares bounds per value promises of each."""
    assert timing.disorder is not None
    return ValueRules(timing.disorder, timing.idle_after, per.wait)


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
    def listed(cls, values: int, clock: int = 0) -> ValuesState:
        """Before the first row, with so many values that are listed.

        Args:
            values: how many.
            clock: from when on they may become idle (microseconds of counted time).
        """
        return cls(np.full(values, BEGINNING, dtype=np.int64), np.full(values, clock, dtype=np.int64))

    def joined_by(self, values: int, clock: int = 0) -> ValuesState:
        """The same with values that come for the first time, which get the next numbers.

        They have no rows yet, and must be listed or come in the same epoch.

        Args:
            values: how many.
            clock: counted time (microseconds).
        """
        if not values:
            return self
        new = ValuesState.listed(values, clock)
        return ValuesState(np.append(self.newest, new.newest), np.append(self.heard, new.heard))

    def without(self, forgotten: BoolArray) -> ValuesState:
        """The same without some values; the others are numbered anew in their order."""
        return ValuesState(self.newest[~forgotten], self.heard[~forgotten])


def judge_by_value(
    rules: ValueRules, state: ValuesState, codes: Int64Array, times: Int64Array, heartbeat: int, clock: int
) -> tuple[Int64Array, Int64Array]:
    """Judge consecutive rows, each by those of its own value.

    Args:
        rules: what is promised of each value.
        state: before them, with all their values; on return its arrays are what they are after them.
        codes: int64[n], the number of each row's value.
        times: int64[n], their timestamps, none out of range.
        heartbeat: the stream's, before the epoch (instant).
        clock: counted time (microseconds).

    Returns:
        int64[n], the places of the late rows, increasing; and the heartbeat (instant) that each is below.
    """
    return late_by_value(codes, times, heartbeat, rules.disorder, clock, state.newest, state.heard)


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


def forgettable(rules: ValueRules, state: ValuesState, heartbeat: int, clock: int) -> BoolArray:
    """bool[values], those that a row would find the same if they were new: idle, and no further than the
    stream."""
    come = state.newest > BEGINNING
    return come & _idle(rules, state, clock) & (np.where(come, state.newest, 0) - rules.disorder <= heartbeat)


@dataclass(frozen=True)
class Rise:
    """From when on `least` is what, if nothing comes.

    Attributes:
        when: from then on (microseconds of counted time).
        least: what it is (instant), BEGINNING while a listed value has not come.
        value: the number of a value that it is the heartbeat of.
    """

    when: int
    least: int
    value: int


def rises(rules: ValueRules, state: ValuesState, clock: int) -> tuple[Rise, ...]:
    """`least` from now on if nothing comes, at first what it is now.

    Where it rises very often, it is foreseen too low in between, never too high. Once all values are idle it
    no longer rises.
    """
    values, before = _steps(rules, state, clock)
    found = []
    for value, last in zip(_some(values).tolist(), _some(before).tolist(), strict=True):
        when = clock if last < 0 else last + (rules.idle_after or 0)
        newest = int(state.newest[value])
        found.append(Rise(when, BEGINNING if newest == BEGINNING else newest - rules.disorder, value))
    return tuple(found)


def _steps(rules: ValueRules, state: ValuesState, clock: int) -> tuple[Int64Array, Int64Array]:
    """The values that are the smallest one after the other if nothing comes, and when the last of those came
    that have to be idle before (microseconds of counted time), -1 for none."""
    if rules.idle_after is None:
        smallest = np.array([state.newest.argmin()] if len(state.newest) else [], dtype=np.int64)
        return smallest, np.full_like(smallest, -1)
    idle = max(clock - rules.idle_after, int(state.heard.min(initial=clock)) - 1)
    candidates = suffix_candidates(state.newest, state.heard, idle, clock)
    order = candidates[stable_order(state.heard[candidates])]
    return suffix_minima(state.newest, state.heard, order, idle)


def _some(steps: Int64Array) -> Int64Array:
    """A bounded number of steps, the first and the last among them."""
    if len(steps) <= _STEPS:
        return steps
    return steps[np.linspace(0, len(steps) - 1, _STEPS).astype(np.int64)]


def _idle(rules: ValueRules, state: ValuesState, clock: int) -> BoolArray:
    limit = INFINITY if rules.idle_after is None else rules.idle_after
    idle: BoolArray = clock - state.heard >= limit
    return idle
