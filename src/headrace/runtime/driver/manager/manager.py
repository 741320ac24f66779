"""The manager of a run: after a commit it looks whether the sizes of windows and granules still do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, sizes_in
from headrace.errors import UserError
from headrace.lowering.graph import Graph
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.looks import RowsWaiting
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import LOG
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns
from headrace.runtime.driver.facts.sizes import window_status
from headrace.runtime.driver.facts.working_set import fitting_rows
from headrace.runtime.driver.manager.below import WindowsBelow, windows_below
from headrace.runtime.driver.manager.forecast import FEW_COMMITS, NOTHING, Forecast
from headrace.runtime.driver.manager.managed import Managed, ManagedTime, ManagedWindow
from headrace.runtime.driver.manager.policy import PARTS, Budget, Decision, Knobs, decided, given_out
from headrace.runtime.driver.manager.processing import NOT_EXPECTED, Processing
from headrace.runtime.driver.manager.resources import Resource
from headrace.runtime.driver.manager.room import ExpectedOperator, Room, Share, columns_of, expected_operators
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.journal.held_state import held
from headrace.time import TimeDomain

Users = Callable[[], Mapping[Tuning, Sequence[str]]]
"""The identities of the queries that have windows whose sizes may change, paused ones included."""

LookAtColumns = Callable[[WantedColumns], SeenRun]
"""Says what a run has seen of streams."""

NOBODY: Final[Mapping[Tuning, Sequence[str]]] = {}
NOTHING_WAITS: Final[RowsWaiting] = {}


_sizes_in: Final = ByObject(sizes_in, REMEMBERED)


class Manager:
    """Keeps the state and the processor time of a run within limits, by the sizes of windows within bounds.

    Args:
        users: says who has such windows.

    Attributes:
        found: what was found after the last commit; None without limits, before the first commit, and until
            enough rows were counted after a restart.
    """

    def __init__(self, users: Users = lambda: NOBODY) -> None:
        self._users = users
        self._forecast = Forecast()
        self._processing = Processing(self._forecast)
        self._lacks = False
        self._commits = 0
        self._epochs = 0
        self.found: Managed | None = None

    def after(self, run: PublishedRun, how: RunSettings, waiting: RowsWaiting = NOTHING_WAITS) -> Tune | None:
        """Look at a run after a commit.

        Args:
            run: what is to be seen of it.
            how: its settings.
            waiting: the rows that wait for the next epoch, by live stream.

        Returns:
            The change of sizes that is to follow; None where there is none.
        """
        self._forecast.follow(run)
        is_new, self._epochs = run.totals.epochs != self._epochs, run.totals.epochs
        self._commits += is_new
        managing = how.managing
        if not how.has_limits or managing is Managing.OFF:
            self.found = None
            self._forecast.forget()
            self._processing.forget()
            return None
        if how.processing_limit is None:
            self._processing.forget()
        elif is_new:
            self._processing.measure(run, waiting)
        if not self._forecast.is_ready():
            self.found = None
            return None
        if is_new:
            self._forecast.measure(run)
        budgets = self._budgets(run, how)
        if how.memory_limit is None and Resource.TIME not in budgets:
            self.found = None
            return None
        knobs = self._knobs(run)
        if how.processing_limit is not None and Resource.TIME not in budgets:
            # Nothing is enlarged while it is not known whether there is time for that.
            knobs = replace(knobs, settled=np.zeros_like(knobs.settled))
        decision = decided(tuple(budgets.values()), knobs)
        self.found = self._managed(run, decision, how, tuple(budgets))
        self._tell(self.found)
        if managing is not Managing.ACT or (decision.values == knobs.values).all():
            return None
        if self._commits < FEW_COMMITS:
            # After a restart the first measurements alone are no reason to change what was found good.
            return None
        return self._change(run, knobs, decision, how)

    def _budgets(self, run: PublishedRun, how: RunSettings) -> dict[Resource, Budget]:
        """The limits: that of memory first, which lets anything be where there is none."""
        limit = math.inf if how.memory_limit is None else how.memory_limit
        found = {Resource.MEMORY: Budget(self._forecast.load(run), limit, run.totals.working)}
        if how.processing_limit is not None and self._processing.is_ready():
            found[Resource.TIME] = Budget(self._processing.load(run), how.processing_limit)
        return found

    def begin(self, run: PublishedRun) -> None:
        """Look at a run before its first commit in this process: nobody counted what has come by then."""
        self._forecast.follow(run)
        self._epochs = run.totals.epochs

    def rate(self, stream: str) -> float:
        """How many rows of a stream come now (per instant), as sizes are decided by."""
        return self._forecast.rate(stream)

    def _knows(self, run: PublishedRun) -> bool:
        """Whether enough was seen of a run to refuse something for what is expected of it."""
        self._forecast.follow(run)
        return self._commits >= FEW_COMMITS and self._forecast.is_ready()

    def check_limits(self, run: PublishedRun, how: RunSettings) -> None:
        """Refuse limits below what a run needs with the smallest windows.

        Args:
            run: what is to be seen of it.
            how: settings that have the limits.

        Raises:
            UserError: one is, with the numbers.
        """
        if not self._knows(run):
            return
        for resource in Resource:
            limit, uses = resource.limit_of(how), self._uses(resource, run)
            if limit is None or uses is None:
                continue
            least, working = uses[0], self._working(resource, run)
            part = given_out(limit, working)
            if least > part:
                needed, whole, rest = map(resource.text, (least, limit, part))
                use = "are for state" if resource is Resource.MEMORY else "are given out"
                raise UserError(
                    f"the queries that run need about {needed} with their smallest windows, and of "
                    f"{whole} only {rest} {use}",
                    hint=resource.ways_on(least, working, how.cores),
                )

    def room(
        self,
        run: PublishedRun,
        other: QuerySet,
        queries: Sequence[str],
        look: LookAtColumns,
        how: RunSettings,
    ) -> Room | None:
        """The state and the time that are expected of queries that are not there yet.

        Args:
            run: the run before them.
            other: all queries with them.
            queries: the identities of those that are new.
            look: says what the run has seen of streams.
            how: the run's settings.

        Returns:
            None where too little was seen yet of how rows come.
        """
        if not self._knows(run):
            return None
        plans = [other.plans[name] for name in queries]
        sizes = {name: seen.rows for name, seen in run.totals.arrivals.items()}
        expected = expected_operators(plans, look(columns_of(plans)), sizes)
        then = other.graph, windows_below(other.graph)
        kept = {shape: one.size for shape, one in expected.items() if one.size}
        guesses = self._forecast.guesses(run, then[1], kept)
        shares = []
        for resource in Resource:
            before = self._uses(resource, run)
            after = self._uses(resource, run, then, expected, guesses)
            if before is None or after is None:
                continue
            least, now, most = (more - less for more, less in zip(after, before, strict=True))
            limit = resource.limit_of(how) if how.managing is Managing.ACT else None
            if resource is Resource.MEMORY or limit is not None:
                working = self._working(resource, run)
                shares.append(Share(resource, least, now, most, before[0], limit, working, how.cores))
        return Room(tuple(map(other.name_of, queries)), tuple(shares), guesses)

    def expect(self, room: Room | None) -> None:
        """Go by what is expected of queries that begin with the next change; of None nothing is."""
        self._forecast.expect({} if room is None else room.guesses)

    def _uses(
        self,
        resource: Resource,
        run: PublishedRun,
        other: tuple[Graph, WindowsBelow] | None = None,
        expected: Mapping[str, ExpectedOperator] = NOT_EXPECTED,
        guesses: Mapping[str, float] = NOTHING,
    ) -> tuple[float, float, float] | None:
        """The need with the smallest windows, those of now, and the largest; None if not known."""
        if resource is Resource.MEMORY:
            return self._forecast.uses(run, other, guesses)
        if not self._processing.is_ready():
            return None
        return self._processing.uses(run, None if other is None else other[0], expected)

    def _working(self, resource: Resource, run: PublishedRun) -> float:
        return run.totals.working if resource is Resource.MEMORY else 0.0

    def _knobs(self, run: PublishedRun) -> Knobs:
        below, known = self._forecast.below, run.queries.tunings
        least, most = below.bounds
        values, settled = most.copy(), np.ones(len(most), dtype=np.bool_)
        for number, (tuning, _) in enumerate(below.tunings if known else ()):
            if (found := known.get(tuning)) is not None and found.steps:
                values[number] = found.steps[-1].value
                settled[number] = self._is_settled(tuning, known)
        return Knobs(least, most, values, settled, *below.granule_steps)

    def _is_settled(self, tuning: Tuning, known: Tunings) -> bool:
        """Whether no row is in windows any more from before their last change, or none yet from after it."""
        steps = known[tuning].steps
        reached = [self._forecast.reached(stream) for stream in tuning.streams]
        if max(now for now, _ in reached) < steps[-1].begin:
            return True
        heartbeat, last = min(heartbeat for _, heartbeat in reached), steps[-1].begin
        if tuning.kind is TuningKind.ROWS:
            return self._forecast.has_taken_effect(tuning, known)
        if tuning.kind is TuningKind.GRANULE:
            return heartbeat >= last + self._forecast.below.above_granules.get(tuning, 0) + tuning.largest
        before = (tuning.largest, *(step.value for step in steps))
        gone = max(step.begin + size for step, size in zip(steps, before, strict=False))
        return heartbeat >= max(gone, last + steps[-1].value)

    def _change(self, run: PublishedRun, knobs: Knobs, decision: Decision, how: RunSettings) -> Tune:
        tunings, asked = self._forecast.below.tunings, self._users()
        here: dict[Tuning, list[str]] = {}
        for name, plan in run.queries.plans.items():
            for tuning in _sizes_in(plan):
                here.setdefault(tuning, []).append(name)
        reason = _reason(decision, how)
        sizes, queries, why = {}, {}, {}
        for number in np.flatnonzero(decision.values != knobs.values).tolist():
            (tuning, domain), size = tunings[number], int(decision.values[number])
            before = int(knobs.values[number])
            sizes[tuning], why[tuning] = size, _why(before, size, tuning.kind, domain, reason)
            paused = [name for name in asked.get(tuning, ()) if name in run.queries.paused]
            queries[tuning] = list(dict.fromkeys((*here.get(tuning, ()), *paused)))
            LOG.info("the %s of %s is %s", tuning.kind.noun, " and ".join(tuning.streams), why[tuning])
        return Tune(sizes, queries, why)

    def _managed(
        self, run: PublishedRun, decision: Decision, how: RunSettings, resources: Sequence[Resource]
    ) -> Managed:
        tunings, needs = self._forecast.below.tunings, dict(zip(resources, decision.needs, strict=True))
        memory, time = needs[Resource.MEMORY], needs.get(Resource.TIME)
        found = None
        if time is not None and how.processing_limit is not None:
            used = self._processing.used
            found = ManagedTime(how.processing_limit, used, time.now, time.least, time.most, time.missing)
        return Managed(
            how.memory_limit,
            how.managing,
            held(run.state).sizes.size,
            run.totals.working,
            fitting_rows(run.totals, how),
            memory.now,
            decision.point.part / PARTS,
            memory.least,
            memory.most,
            memory.missing,
            found,
            resources[decision.tightest],
            lambda: _windows(tunings, run.queries.tunings, decision),
        )

    def _tell(self, found: Managed) -> None:
        """Log that there is too little of something, once until there is enough."""
        if found.lacking and not self._lacks:
            LOG.warning("%s", "; ".join(found.lacking))
        self._lacks = bool(found.lacking)


def _windows(
    tunings: Sequence[tuple[Tuning, TimeDomain]], known: Tunings, decision: Decision
) -> tuple[ManagedWindow, ...]:
    return tuple(
        ManagedWindow(window_status(tuning, known), domain, int(decision.values[number]))
        for number, (tuning, domain) in enumerate(tunings)
    )


def _why(before: int, size: int, kind: TuningKind, domain: TimeDomain, reason: str) -> str:
    """Why windows get another size, or granules another length, as people are told."""
    what = "shrunk" if size < before else "enlarged"
    if kind is TuningKind.GRANULE:
        what = "made finer" if size < before else "made coarser"
    return (
        f"{what} from {kind.text(before, domain)} to {kind.text(size, domain)} by the manager, since {reason}"
    )


def _reason(decision: Decision, how: RunSettings) -> str:
    """Why numbers change: what was expected, and the limit of it that decides."""
    resource = list(Resource)[decision.tightest]
    limit = resource.limit_of(how)
    expected = resource.text(decision.needs[decision.tightest].now)
    what = "of state were expected" if resource is Resource.MEMORY else "were expected to be needed"
    limited = "" if limit is None else f", and {resource.value} is {resource.text(limit)}"
    return f"{expected} {what}{limited}"
