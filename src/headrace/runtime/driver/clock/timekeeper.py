"""The time of a run: how much of it has counted for each stream, and when it alone moves a heartbeat.

Heartbeats follow from the arrivals of an epoch and the clocks of its streams, which are read once, when the
epoch takes its rows. Between epochs only the clocks move. An epoch without input is made when they alone have
moved the heartbeat of a query's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.heartbeats.counting import taken
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.epoch import EpochTime
from headrace.heartbeats.generation import generate, next_due
from headrace.heartbeats.groups import GroupedMatrix, Skew
from headrace.heartbeats.per_value import ValueRules, heartbeat_after
from headrace.heartbeats.per_value import rules_of as value_rules
from headrace.heartbeats.rules import Awaited, Rules, SilencePolicy, granule_for
from headrace.heartbeats.skew import LONGEST, within
from headrace.heartbeats.state import State
from headrace.heartbeats.timing import Deviation, Follow, Timing
from headrace.lowering.behind import declared_name, lane_of
from headrace.runtime.driver.clock.settlement import Settling
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import ValuesPoint
from headrace.time import BEGINNING, INFINITY, MICROSECONDS, Clock

_LONGEST: Final = 2 * MICROSECONDS["SECOND"]
"""How much of the time between two looks at the clock counts at most: more than passes when all is well."""


class Timekeeper:
    """The clocks of the streams of some queries, until the queries or what streams declare change.

    Args:
        timings: what holds for the streams, by name; all of them are read by some query.
        queries: the queries.
        points: what was remembered of the streams.
        clock: wall-clock time.
    """

    def __init__(
        self,
        timings: Mapping[str, Timing],
        queries: QuerySet,
        points: Mapping[str, StreamPoint],
        clock: Clock,
    ) -> None:
        self._names = tuple(timings)
        self._timings = timings
        self._queries = queries
        self._clock = clock
        self._by_arrival = tuple(place for place, name in enumerate(timings) if timings[name].by_arrival)
        # How far each stream that the clock moves is behind it.
        self._by_clock = {
            place: timing.behind or 0
            for place, timing in enumerate(timings.values())
            if timing.by_arrival or timing.behind is not None
        }
        self._settling = (
            {name: Settling.of(plan) for name, plan in queries.live.items()} if self._by_clock else {}
        )
        self.rules = self._rules()
        self.accept({name: points.get(name, StreamPoint(0)) for name in self._names}, timings)
        self._clocks = DrainedClocks.stopped(self._state.clocks)

    @property
    def counts_time(self) -> bool:
        """Whether heartbeats, or estimates of bounds, depend on how much time has counted."""
        per_value = any(timing.per is not None for timing in self._timings.values())
        follows = (follow for timing in self._timings.values() for follow in timing.follows)
        return self.rules.needs_clocks or per_value or any(follow.estimated for follow in follows)

    def look(self, caught_up: Callable[[], Mapping[str, bool]]) -> None:
        """Let time count.

        Args:
            caught_up: says per stream whether everything that its source has is taken; no for those that are
                not named. It is asked after the clock is read, so that what comes in between is not missed.
        """
        now, found = self._clock.now(), caught_up()
        self._clocks = self._clocks.look(now, [found.get(name, False) for name in self._names], _LONGEST)

    def epoch(self, promises: Mapping[str, int], clock: int, arriving: Collection[str] = ()) -> EpochTime:
        """How the heartbeats of an epoch follow from its rows.

        Args:
            promises: heartbeats that came from outside, by stream (instants).
            clock: the epoch's reading of it (microseconds since 1970-01-01 UTC).
            arriving: the streams that bring something.
        """
        if arriving and not self.is_due() and all(lane_of(name) is not None for name in arriving):
            # What lanes take says nothing new of the streams: who has taken all would be told ever further.
            state, clocks = self._reached(None, arriving), replace(self._clocks, reading=None)
            return EpochTime(self._names, self.rules, state, clocks, promises)
        return EpochTime(self._names, self.rules, self._reached(clock, arriving), self._clocks, promises)

    def is_due(self) -> bool:
        """Whether time alone moves the heartbeat of some query's answer.

        Where streams are timed by arrival, the clock itself does so only while an answer may change.
        """
        return (
            (self.counts_time and self._is_moved())
            or (bool(self._by_clock) and self._is_settling())
            or (bool(self._pasts) and self._brings_news())
        )

    def _brings_news(self) -> bool:
        """Whether an answer that is said so long after its rows have come is said further now."""
        clock, dials = self._clock.now(), self._queries.graph.dials
        return any(past.brings_news(clock, dials[name]) for name, past in self._pasts.items())

    def _is_moved(self) -> bool:
        """Whether the time that has counted moves the heartbeat of an answer."""
        after = self._after(None)
        return self._differs(after) and self._outputs(after) != self._outputs(self._state)

    def _is_settling(self) -> bool:
        """Whether the clock moves the heartbeat of an answer far enough that may still change."""
        clock = self._clock.now()
        after = self._after(clock)
        if not self._differs(after):
            return False
        known, found = self._outputs(self._state), self._outputs(after)
        heartbeats = self._state.heartbeats
        passed = clock - min(int(heartbeats[place]) + behind for place, behind in self._by_clock.items())
        return any(
            found[name] != heartbeat
            and self._settling[name].is_due(self._newest(name), heartbeat, found[name], passed)
            for name, heartbeat in known.items()
        )

    def wait(self) -> float | None:
        """Seconds until counted time moves a heartbeat, if it counts for all streams; None if it does not."""
        if not self.counts_time:
            return None
        if self._values and self.is_due():
            return 0.0
        found = (next_due(self.rules, self._after(None), self._clocks.caught_up), *self._values_due())
        due = [wait for wait in found if wait is not None]
        return min(due) / MICROSECONDS["SECOND"] if due else None

    def accept(self, points: Mapping[str, StreamPoint], timings: Mapping[str, Timing]) -> None:
        """Move on to what an epoch has committed.

        Args:
            points: what is remembered of the streams.
            timings: what holds for them from now on; other than before where a disorder is estimated.
        """
        if timings != self._timings:
            self._timings = timings
            self.rules = self._rules()
        found = [points[name].time for name in self._names]
        self._pasts = {name: points[name].past for name in self._queries.graph.dials}
        self._state = State.of(found, self.rules.granule, self.rules.width)
        self._values: dict[int, tuple[ValueRules, ValuesPoint]] = {}
        for place, (name, timing) in enumerate(self._timings.items()):
            if timing.per is not None and (values := values_of(timing, points[name])) is not None:
                self._values[place] = value_rules(timing, timing.per), values

    def _rules(self) -> Rules:
        """The declarations of the streams, and the ends that windows of queries wait for in silence."""
        rules = rules_of(self._timings, self._queries.meetings)
        if not rules.has_policies:
            return rules
        places = {name: place for place, name in enumerate(self._names)}
        awaited = (
            Awaited({name: places[name] for name in sorted(met)}, endings)
            for met, endings in self._queries.endings
        )
        return replace(rules, awaited=tuple(awaited))

    def _after(self, clock: int | None) -> State:
        """The state after an epoch without input.

        Args:
            clock: its reading (microseconds since 1970-01-01 UTC); None where the clock itself moves nothing.
        """
        clocks = self._clocks if clock is not None else replace(self._clocks, reading=None)
        return generate(self.rules, self._reached(clock), {}, clocks, {})

    def _differs(self, after: State) -> bool:
        return bool((after.heartbeats != self._state.heartbeats).any())

    def _newest(self, query: str) -> int:
        """The largest timestamp that came on the streams of a query (instant)."""
        places = map(self._names.index, self._settling[query].streams)
        return max((int(self._state.latest[place]) for place in places), default=BEGINNING)

    def _reached(self, clock: int | None, arriving: Collection[str] = ()) -> State:
        """The state with what counts from this epoch on: the clock, and what values of columns have come to.

        Rows that are timed by arrival come at the clock's reading now, or after it. Of a stream with a bound
        per value that brings rows, time has counted up to the epoch before: a value that has become idle
        since may be among them.
        """
        if not (self._values or self._by_arrival):
            return self._state
        heartbeats = self._state.heartbeats.copy()
        if clock is not None:
            for place in self._by_arrival:
                if heartbeats[place] != INFINITY:
                    heartbeats[place] = max(int(heartbeats[place]), clock) + 1
        for place, (rules, point) in self._values.items():
            arrives = self._names[place] in arriving
            counted = int(self._state.clocks[place]) if arrives else int(self._clocks.counted[place])
            reached, _ = taken(point.due, counted)
            before = int(heartbeats[place])
            heartbeats[place] = heartbeat_after(rules, before, [reached], point.begun, counted)
        return replace(self._state, heartbeats=heartbeats)

    def _values_due(self) -> list[int]:
        """After how much time the values of a column have come further (microseconds), if nothing comes."""
        found = []
        running = (place for place in self._values if self._clocks.caught_up[place])
        for rules, point, place in ((*self._values[place], place) for place in running):
            steps = (when for when, least in point.due if least > BEGINNING)
            moments = (max(when, point.begun + rules.wait) for when in steps)
            found += [when - int(self._clocks.counted[place]) for when in moments]
        return [wait for wait in found if wait > 0]

    def _outputs(self, state: State) -> dict[str, int]:
        """The heartbeats of the answers, by the queries' names."""
        graph = self._queries.graph
        reached, newest = (
            dict(zip(self._names, values.tolist(), strict=True))
            for values in (state.heartbeats, state.latest)
        )
        if self._queries.lanes:
            # A query that is behind is told later, of what its streams have come to.
            reached, newest = (
                {name: values.get(declared_name(name), values[name]) for name in values}
                for values in (reached, newest)
            )
        heartbeats = graph.heartbeats(reached, newest, self._pasts)
        return {name: heartbeats[graph.node_of(output)] for name, output in graph.outputs}


