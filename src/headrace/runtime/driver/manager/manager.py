"""The manager of a run: after a commit it looks whether the sizes of windows and granules still do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, sizes_in
from headrace.byte_sizes import format_bytes
from headrace.errors import UserError
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import LOG
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns
from headrace.runtime.driver.facts.sizes import window_status
from headrace.runtime.driver.facts.working_set import fitting_rows
from headrace.runtime.driver.manager.below import windows_below
from headrace.runtime.driver.manager.forecast import FEW_COMMITS, Forecast
from headrace.runtime.driver.manager.managed import Managed, ManagedWindow
from headrace.runtime.driver.manager.policy import PARTS, Budget, Decision, Knobs, decided, given_out
from headrace.runtime.driver.manager.room import Room, columns_of, expected_bytes, ways_on
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.journal.held_state import held
from headrace.time import TimeDomain

Users = Callable[[], Mapping[Tuning, Sequence[str]]]
"""The identities of the queries that have windows whose sizes may change, paused ones included."""

LookAtColumns = Callable[[WantedColumns], SeenRun]
"""Says what a run has seen of streams."""

NOBODY: Final[Mapping[Tuning, Sequence[str]]] = {}


_sizes_in: Final = ByObject(sizes_in, REMEMBERED)


class Manager:
    """Keeps the state of a run within its limit, by the sizes of windows within bounds.

    Args:
        users: says who has such windows.

    Attributes:
        found: what was found after the last commit; None without a limit, before the first commit, and until
            enough rows were counted after a restart.
    """

    def __init__(self, users: Users = lambda: NOBODY) -> None:
        self._users = users
        self._forecast = Forecast()
        self._lacks = False
        self._commits = 0
        self._epochs = 0
        self.found: Managed | None = None

    def after(self, run: PublishedRun, how: RunSettings) -> Tune | None:
        """Look at a run after a commit.

        Args:
            run: what is to be seen of it.
            how: its settings.

        Returns:
            The change of sizes that is to follow; None where there is none.
        """
        self._forecast.follow(run)
        is_new, self._epochs = run.totals.epochs != self._epochs, run.totals.epochs
        self._commits += is_new
        limit, managing = how.memory_limit, how.managing
        if limit is None or managing is Managing.OFF:
            self.found = None
            self._forecast.forget()
            return None
        if not self._forecast.is_ready():
            self.found = None
            return None
        if is_new:
            self._forecast.measure(run)
        knobs = self._knobs(run)
        decision = decided((Budget(self._forecast.load(run), limit, run.totals.working),), knobs)
        self.found = self._managed(run, decision, limit, how)
        self._tell(self.found)
        if managing is not Managing.ACT or (decision.values == knobs.values).all():
            return None
        if self._commits < FEW_COMMITS:
            # After a restart the first measurements alone are no reason to change what was found good.
            return None
        return self._change(run, knobs, decision, limit)

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

    def check_limit(self, run: PublishedRun, limit: int) -> None:
        """Refuse a limit below what a run needs with the smallest windows.

        Args:
            run: what is to be seen of it.
            limit: how many bytes of state there may be.

        Raises:
            UserError: it is, with the numbers.
        """
        if not self._knows(run):
            return
        (least, _, _), working = self._forecast.uses(run), run.totals.working
        part = given_out(limit, working)
        if least > part:
            raise UserError(
                f"the queries that run need about {format_bytes(least)} with their smallest windows, and of "
                f"{format_bytes(limit)} only {format_bytes(part)} are for state",
                hint=ways_on(least, working),
            )

    def room(
        self,
        run: PublishedRun,
        other: QuerySet,
        queries: Sequence[str],
        look: LookAtColumns,
        limit: int | None,
    ) -> Room | None:
        """The state that is expected of queries that are not there yet.

        Args:
            run: the run before them.
            other: all queries with them.
            queries: the identities of those that are new.
            look: says what the run has seen of streams.
            limit: how many bytes of state there may be; any number if None.

        Returns:
            None where too little was seen yet of how rows come.
        """
        if not self._knows(run):
            return None
        plans = [other.plans[name] for name in queries]
        sizes = {name: seen.rows for name, seen in run.totals.arrivals.items()}
        expected = expected_bytes(plans, look(columns_of(plans)), sizes)
        graph = other.graph
        below = windows_below(graph)
        guesses = self._forecast.guesses(run, below, expected)
        before, after = self._forecast.uses(run), self._forecast.uses(run, (graph, below), guesses)
        least, now, most = (more - less for more, less in zip(after, before, strict=True))
        names = tuple(map(other.name_of, queries))
        return Room(names, least, now, most, before[0], limit, run.totals.working, guesses)

    def expect(self, room: Room | None) -> None:
        """Go by what is expected of queries that begin with the next change; of None nothing is."""
        self._forecast.expect({} if room is None else room.guesses)

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

    def _change(self, run: PublishedRun, knobs: Knobs, decision: Decision, limit: int) -> Tune:
        tunings, asked = self._forecast.below.tunings, self._users()
        here: dict[Tuning, list[str]] = {}
        for name, plan in run.queries.plans.items():
            for tuning in _sizes_in(plan):
                here.setdefault(tuning, []).append(name)
        sizes, queries, why = {}, {}, {}
        for number in np.flatnonzero(decision.values != knobs.values).tolist():
            (tuning, domain), size = tunings[number], int(decision.values[number])
            before = int(knobs.values[number])
            sizes[tuning], why[tuning] = size, _why(before, size, tuning.kind, domain, decision, limit)
            paused = [name for name in asked.get(tuning, ()) if name in run.queries.paused]
            queries[tuning] = list(dict.fromkeys((*here.get(tuning, ()), *paused)))
            LOG.info("the %s of %s is %s", tuning.kind.noun, " and ".join(tuning.streams), why[tuning])
        return Tune(sizes, queries, why)

    def _managed(self, run: PublishedRun, decision: Decision, limit: int, how: RunSettings) -> Managed:
        tunings, needs = self._forecast.below.tunings, decision.needs[0]
        return Managed(
            limit,
            how.managing,
            held(run.state).sizes.size,
            run.totals.working,
            fitting_rows(run.totals, how),
            needs.now,
            decision.point.part / PARTS,
            needs.least,
            needs.most,
            needs.missing,
            lambda: _windows(tunings, run.queries.tunings, decision),
        )

    def _tell(self, found: Managed) -> None:
        """Log that there is too little memory, once until there is enough."""
        if found.missing and not self._lacks:
            LOG.warning("%s", found.text)
        self._lacks = bool(found.missing)


def _windows(
    tunings: Sequence[tuple[Tuning, TimeDomain]], known: Tunings, decision: Decision
) -> tuple[ManagedWindow, ...]:
    return tuple(
        ManagedWindow(window_status(tuning, known), domain, int(decision.values[number]))
        for number, (tuning, domain) in enumerate(tunings)
    )


def _why(before: int, size: int, kind: TuningKind, domain: TimeDomain, decision: Decision, limit: int) -> str:
    """Why windows get another size, or granules another length, as people are told."""
    what = "shrunk" if size < before else "enlarged"
    if kind is TuningKind.GRANULE:
        what = "made finer" if size < before else "made coarser"
    return (
        f"{what} from {kind.text(before, domain)} to {kind.text(size, domain)} by the manager, since "
        f"{format_bytes(decision.needs[0].now)} of state were expected, and memory_limit is "
        f"{format_bytes(limit)}"
    )
