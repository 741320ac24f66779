"""Lanes of a live run: queries that are behind take their turns beside those that take rows as they come.

A lane's turn is an epoch that takes rows which are kept for it. Several lanes may have a turn in one epoch,
and the front's as well where little waits. A policy says who is next (`headrace.scheduling.policies`); a turn
is short enough that whoever comes meanwhile is not late by it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.lowering.behind import lane_of
from headrace.qos_graph import QosGraph
from headrace.runtime.driver.change.wanted import Placement
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.kept.behind import Backlog
from headrace.runtime.driver.lanes.ability import may_be_behind
from headrace.runtime.driver.lanes.asked import AskedOfLane
from headrace.runtime.driver.lanes.counted import rows_in_front, seconds_by_lane, seconds_of
from headrace.runtime.driver.lanes.lateness import QosMonitor, kept_rows
from headrace.runtime.driver.lanes.measured import Measured
from headrace.runtime.driver.lanes.status import LaneStatus
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import Intake
from headrace.scheduling.policies import POLICIES, USUAL_POLICY, QueuedRows, joined
from headrace.scheduling.priority import USUAL, Priority
from headrace.time import MICROSECONDS

FRONT: Final = "front"
"""The name of the queries that take rows as they come."""

_LONGEST: Final = 0.1
"""Seconds that a turn takes at most, if no bound of latency wants shorter ones."""
_RECENT: Final = 1.0
"""For so long after an epoch of the front turns are no longer than that (seconds)."""
_SHORTEST: Final = 0.01
"""Seconds that a turn is planned for at least: an epoch takes some time whatever its rows."""
_PART: Final = 4
"""The part of the shortest bound that a turn may take."""
_NEWEST: Final = 0.3
"""The part that the last epoch has in what is known of the front's."""
_TOGETHER: Final = 0.02
"""Lanes whose rows take no longer than that (seconds) take them with the next epoch, whoever's it is."""
_CALM: Final = 20
"""After so many turns it is looked whether a query that went behind by itself may come back."""
_HEAVY: Final = 0.2
"""A query is put behind others if it takes this part of an epoch's time at least."""
_EASY: Final = 0.5
"""It comes back when an epoch with it is expected to take this part of the shortest bound at most."""