def read_together(plans: Iterable[Plan]) -> Iterator[frozenset[str]]:
    """The streams that each of some queries reads."""
    return (frozenset(source.name for source in sources_of(plan)) for plan in plans)


def values_of(timing: Timing, point: StreamPoint) -> ValuesPoint | None:
    """How far the values of the declared column have come; None if none are known."""
    known = point.values
    return known if known is not None and timing.per and timing.per.column == known.column else None


def rules_of(timings: Mapping[str, Timing], together: Iterable[frozenset[str]]) -> Rules:
    """The bounds and policies that streams declare, with what follows from them.

    Args:
        timings: by stream; a bound from a stream that is not named says nothing.
        together: the streams that each query reads: a silent stream holds back those that it is read with.
    """
    places = {name: place for place, name in enumerate(timings)}
    latencies = [timing.latency for timing in timings.values()]
    own = [timing.with_itself(name) for name, timing in timings.items()]
    skews = skews_of(timings)
    rates = {places[name]: timing.rate for name, timing in timings.items() if timing.rate is not None}
    matrix = GroupedMatrix.of(latencies, own, skews, rates)
    if skews or rates:
        matrix = matrix.closure()
    policies = tuple(
        SilencePolicy(_idle_after(timing), timing.timeout, timing.behind) for timing in timings.values()
    )
    met = sorted(sorted(places[name] for name in group) for group in set(together))
    return Rules(matrix, policies, granule_for(matrix), together=tuple(map(tuple, met)))


