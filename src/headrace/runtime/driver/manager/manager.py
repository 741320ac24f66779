"""The manager of a run's memory: after a commit it looks whether the sizes of windows still do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.tunings.tunings import Tuning, Tunings, windows_in
from headrace.byte_sizes import format_bytes
from headrace.errors import UserError
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import LOG
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns
from headrace.runtime.driver.facts.sizes import window_status
from headrace.runtime.driver.manager.forecast import FEW_COMMITS, Forecast
from headrace.runtime.driver.manager.managed import Managed, ManagedWindow
from headrace.runtime.driver.manager.policy import PARTS, USED, Decision, Knobs, decided
from headrace.runtime.driver.manager.room import Room, columns_of, expected_bytes, ways_on
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.journal.held_state import held
from headrace.steps import StepFunction
from headrace.time import TimeDomain, format_length

Users = Callable[[], Mapping[Tuning, Sequence[str]]]
"""The identities of the queries that have windows whose sizes may change, paused ones included."""

LookAtColumns = Callable[[WantedColumns], SeenRun]
"""Says what a run has seen of streams."""

NOBODY: Final[Mapping[Tuning, Sequence[str]]] = {}


_windows_in: Final = ByObject(windows_in, REMEMBERED)


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
        decision = decided(self._forecast.load(run), knobs, limit)
        self.found = self._managed(run, knobs, decision, limit, managing)
        self._tell(self.found)
        if managing is not Managing.ACT or (decision.sizes == knobs.sizes).all():
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
        least, _, _ = self._forecast.uses(run)
        if least > USED * limit:
            raise UserError(
                f"the queries that run need about {format_bytes(least)} with their smallest windows, and of "
                f"{format_bytes(limit)} only {format_bytes(USED * limit)} are for state",
                hint=ways_on(least),
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
        before, after = self._forecast.uses(run), self._forecast.uses(run, other.graph, expected)
        least, now, most = (more - less for more, less in zip(after, before, strict=True))
        return Room(tuple(map(other.name_of, queries)), least, now, most, before[0], limit)

    def _knobs(self, run: PublishedRun) -> Knobs:
        below, known = self._forecast.below, run.queries.tunings
        smallest, largest = below.bounds
        sizes, settled = largest.copy(), np.ones(len(largest), dtype=np.bool_)
        for number, (tuning, _) in enumerate(below.tunings if known else ()):
            if (found := known.get(tuning)) is not None and found.steps:
                sizes[number] = found.steps[-1].value
                settled[number] = self._is_settled(tuning, found.steps)
        return Knobs(smallest, largest, sizes, settled)

    def _is_settled(self, tuning: Tuning, steps: StepFunction) -> bool:
        """Whether no row is in windows any more from before their last change, or none yet from after it."""
        reached = [self._forecast.reached(stream) for stream in tuning.streams]
        if max(now for now, _ in reached) < steps[-1].begin:
            return True
        before = (tuning.largest, *(step.value for step in steps))
        gone = max(step.begin + size for step, size in zip(steps, before, strict=False))
        return min(heartbeat for _, heartbeat in reached) >= max(gone, steps[-1].begin + steps[-1].value)

    def _change(self, run: PublishedRun, knobs: Knobs, decision: Decision, limit: int) -> Tune:
        tunings, asked = self._forecast.below.tunings, self._users()
        here: dict[Tuning, list[str]] = {}
        for name, plan in run.queries.plans.items():
            for tuning in _windows_in(plan):
                here.setdefault(tuning, []).append(name)
        sizes, queries, why = {}, {}, {}
        for number in np.flatnonzero(decision.sizes != knobs.sizes).tolist():
            (tuning, domain), size = tunings[number], int(decision.sizes[number])
            before = int(knobs.sizes[number])
            sizes[tuning], why[tuning] = size, _why(before, size, domain, decision, limit)
            paused = [name for name in asked.get(tuning, ()) if name in run.queries.paused]
            queries[tuning] = list(dict.fromkeys((*here.get(tuning, ()), *paused)))
            LOG.info("the window of %s is %s", " and ".join(tuning.streams), why[tuning])
        return Tune(sizes, queries, why)

    def _managed(
        self, run: PublishedRun, knobs: Knobs, decision: Decision, limit: int, managing: Managing
    ) -> Managed:
        tunings = self._forecast.below.tunings
        return Managed(
            limit,
            managing,
            held(run.state).sizes.size,
            decision.now,
            decision.part / PARTS,
            decision.least,
            decision.most,
            decision.missing,
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
        ManagedWindow(window_status(tuning, known), domain, int(decision.sizes[number]))
        for number, (tuning, domain) in enumerate(tunings)
    )


def _why(before: int, size: int, domain: TimeDomain, decision: Decision, limit: int) -> str:
    """Why windows get another size, as people are told."""
    what = "shrunk" if size < before else "enlarged"
    return (
        f"{what} from {format_length(before, domain)} to {format_length(size, domain)} by the manager, since "
        f"{format_bytes(decision.now)} of state were expected, and memory_limit is {format_bytes(limit)}"
    )