@dataclass
class Lanes:
    """The lanes of a live run; its thread is the only user, but for `status`.

    Args:
        run: the run.
        now: the seconds of a clock that only goes forward.

    Attributes:
        priorities: those of the queries of which something was said, by identity.
        hurried: lanes that are to come to the present as soon as they can, for a change of their queries.
    """

    run: Run
    now: Callable[[], float] = time.monotonic
    priorities: Mapping[str, Priority] = field(default_factory=dict)
    hurried: set[int] = field(default_factory=set)
    _looked: tuple[float, tuple[LaneStatus, ...]] = (0.0, ())
    _measured: dict[int, Measured] = field(default_factory=dict)
    _reached: float = 0.0
    _hurried_last: bool = False
    _turn: int = 0
    _waited_before: set[int] = field(default_factory=set)
    _ready_since: float | None = None
    _came: float | None = None
    _last: float = 0.0
    _qos: QosMonitor = field(default_factory=QosMonitor)
    _seen: tuple[PublishedRun, list[Backlog]] | None = None
    _front_took: float = 0.0
    _each: float = 0.0
    _front_at: float = -math.inf
    _patience: dict[int, int] = field(default_factory=dict)
    _known: tuple[QuerySet, Mapping[str, Priority], dict[int, AskedOfLane]] | None = None
    _looked_at: tuple[PublishedRun, Mapping[str, Priority]] | None = None

    @property
    def status(self) -> tuple[LaneStatus, ...]:
        """The queries in front, and each lane, as they are now; none where nobody has a priority.

        Any thread may ask.
        """
        at, found = self._looked
        passed = self.now() - at
        return tuple(one if one.behind is None else replace(one, behind=one.behind + passed) for one in found)

    @property
    def backlogs(self) -> list[Backlog]:
        """The rows that lanes have yet to take."""
        reading = self.run.reading
        if self._seen is None or self._seen[0] is not reading:
            self._seen = reading, self.run.backlogs()
        return self._seen[1]

    @property
    def waits(self) -> bool:
        """Whether a lane has something to take."""
        return bool(self._active())

    def _active(self) -> list[Backlog]:
        return [
            one
            for one in self.backlogs
            if not one.is_present and (self.weight_of(one.lane) or one.lane in self.hurried)
        ]

    def priority_of(self, query: str) -> Priority:
        """The priority of a query."""
        return self.priorities.get(query, USUAL)

    def weight_of(self, lane: int) -> float:
        """The weight of a lane: those of its queries together; the usual one of a front without any."""
        found = self._asked_of(lane).weight
        return found or (0.0 if lane else USUAL.share)

    def queries_of(self, lane: int) -> tuple[str, ...]:
        """The queries of a lane; those in front for 0."""
        return self._asked_of(lane).queries

    def bound_of(self, lane: int) -> int | None:
        """The shortest bound of latency of the queries of a lane (microseconds); None for none."""
        return self._asked_of(lane).bound

    def _asked_of(self, lane: int) -> AskedOfLane:
        queries = self.run.reading.queries
        if self._known is None or self._known[0] is not queries or self._known[1] is not self.priorities:
            lanes = {
                0: [name for name in queries.live if queries.answered[name].lane is None],
                **queries.lanes,
            }
            found = {
                lane: AskedOfLane.of(tuple(names), [self.priority_of(name) for name in names])
                for lane, names in lanes.items()
            }
            self._known = queries, self.priorities, found
        return self._known[2].get(lane, AskedOfLane())

    def take(self, *, front: bool) -> Mapping[str, Intake] | None:
        """The intakes of lanes in the next epoch.

        Args:
            front: whether something has come for the queries in front.

        Returns:
            None where it is the front's turn; then what is in `beside` may go with it.
        """
        if self.priorities:
            self._wait(front=front)
        if not self.run.reading.queries.lanes:
            return None
        self._notice(front=front)
        active = self._active()
        if not active:
            return None
        hurried = [one for one in active if one.lane in self.hurried]
        others = [one for one in active if one.lane not in self.hurried]
        if hurried and not (self._hurried_last and (front or others)):
            self._hurried_last = True
            return self._turns(hurried, self.seconds) or None
        # Whoever else waits has every second turn.
        self._hurried_last = False
        queues = [self._front(), *map(self._waiting, others)]
        if front and (not others or self._chosen(queues, self.seconds) == FRONT):
            return None
        return self._turns(others, self.seconds) or None

    def beside(self) -> Mapping[str, Intake]:
        """The intakes of lanes in an epoch of the front, where little waits."""
        active = self._active()
        measured = [self._measured_of(one.lane) for one in active]
        pairs = list(zip(active, measured, strict=True))
        fits = sum(known.expected(one.rows) for one, known in pairs) <= max(_TOGETHER, self.seconds)
        fits = fits and all(one.rows <= known.fitting(_LONGEST) for one, known in pairs)
        found: dict[str, Intake] = {}
        for one in active:
            if fits or not one.rows:
                found |= self.run.turn_of(one, one.rows)
        return found

    @property
    def seconds(self) -> float:
        """The time that a turn may take, so that nobody is late by it (seconds)."""
        bounds = (self.bound_of(lane) for lane in (0, *self.run.reading.queries.lanes))
        shortest = min((bound for bound in bounds if bound is not None), default=None)
        longest = _LONGEST
        if self.queries_of(0) and self.now() - self._front_at < _RECENT:
            # Whoever comes in front waits for about half a turn.
            longest = min(longest, self._front_took)
        if shortest is not None:
            longest = min(longest, shortest / MICROSECONDS["SECOND"] / _PART)
        # Less than an epoch takes whatever its rows would be wasted on that.
        return max(_SHORTEST, self._each, longest)

    def far(self, lanes: Collection[int]) -> bool:
        """Whether some lanes are still far from the present; from now on those come as soon as they can."""
        found = {
            one.lane
            for one in self.backlogs
            if one.lane in lanes and one.rows > self._measured_of(one.lane).fitting(_LONGEST)
        }
        self.hurried |= found
        return bool(found)

    def _turns(self, active: Sequence[Backlog], seconds: float) -> dict[str, Intake]:
        """The turns of lanes that go into one epoch."""
        left = {str(one.lane): one for one in active if one.rows}
        found: dict[str, Intake] = {}
        for one in active:
            if not one.rows:
                found |= self.run.turn_of(one, 0)
        rest = seconds
        # Who would have little time has a turn of its own later.
        while left and rest > seconds / 2:
            queues = [self._waiting(one) for one in left.values()]
            name = self._chosen(queues, rest)
            if name is None:
                break
            one, measured = left.pop(name), self._measured_of(int(name))
            rows = min(one.rows, measured.fitting(rest))
            found |= self.run.turn_of(one, rows)
            # Of the first turns nobody knows how long they take: they are alone.
            rest = rest - measured.expected(rows) if measured.turns else 0.0
        return found

    def _chosen(self, queues: Sequence[QueuedRows], seconds: float) -> str | None:
        choice = POLICIES[self.run.present.settings.scheduling or USUAL_POLICY](queues, seconds)
        return None if choice is None else choice.name

    def _waiting(self, one: Backlog) -> QueuedRows:
        measured, bound = self._measured_of(one.lane), self.bound_of(one.lane)
        return QueuedRows(
            str(one.lane),
            one.rows,
            self._waited(one) or 0.0,
            measured.cost,
            0.0,
            weight=self._weight_in_turns(one.lane),
            passed=measured.passed,
            turn=measured.turn,
            bound=_seconds(bound),
            delay=self._asked_of(one.lane).delay,
        )

    def _front(self) -> QueuedRows:
        measured, bound = self._measured_of(0), self.bound_of(0)
        waited = 0.0 if self._ready_since is None else self.now() - self._ready_since
        return QueuedRows(
            FRONT,
            1,
            waited,
            self._front_took,
            0.0,
            weight=self.weight_of(0),
            passed=measured.passed,
            turn=measured.turn,
            bound=_seconds(bound),
            delay=self._asked_of(0).delay,
        )

    def _weight_in_turns(self, lane: int) -> float:
        """The weight of a lane that has a turn: the usual one of a lane without any that is hurried."""
        return self.weight_of(lane) or USUAL.share

    def _waited(self, one: Backlog) -> float | None:
        """For how long the oldest row has waited that a lane has yet to take (seconds)."""
        if one.oldest is None:
            return None
        return self._age(one.oldest)

    def _age(self, epoch: int) -> float:
        """The time since an epoch took its rows (seconds), or the oldest one whose results are kept."""
        results, clock = self.run.results, self.run.present.settings.clock
        if not results:
            return 0.0
        place = min(max(epoch - results[0].epoch, 0), len(results) - 1)
        return max(0, clock.now() - results[place].clock) / MICROSECONDS["SECOND"]

    def _notice(self, *, front: bool) -> None:
        """Who begins to wait now has no claim on the time in which nothing of it waited."""
        queues = {one.lane: self._waiting(one) for one in self._active()}
        if front:
            queues[0] = self._front()
        others = [queue for lane, queue in queues.items() if lane in self._waited_before]
        for lane in queues.keys() - self._waited_before:
            measured = self._measured_of(lane)
            measured.passed = joined(max(measured.passed, 0.0 if others else self._reached), others)
        self._waited_before = {*queues}

    def _wait(self, *, front: bool) -> None:
        """See since when something waits in front."""
        if not front:
            self._ready_since, self._came, self._last = None, None, 0.0
        elif self._ready_since is None:
            self._ready_since = self.now()
            # What is there right after an epoch has come while it ran, in the mean at half of its time.
            self._came = self._ready_since - self._last / 2

    def _measured_of(self, lane: int) -> Measured:
        return self._measured.setdefault(lane, Measured())

    def note(self, intakes: Mapping[str, Intake], before: PublishedRun, seconds: float) -> None:
        """Take in an epoch.

        Args:
            intakes: what it took.
            before: the run before it.
            seconds: how long it took.
        """
        if not (self.run.reading.queries.lanes or self.priorities):
            self._looked = self.now(), ()
            return
        rows: dict[int, int] = {}
        for name, one in intakes.items():
            lane = lane_of(name) or 0
            rows[lane] = rows.get(lane, 0) + (one.end - one.start if lane else 0)
        rows = rows or {0: 0}
        self._turn += 1
        worked = seconds_by_lane(before, self.run.reading)
        # Besides its operators an epoch takes time to be read, written and planned, for all alike.
        each = max(0.0, seconds - sum(worked.values()))
        self._each += _NEWEST * (each - self._each)
        rest = each / len(rows)
        for lane, late, count in self._lateness(intakes, before, seconds):
            self._qos.note(self._graphs(lane), late, count, self.now())
        for lane, count in rows.items():
            own = worked.get(lane, 0.0)
            self._qos.note_time(lane, own + rest, self.now())
            if count or not lane:
                measured = self._measured_of(lane)
                self._reached = measured.passed
                measured.note(self._turn, count, own, own + rest, self._weight_in_turns(lane))
            if not lane:
                self._front_took += _NEWEST * (own + rest - self._front_took)
                self._ready_since, self._came, self._front_at = None, None, self.now()
        self._last = seconds
        self._forget()
        self.look()

    def _lateness(
        self, intakes: Mapping[str, Intake], before: PublishedRun, seconds: float
    ) -> Iterator[tuple[int, float, int]]:
        """The lateness of the answers of an epoch's rows: the lane, seconds, the number of rows."""
        for name, one in intakes.items():
            if (lane := lane_of(name)) is not None:
                yield from ((lane, self._age(file.first), rows) for file, rows in kept_rows(one))
        if rows := rows_in_front(before, self.run.reading):
            yield 0, seconds if self._came is None else self.now() - self._came, rows

    def _graphs(self, lane: int) -> dict[str, QosGraph]:
        """The delay graphs of those queries of a lane that have one."""
        graphs = {query: self.priority_of(query).delay for query in self.queries_of(lane)}
        return {query: graph for query, graph in graphs.items() if graph is not None}

    def look(self) -> None:
        """Let `status` say what there is now."""
        reading, priorities, known = self.run.reading, self.priorities, self._looked_at
        if known is None or known[0] is not reading or known[1] is not priorities:
            self._looked_at = reading, priorities
            self._looked = self.now(), tuple(self._lanes())

    def _forget(self) -> None:
        """Forget lanes that are gone."""
        lanes = self.run.reading.queries.lanes
        self._measured = {lane: one for lane, one in self._measured.items() if not lane or lane in lanes}
        graphs = {query: graph for lane in (0, *lanes) for query, graph in self._graphs(lane).items()}
        self._qos.keep(lanes, graphs)
        self.hurried &= lanes.keys()
        self._patience = {lane: turns for lane, turns in self._patience.items() if lane in lanes}

    def relief(self) -> Placement | None:
        """The change by which the query goes behind that makes others late; None where nobody is late by one.

        Rows that come while an epoch runs wait for it and for the next one.
        """
        bound = self.bound_of(0) if self.priorities else None
        if bound is None or 2 * self._front_took * MICROSECONDS["SECOND"] <= bound:
            return None
        took = seconds_of(self.run.reading)
        bounds = {name: self.priority_of(name).latency for name in took}
        patient = [
            name
            for name, own in bounds.items()
            if (own is None or own > bound) and may_be_behind(self.run.reading, name) is None
        ]
        heaviest = max(patient, key=took.__getitem__, default=None)
        whole = sum(took.values())
        if heaviest is None or not took[heaviest] or took[heaviest] < _HEAVY * whole:
            return None
        self._front_took -= self._front_took * took[heaviest] / whole
        return Placement((heaviest,), behind=True)

    def returning(self) -> Placement | None:
        """The change by which queries come back that have no weight, or have different priorities by now.

        None where there are none, or where there is no time for them in front.
        """
        for one in self.backlogs:
            names = self.queries_of(one.lane)
            priorities = {self.priority_of(name) for name in names}
            if one.is_present and (len(priorities) > 1 or self._is_calm(one.lane, priorities)):
                return Placement(names, behind=False)
        return None

    def _is_calm(self, lane: int, priorities: Collection[Priority]) -> bool:
        """Whether there is time in front for queries that went behind by themselves."""
        if any(priority.weight is not None for priority in priorities):
            return False
        measured, bound = self._measured_of(lane), self.bound_of(0)
        if measured.turns < self._patience.get(lane, _CALM):
            return False
        expected = self._front_took + measured.took / max(1, measured.turns)
        if bound is None or expected * MICROSECONDS["SECOND"] <= _EASY * bound:
            return True
        self._patience[lane] = measured.turns + _CALM
        return False

    def placement(self) -> Placement | None:
        """The change by which queries get lanes of their own that have a weight; None where all have."""
        wanted: dict[Priority, list[str]] = {}
        for name in self.queries_of(0) if self.priorities else ():
            priority = self.priority_of(name)
            if priority.weight is not None and may_be_behind(self.run.reading, name) is None:
                wanted.setdefault(priority, []).append(name)
        return next((Placement(tuple(names), behind=True) for names in wanted.values()), None)

    def _lanes(self) -> Iterator[LaneStatus]:
        if self.run.reading.queries.lanes or self.priorities:
            yield self._status(0, 0, None)
        for one in self.backlogs:
            yield self._status(one.lane, one.rows, self._waited(one))

    def _status(self, lane: int, rows: int, behind: float | None) -> LaneStatus:
        measured, asked = self._measured_of(lane), self._asked_of(lane)
        name_of = self.run.reading.queries.name_of
        whole = sum(self.weight_of(one) for one in (0, *self.run.reading.queries.lanes))
        return LaneStatus(
            lane,
            tuple(map(name_of, asked.queries)),
            self.weight_of(lane),
            asked.bound,
            rows,
            behind,
            measured.turns,
            measured.rows,
            measured.took,
            measured.cost,
            self.weight_of(lane) / whole,
            self._qos.share_of(lane, self.now()),
            None if asked.urgent is None else name_of(asked.urgent),
            bool(lane) and asked.by_itself,
            tuple(self._qos.worth(asked.queries, name_of, self.now())),
        )


def _seconds(bound: int | None) -> float | None:
    return None if bound is None else bound / MICROSECONDS["SECOND"]