def _idle_after(timing: Timing) -> int | None:
    """After how long a stream that brings nothing is idle; not while it waits for values to come."""
    idle = timing.idle_after
    return idle if idle is None or timing.per is None else max(idle, timing.per.wait)


def skews_of(timings: Mapping[str, Timing]) -> list[Skew]:
    """The bounds between some streams; those from streams that are not among them say nothing."""
    places = {name: place for place, name in enumerate(timings)}
    seconds: dict[Follow, list[int]] = {}
    for name, timing in timings.items():
        for follow in timing.follows:
            if follow.bounds and follow.streams != (name,):
                seconds.setdefault(follow, []).append(places[name])
    found = []
    for follow, followers in seconds.items():
        firsts = tuple(places[name] for name in follow.streams if name in places)
        if firsts:
            found.append(Skew(firsts, tuple(followers), follow.bounds))
    return [*found, *_of_deviations(timings)]


def _of_deviations(timings: Mapping[str, Timing]) -> Iterator[Skew]:
    """The bounds between streams whose clocks are set by the same one: `(0, d_i + d_j)` (section 4.2)."""
    deviating: dict[Deviation, list[int]] = {}
    for place, timing in enumerate(timings.values()):
        if timing.deviation is not None:
            deviating.setdefault(timing.deviation, []).append(place)
    for first, firsts in deviating.items():
        for second, seconds in deviating.items():
            behind = first.length + second.length
            is_bounded = (first.clock, first.domain) == (second.clock, second.domain) and behind < LONGEST
            if is_bounded and (first != second or len(firsts) > 1):
                yield Skew(tuple(firsts), tuple(seconds), (within(behind),))
