"""The shedder of a run: after a commit it looks whether rows are to be left out, so that the run keeps up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import Tuning, TuningKind, movable_in, size_of
from headrace.language.parsing.statements.losses import loss_from
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.capacity import room
from headrace.runtime.driver.facts.looks import RowsWaiting
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import LOG
from headrace.runtime.driver.manager.manager import NOBODY, Users
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.driver.shedder.bounds_seen import BoundsSeen, LastSaid, drained_from, heartbeat_of
from headrace.runtime.driver.shedder.findings import TIMES, Shedding, ShedShare, why_changed, why_given_back
from headrace.runtime.driver.shedder.policy import Pressure, ShareKnob, shares_at, shares_wanted
from headrace.runtime.driver.shedder.recent import MeasuredLoad, RecentLoad
from headrace.runtime.driver.shedder.usual_sizes import rescaled, usual_sizes
from headrace.runtime.driver.shedder.values_seen import values_seen
from headrace.runtime.intake.streams import BoundedStream
from headrace.time import BEGINNING, INFINITY, MICROSECONDS

FIRST_COMMITS: Final = 2
"""After so many commits a run is looked at."""
_movable_in: Final = ByObject(movable_in, REMEMBERED)
_IDLE: Final = MeasuredLoad(0.0, None, {}, {})


class Shedder:
    """Keeps a run from falling behind, by which rows are kept of queries that bear loss.

    Those are a share of the rows, or the ones that are worth enough by their values.

    Args:
        users: says who has such shares or thresholds, paused queries included.

    Attributes:
        found: what was found after the last commit; None without a bound, and before the first commit.
    """

    def __init__(self, users: Users = lambda: NOBODY) -> None:
        self._users = users
        self._recent = RecentLoad()
        self._commits = 0
        self._bounds = BoundsSeen()
        self.found: Shedding | None = None

    def after(self, run: PublishedRun, how: RunSettings, waiting: RowsWaiting, said: LastSaid) -> Tune | None:
        """Look at a run after a commit.

        Args:
            run: what is to be seen of it.
            how: its settings.
            waiting: the rows that wait for the next epoch, by live stream.
            said: says what the commit brought to a query's answer.

        Returns:
            The change of shares and thresholds that is to follow; None where there is none.
        """
        return self._after(run, how, waiting, said) or rescaled(run)

    def _after(
        self, run: PublishedRun, how: RunSettings, waiting: RowsWaiting, said: LastSaid
    ) -> Tune | None:
        bound, mode = how.latency_bound, how.shedding
        if bound is None or mode is Managing.OFF or _reads_all_it_can(run):
            self.found = None
            self._recent.forget()
            return self._given_back(run, how)
        seconds = bound / MICROSECONDS["SECOND"]
        # The first epochs of a process load and compile what later ones use.
        self._commits += 1
        if self._commits > FIRST_COMMITS:
            self._recent.note(run, waiting, seconds)
        load = self._recent.load(run, seconds)
        users = _users_in(run.queries.plans)
        pressure = None if load is None else Pressure(load.needed, load.behind, seconds)
        self._bounds.look(run, users, said)
        knobs = self._knobs(run, users, load or _IDLE)
        wanted = tuple(knob.share for knob in knobs.values())
        if pressure is not None:
            wanted = shares_wanted(pressure, tuple(knobs.values()))
        self.found = _findings(run, bound, mode, load, knobs, wanted)
        changed = {one.tuning: one.number(one.wanted) for one in self.found.shares if one.wanted != one.share}
        if mode is not Managing.ACT:
            return self._given_back(run, how)
        if not changed or load is None:
            return None
        self._recent.forget()
        sizes = {tuning: (size_of(tuning, run.queries.tunings), number) for tuning, number in changed.items()}
        why = {tuning: why_changed(*pair, load.needed, load.behind, bound) for tuning, pair in sizes.items()}
        return self._change(run, changed, users, why)

    def _given_back(self, run: PublishedRun, how: RunSettings) -> Tune | None:
        """All rows are kept again of what a shedder had lowered that is there no more."""
        if how.latency_bound is not None and how.shedding is Managing.ACT:
            return None
        users, known = _users_in(run.queries.plans), run.queries.tunings
        lowered = [one for one in users if size_of(one, known) != one.first and known[one].why]
        if not lowered:
            return None
        since = "there is no latency_bound"
        if how.latency_bound is not None:
            since = "the shedder is off" if how.shedding is Managing.OFF else "the shedder only advises"
        why = {tuning: why_given_back(size_of(tuning, known), tuning.first, since) for tuning in lowered}
        return self._change(run, {tuning: tuning.first for tuning in lowered}, users, why)

    def _knobs(
        self, run: PublishedRun, users: Mapping[Tuning, Mapping[str, Plan]], load: MeasuredLoad
    ) -> dict[Tuning, ShareKnob]:
        """The knobs of all that leaves out rows."""
        seen = values_seen(run.queries.graph, run.statistics)
        found: dict[Tuning, ShareKnob] = {}
        for tuning, plans in users.items():
            number, cost = size_of(tuning, run.queries.tunings), load.costs.get(tuning, 0.0)
            drained = _has_drained(run, tuning, plans.values())
            if tuning in seen:
                found[tuning] = seen[tuning].knob(number, cost, len(plans), drained)
            else:
                utility, least = loss_from(tuning.loss).utility, self._bounds.least(tuning, number)
                found[tuning] = ShareKnob(number, cost, utility, len(plans), least, drained)
        return found

    def _change(
        self,
        run: PublishedRun,
        changed: Mapping[Tuning, int],
        users: Mapping[Tuning, Mapping[str, Plan]],
        why: Mapping[Tuning, str],
    ) -> Tune:
        asked, queries = self._users(), {}
        for tuning in changed:
            paused = [name for name in asked.get(tuning, ()) if name in run.queries.paused]
            queries[tuning] = list(dict.fromkeys((*users[tuning], *paused)))
            what = "share" if tuning.kind is TuningKind.SHARE else "least utility"
            LOG.info(
                "the %s of rows of %s that are kept was %s", what, " and ".join(tuning.streams), why[tuning]
            )
        return Tune(changed, queries, why, usual_sizes(run, changed))


def _reads_all_it_can(run: PublishedRun) -> bool:
    """Whether streams that end are read, which takes all the time there is and makes nobody wait."""
    return any(
        isinstance(stream, BoundedStream) and run.points[name].heartbeat != INFINITY
        for name, stream in run.streams.items()
    )


def _users_in(plans: Mapping[str, Plan]) -> dict[Tuning, dict[str, Plan]]:
    """The queries that bear loss, by what says which share of their rows is kept."""
    found: dict[Tuning, dict[str, Plan]] = {}
    for name, plan in plans.items():
        for tuning in _movable_in(plan):
            found.setdefault(tuning, {})[name] = plan
    return found


def _has_drained(run: PublishedRun, tuning: Tuning, plans: Iterable[Plan]) -> bool:
    """Whether no row is in windows from before the last change of a share."""
    known = run.queries.tunings.get(tuning)
    if known is None or not known.steps:
        return True
    # Where no row has come of which the share is kept, it has no effect to wait for.
    points = [run.points[name] for name in tuning.streams]
    newest = max(point.time.latest if point.time.rows else BEGINNING for point in points)
    return newest < known.steps[-1].begin or heartbeat_of(run, tuning) >= drained_from(run, tuning, plans)


def _findings(
    run: PublishedRun,
    bound: int,
    mode: Managing,
    load: MeasuredLoad | None,
    knobs: Mapping[Tuning, ShareKnob],
    wanted: Sequence[int],
) -> Shedding:
    tunings = run.queries.tunings
    domains = {tuning: plan.domain for plan in run.queries.plans.values() for tuning in _movable_in(plan)}
    at = [_at(times, load, knobs) for times in TIMES]
    shares = []
    for place, (tuning, knob) in enumerate(knobs.items()):
        known = tunings.get(tuning)
        since = known.steps[-1].begin if known is not None and known.steps else BEGINNING
        shares.append(
            ShedShare(
                tuning,
                domains[tuning],
                knob,
                since,
                wanted[place],
                tuple(found[place] for found in at),
                "" if known is None else known.why,
            )
        )
    if load is None:
        return Shedding(bound, mode, None, None, None, tuple(shares))
    verdict = room(load.needed, 1.0)
    return Shedding(bound, mode, load.needed, load.behind, verdict, tuple(shares), load.rates)


def _at(times: int, load: MeasuredLoad | None, knobs: Mapping[Tuning, ShareKnob]) -> tuple[int, ...]:
    """The shares that would be kept at so many times the load."""
    if load is None:
        return tuple(knob.share for knob in knobs.values())
    larger = [replace(knob, cost=times * knob.cost) for knob in knobs.values()]
    return shares_at(times * load.needed, 1.0, larger)
