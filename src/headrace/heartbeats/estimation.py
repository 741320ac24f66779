"""Skew bounds estimated from what arrives.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, section 6. The estimate
for a pair of streams and a wait is how far rows of the second were behind the newest row that had come on
the first that long before. It is of the rows as they arrive, so that latencies are part of it and no
closure is needed; a timeout still is. Adaptive estimation (figure 4) lowers it again when nothing has come
near it for a while.

Epochs take the place of arrivals. What a row is compared with is what its heartbeat would be made from: the
rows that earlier epochs brought, and of its own stream also those before it. As printed, a row is compared
with itself as well, so that the estimate of a stream's own disorder could never become 0.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.elements import BoolArray, Int64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.time import BEGINNING, INFINITY

Floats = NDArray[np.float64]

KEPT_CHANGES: Final = 256
"""How many changes of estimates are kept to be shown."""


@dataclass(frozen=True)
class Adaptivity:
    """How estimates are lowered: figure 4.

    Attributes:
        window: `W`: after how many rows of the second stream that stay below an estimate it is lowered, or
            after how much time (microseconds).
        by_time: whether it is a time.
        alpha: the weight of the former estimate, 0 to 1, against the largest of the window.
        often: estimates that are exceeded by more than this share of the epochs get a window twice as long;
            None leaves windows unchanged ("adaptive adaptivity", with `falls`).
        falls: estimates that are lowered so many times in a row get a window half as long.
        wait: between streams, bounds are estimated that hold after up to so long, besides the one that holds
            at once: `t_max` of section 6.1 (microseconds of counted time).
    """

    window: int
    by_time: bool = False
    alpha: float = 0.5
    often: float | None = None
    falls: int = 4
    wait: int = 0

    def describe(self) -> str:
        """What a durable store remembers of it."""
        after = f" and after {self.wait}" if self.wait else ""
        return f"over {self.window} {'of time' if self.by_time else 'rows'} by {self.alpha}{after}"


@dataclass(frozen=True)
class EstimationRules:
    """Which bounds are estimated, and how.

    Attributes:
        streams: how many streams there are.
        pairs: those for which bounds are estimated, from and to.
        waits: the waits for which they are, rising (microseconds, multiples of the granule); 0 is one of them
            as a rule.
        granule: as in `rules.Rules` (microseconds).
        adaptivity: None where estimates are never lowered (section 6.1).
        learning: how many rows of the second stream must have been compared before a bound is used.
        stops_after: after how many rows an estimate does not change any more; None: never.
    """

    streams: int
    pairs: tuple[tuple[int, int], ...]
    waits: tuple[int, ...]
    granule: int
    adaptivity: Adaptivity | None = None
    learning: int = 1
    stops_after: int | None = None


class Estimates(NamedTuple):
    """The numbers of figure 4, each an array [waits, pairs].

    Attributes:
        delta: the estimates (instants).
        largest: the largest measurement since the window began (`delta_win`).
        begun: the rows compared, or the time (microseconds), when the window began.
        window: its length, in rows or microseconds.
        falls: how many times in a row the estimate was lowered.
        exceeded: epochs that exceeded it since the window's length last changed.
        measured: epochs since then.
        rows: how many rows have been compared.
    """

    delta: Floats
    largest: Floats
    begun: Int64Array
    window: Int64Array
    falls: Int64Array
    exceeded: Int64Array
    measured: Int64Array
    rows: Int64Array


@dataclass(frozen=True)
class Changed:
    """That an estimate has changed.

    Attributes:
        clock: when (microseconds of counted time).
        first, second: from and to.
        wait: of the bound (microseconds).
        delta: the estimate since then (instants).
    """

    clock: int
    first: int
    second: int
    wait: int
    delta: int


@dataclass(frozen=True, eq=False)
class EstimationState:
    """What estimation remembers between epochs.

    Attributes:
        estimates: per wait and pair.
        newest: the largest timestamp of each stream as it was at some granules, rising; as many granules
            back as the longest wait needs.
        clock: of the last epoch (microseconds of counted time).
        changes: the last changes, `KEPT_CHANGES` at most.
    """

    estimates: Estimates
    newest: tuple[tuple[int, tuple[int, ...]], ...] = ()
    clock: int = 0
    changes: tuple[Changed, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Numbers and lists of numbers by name, for a commit record."""
        return {
            "estimates": {name: array.tolist() for name, array in self.estimates._asdict().items()},
            "newest": [[granule, *latest] for granule, latest in self.newest],
            "clock": self.clock,
            "changes": [list(astuple(change)) for change in self.changes],
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> EstimationState:
        """The state of which `to_json` made this.

        Raises:
            KeyError, TypeError, ValueError: it made no such thing.
        """
        numbers = found["estimates"]
        delta, largest = (np.array(numbers[name], dtype=np.float64) for name in Estimates._fields[:2])
        counts = (np.array(numbers[name], dtype=np.int64) for name in Estimates._fields[2:])
        begun, window, falls, exceeded, measured, rows = counts
        estimates = Estimates(delta, largest, begun, window, falls, exceeded, measured, rows)
        newest = tuple((int(granule), tuple(map(int, latest))) for granule, *latest in found["newest"])
        changes = tuple(Changed(*map(int, change)) for change in found["changes"])
        return cls(estimates, newest, int(found["clock"]), changes)


def start(rules: EstimationRules) -> EstimationState:
    """The state before the first epoch."""
    shape = (len(rules.waits), len(rules.pairs))
    window = rules.adaptivity.window if rules.adaptivity else 0
    zeros = np.zeros(shape, dtype=np.int64)
    windows = np.full(shape, window, dtype=np.int64)
    none = np.zeros(shape)
    return EstimationState(Estimates(none, none, zeros, windows, zeros, zeros, zeros, zeros))


def estimate(
    rules: EstimationRules, state: EstimationState, arrivals: Mapping[int, Arrivals], clock: int
) -> EstimationState:
    """The state after an epoch.

    Args:
        rules: what is estimated.
        state: after the epoch before.
        arrivals: what arrived, by stream; late rows count.
        clock: counted time (microseconds), not less than before and, for each stream, counted at least as
            fast as its own clock: an estimate may then be too large and not too small.
    """
    heard = {place: seen for place, seen in arrivals.items() if seen.rows or seen.late}
    measured, compared = _measured(rules, state, heard)
    estimates = _adapted(rules, state.estimates, measured, compared, clock)
    newest = _newest_after(rules, state.newest, heard, clock)
    changes = _changes(rules, state.estimates, estimates, clock)
    return EstimationState(estimates, newest, clock, (*state.changes, *changes)[-KEPT_CHANGES:])


def bounds_of(rules: EstimationRules, state: EstimationState) -> SkewMatrix:
    """The bounds that are estimated by now, for `generation.generate`, without those still being learned."""
    found: dict[tuple[int, int], list[Bound]] = {}
    known = state.estimates.rows >= max(rules.learning, 1)
    for wait, pair in np.argwhere(known).tolist():
        delta = math.ceil(state.estimates.delta[wait, pair])
        found.setdefault(rules.pairs[pair], []).append(Bound(delta, rules.waits[wait]))
    return SkewMatrix((0,) * rules.streams, {pair: tuple(bounds) for pair, bounds in found.items()})


def _measured(
    rules: EstimationRules, state: EstimationState, heard: Mapping[int, Arrivals]
) -> tuple[Floats, Int64Array]:
    """What the epoch's rows show, and how many of them: arrays [waits, pairs], 0 rows where nothing."""
    shape = (len(rules.waits), len(rules.pairs))
    measured, compared = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    granules = [granule for granule, _ in state.newest]
    for place, wait in enumerate(rules.waits):
        # A promise that has to wait holds from the first granule on that is not before it.
        until = state.clock // rules.granule - wait // rules.granule if wait else INFINITY
        known = bisect_right(granules, until)
        newest = state.newest[known - 1][1] if known else ()
        for number, (first, second) in enumerate(rules.pairs):
            seen = heard.get(second)
            if seen is None:
                continue
            delta = newest[first] - seen.earliest + 1 if newest and newest[first] > BEGINNING else None
            if first == second and not wait and seen.rows + seen.late > 1:
                delta = max(seen.drop + 1, delta or 0)
            if delta is not None:
                measured[place, number] = max(delta, 0)
                compared[place, number] = seen.rows + seen.late
    return measured, compared


def _adapted(
    rules: EstimationRules, before: Estimates, measured: Floats, compared: Int64Array, clock: int
) -> Estimates:
    """Lines 5 to 14 of figure 4, for an epoch's largest measurements."""
    rows = before.rows + compared
    stopped = rules.stops_after is not None and before.rows >= rules.stops_after
    news = (compared > 0) & ~np.asarray(stopped)
    higher = news & (measured > before.delta)
    largest = np.where(news, np.maximum(before.largest, measured), before.largest)
    delta = np.where(higher, measured, before.delta)
    if rules.adaptivity is None:
        return before._replace(delta=delta, rows=rows)
    adaptivity = rules.adaptivity
    position = np.full_like(rows, clock) if adaptivity.by_time else rows
    over = news & ~higher & (position - before.begun > before.window)
    lowered = adaptivity.alpha * delta + (1 - adaptivity.alpha) * largest
    fresh = higher | over
    after = before._replace(
        delta=np.where(over, lowered, delta),
        largest=np.where(fresh, 0.0, largest),
        begun=np.where(fresh, position, before.begun),
        rows=rows,
    )
    if adaptivity.often is None:
        return after
    return _with_windows(adaptivity, adaptivity.often, before, after, news, higher, over)


def _with_windows(
    adaptivity: Adaptivity,
    often: float,
    before: Estimates,
    after: Estimates,
    news: BoolArray,
    higher: BoolArray,
    over: BoolArray,
) -> Estimates:
    """The same, with longer windows where estimates were exceeded too often and shorter ones where they
    fell."""
    exceeded, measured = before.exceeded + higher, before.measured + news
    fell = over & (after.delta < before.delta)
    falls = np.where(higher | (over & ~fell), 0, before.falls + fell)
    longer = higher & (before.measured > 0) & (exceeded > often * measured)
    shorter = falls >= adaptivity.falls
    window = np.where(longer, np.minimum(after.window * 2, INFINITY // 4), after.window)
    window = np.where(shorter, np.maximum(window // 2, 1), window)
    changed = longer | shorter
    return after._replace(
        window=window,
        falls=np.where(shorter, 0, falls),
        exceeded=np.where(changed, 0, exceeded),
        measured=np.where(changed, 0, measured),
    )


def _newest_after(
    rules: EstimationRules,
    newest: tuple[tuple[int, tuple[int, ...]], ...],
    heard: Mapping[int, Arrivals],
    clock: int,
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The newest timestamps by granule, with those of an epoch and without those that no wait reaches."""
    last = newest[-1][1] if newest else (BEGINNING,) * rules.streams
    latest = tuple(
        max(before, heard[place].latest if place in heard else BEGINNING) for place, before in enumerate(last)
    )
    granule = -(-clock // rules.granule)
    kept = newest[:-1] if newest and newest[-1][0] == granule else newest
    oldest = clock // rules.granule - rules.waits[-1] // rules.granule
    reached = bisect_right([at for at, _ in kept], oldest)
    return (*kept[max(reached - 1, 0) :], (granule, latest))


def _changes(rules: EstimationRules, before: Estimates, after: Estimates, clock: int) -> list[Changed]:
    """Which estimates have changed in an epoch, as bounds show them."""
    delta = np.ceil(after.delta)
    changed = (delta != np.ceil(before.delta)) | ((before.rows == 0) & (after.rows > 0))
    return [
        Changed(clock, *rules.pairs[pair], rules.waits[wait], int(delta[wait, pair]))
        for wait, pair in np.argwhere(changed).tolist()
    ]
