"""The driver: cuts bounded inputs into epochs, runs them, commits what they did.

An epoch that did not commit has no effect: its segments are named by nothing. A commit holds the streams'
positions and heartbeats, the manifests of all state, and where the results are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import relations_of
from headrace.algebra.tunings.tunings import followed
from headrace.errors import PlanError, StoreError
from headrace.lowering.behind import lane_of
from headrace.lowering.lower import Holds
from headrace.runtime.driver.change.automatic import exchanged, exchanges_ended, merged
from headrace.runtime.driver.change.migration.adaptation import Following
from headrace.runtime.driver.change.migration.join_order import Reordered, reordered
from headrace.runtime.driver.change.pause import known_in
from headrace.runtime.driver.change.refresh import Refresh
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.turns import turn_of
from headrace.runtime.driver.change.wanted import (
    Redefine,
    Replace,
    RunChange,
    Settle,
    Wanted,
)
from headrace.runtime.driver.epoch.committed import Committed
from headrace.runtime.driver.epoch.cut import reads_relations, share_of, work_of
from headrace.runtime.driver.epoch.effort import Effort
from headrace.runtime.driver.epoch.inputs import columns_of
from headrace.runtime.driver.epoch.passes import run_passes
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import log_exchange, log_passed_over, log_refused
from headrace.runtime.driver.kept.behind import Backlog, backlog
from headrace.runtime.driver.kept.replay import Choose, Found, letters_for
from headrace.runtime.driver.kept.results import Kept
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.driver.stored_queries import stored_queries
from headrace.runtime.intake.streams import BoundedRelation, Intake, ReadAgain, Streams, check_not_rewritten
from headrace.runtime.journal.description import Description, Differences
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.journal.journal import Journal
from headrace.runtime.journal.records import EpochResults, StreamPoint, Totals, result_files
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import EpochWork, TaskReport
from headrace.runtime.tasks.profile import Profile
from headrace.runtime.tasks.runner import Runner


class Run:
    """One run of some queries over some streams.

    Args:
        runner: where the epochs run.
        store: where segments are.
        streams: all streams, by name; those that no query reads are left alone.
        queries: optimized plans by query.
        settings: how it cuts its input, and what it keeps.
        holds: which operators of a query wait for others; none of a query that is not named.
        names: of the queries that have been renamed.

    Attributes:
        profile: the seconds that its epochs have taken.
        keeps_all_rows: whether no rows of streams are let go of, since somebody reads them.
    """

    def __init__(
        self,
        runner: Runner,
        store: Store,
        streams: Streams,
        queries: Mapping[str, Plan],
        settings: RunSettings,
        holds: Mapping[str, Holds] = MappingProxyType({}),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._runner = runner
        begun = QuerySet.begun(queries, settings.look, holds, names)
        self._last = Committed(store, streams, begun, settings, settings.buckets or runner.parallelism)
        self._following = Following(settings.reoptimize_every)
        self._effort = Effort()
        self.keeps_all_rows = False
        self.profile = Profile()

    @property
    def reading(self) -> PublishedRun:
        """What is to be seen of the run since its last commit; replaced as a whole."""
        return self._last.reading

    @property
    def present(self) -> Present:
        """The run between two epochs, for who prepares a change of it."""
        return self._last.present

    @property
    def kept(self) -> Kept:
        """The results that are kept, and which files of the store go."""
        return self._last.kept

    @property
    def totals(self) -> Totals:
        """The counters."""
        return self._last.totals

    def resume(
        self,
        journal: Journal,
        description: Description,
        *,
        adapt: bool = False,
        past: Collection[str] = (),
    ) -> Differences:
        """Go on where a durable store's last commit was, and commit to it from now on.

        Args:
            journal: the store's commits; held until the journal is closed.
            description: what the run is, with all streams.
            adapt: whether a query that the store does not have is added now; it is refused otherwise.
            past: the queries that are left out where the store does not have them, since they are to join.

        Returns:
            What was added and dropped; and what is paused now, since its state is of no use.

        Raises:
            StoreError: a record is damaged, the store is for other queries or streams, or an input is not
                what it was.
        """
        commits = journal.load()
        found = journal.compare(commits, description, adapt=adapt)
        self._last.journal = journal
        self._last.description = description
        if commits:
            self._last.load(commits)
            present = journal.present(commits)
            keeping = {name for name, one in present.paused.items() if one.keeps}
            failed, later = (
                dict(commits[-1].failed),
                ({*past} & {*found.added}) | (keeping & description.answered.keys()),
            )
            self._go_on_with(present, failed, later, found.anew)
            self._last.look_again()
        elif journal.present(commits).catalog != description.catalog:
            # What the store was made for says what is defined until there is a record.
            given, to_pause = self._last.queries, description.to_pause
            now = Wanted(given.plans, self._last.declared, description, given.holds, to_pause)
            self.change(Redefine(now))
        self.sweep_strays()
        return found

    def _go_on_with(
        self, present: Description, failed: dict[str, Reason], later: Collection[str], anew: Collection[str]
    ) -> None:
        """Take over the queries of a store, then change them to those that are given.

        Those that answer later are left out, and those that begin anew, whose state is of no use, paused.
        """
        plans, holds, names = (given := self._last.queries).plans, given.holds, given.names
        self._last.go_on_with(stored_queries(plans, present.forgetting(anew), failed, holds))
        left_out = {*later, *anew}
        asked = self._last.description.without(left_out)
        changed = present.answered.keys() != asked.answered.keys()
        known = self._last.queries.plans
        changed |= any(known[name] != plan for name, plan in plans.items() if name in known)
        # Those that are left out bring the catalog with them when they join.
        changed |= present.catalog != asked.catalog and not left_out
        if changed or not self._last.points.keys() - self._last.streams.keys() <= self._last.declared.keys():
            wanted = {name: plan for name, plan in plans.items() if name not in left_out}
            now = Wanted(wanted, self._last.declared, asked, holds, asked.to_pause, names)
            self.change(Redefine(now, known=known_in(present)))

    def change(self, change: RunChange) -> None:
        """Be another run from now on; what goes on keeps its state.

        But for settings a change is an epoch of its own, without input: it counts when its record is there.

        Args:
            change: what is asked for.

        Raises:
            PlanError: all of an answer is final that is to be replaced.
            UserError: a query has no state that it could take over.
            StoreError: the record cannot be written; nothing has changed then.
        """
        if isinstance(change, Settle):
            self._settle(change.settings, change.max_dead_letters)
            return
        started = time.perf_counter()
        self._last.turn(turn_of(self._last.present, change), started)
        if isinstance(change, Replace):
            self.end_exchanges()

    def beside(self, name: str, plan: Plan, streams: Streams) -> Run:
        """A run of one query, in the same store; its operators can go on in this one.

        Args:
            name: the query's.
            plan: its plan.
            streams: what it reads.

        Raises:
            UserError: a file of a relation that it reads has changed.
        """
        for leaf in relations_of(plan):
            check_not_rewritten(leaf.name, streams.get(leaf.name))
        how = replace(self._last.settings, buckets=self._last.buckets, retain=None)
        return Run(self._runner, self._last.store, streams, {name: plan}, how)

    def follow_sizes(self, other: Run) -> None:
        """Let windows within bounds have the sizes of the run that this one is beside; see `followed`."""
        known, now = self._last.queries, other.reading.queries
        self._last.tune(followed(known.tunings, known.plans, now.tunings, now.plans))

    def stand_as(self, other: Run) -> None:
        """See as much of time as another run has, whose streams it reads; it takes no more rows."""
        self._last.stand_as(other._last)

    def _settle(self, settings: RunSettings, max_dead_letters: int | None) -> None:
        """Cut input, and keep results, in another way from the next epoch on."""
        known = self._last.settings
        if settings.reoptimize_every != known.reoptimize_every:
            self._following = Following(settings.reoptimize_every)
        self._last.settings = replace(settings, buckets=known.buckets, look=known.look)
        self.kept.retain, self.kept.allowed = settings.retain, max_dead_letters

    def discard(self) -> None:
        """Remove what was written, of a run that nobody reads."""
        self.kept.sweep(self._last.files.union(*map(result_files, self.results)))

    def merge(self) -> None:
        """Let operators of one plan whose states have become equal go on as one: a change of the plan.

        Raises:
            StoreError: state cannot be read, or the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        try:
            turn = merged(self._last.present)
        except (StoreError, OSError):
            raise
        except Exception as error:
            log_passed_over("to let equal operators go on as one", error)
        else:
            self._turn_if(turn, started)

    def exchange(self, name: str, plan: Plan, found: Reordered | None = None, *, asked: bool = True) -> int:
        """Let another plan with the same answer take over from the one that answers a query.

        It is a change of the plan, and so is the end of the exchange.

        Args:
            name: the query's, which has not failed.
            plan: the other plan.
            found: why it is better, if that is known.
            asked: whether somebody has asked for it.

        Returns:
            The instant from which on it answers.

        Raises:
            PlanError: the plan cannot be exchanged, and why; nothing has changed then.
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        turn = exchanged(self._last.present, name, plan, found, asked=asked)
        self._last.turn(turn, started)
        if found is not None:
            log_exchange(turn.queries.name_of(name), turn.queries.exchanged[name])
        self.end_exchanges()
        return turn.queries.migrations[name].at

    def reoptimize(self, name: str) -> PlanExchange | None:
        """Let a query join in another order from some instant on, where the rows of now make it a better one.

        Args:
            name: the query's, which has not failed.

        Returns:
            The exchange that has begun, or None.

        Raises:
            PlanError: the plan cannot be exchanged, and why; nothing has changed then.
            StoreError: state cannot be read, or the record cannot be written; nothing has changed then.
        """
        found = reordered(self._last.present.holding(), name)
        if found is None:
            return None
        self.exchange(name, found.plan, found)
        return self._last.queries.exchanged[name]

    def follow(self) -> bool:
        """Exchange the plans for which the rows have long made others much better; whether there was one.

        Raises:
            StoreError: state cannot be read, or the record cannot be written.
        """
        holding = self._last.present.holding()
        try:
            due = self._following.due(holding, self.reading.statistics, self._last.settings.clock.now())
        except (StoreError, OSError):
            raise
        except Exception as error:
            log_passed_over("to look for better plans", error)
            return False
        begun = False
        for name, found in due.items():
            try:
                self.exchange(name, found.plan, found, asked=False)
            except PlanError as error:
                log_refused(holding.queries.name_of(name), error)
            else:
                begun = True
        return begun

    def end_exchanges(self) -> bool:
        """Let go of the plans from which others have taken over; whether there was one.

        Raises:
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        return self._turn_if(exchanges_ended(self._last.present), started)

    def _turn_if(self, turn: Turn | None, started: float) -> bool:
        """Commit a change of the plan if there is one; whether there is."""
        if turn is not None:
            self._last.turn(turn, started)
        return turn is not None

    def step(self, intakes: Mapping[str, Intake], ended: Mapping[str, Reason] = MappingProxyType({})) -> None:
        """Run and commit one epoch; one with too many dead letters leaves the store as it was.

        Args:
            intakes: what it takes of each stream; a stream that is not named brings nothing.
            ended: queries that fail with this epoch, with the reason; they are left out of it.

        Raises:
            DeadLetterError: there would be more dead letters than are allowed; nothing is committed.
        """
        started = time.perf_counter()
        work = self._work(intakes, self._last.queries.with_failures(ended))
        reports = self._reports(work, intakes)
        ran = time.perf_counter()
        self._last.commit(work, intakes, ended, reports, started, keep_all=self.keeps_all_rows)
        self._effort = Effort.of(intakes, reports)
        times = [report.time for report in reports if report.time is not None]
        self.profile.add(times, ran - started, time.perf_counter() - ran)

    def letters_for(self, stream: str, chosen: Choose) -> Found:
        """What the next epoch is to take of the dead letters of a stream, and what its queries refuse.

        Args:
            stream: its name.
            chosen: which of its dead letters.

        Raises:
            UserError: no query reads the stream, or its dead letters are not kept.
        """
        last = self._last
        return letters_for(
            stream, chosen, last.streams, last.points, last.queries, last.present.letter_keeper
        )

    def rehearse(self, intakes: Mapping[str, Intake], queries: Collection[str]) -> None:
        """Run an epoch for some of the queries, and forget what it did.

        Args:
            intakes: what it takes of each stream; all of it is read, whichever queries read it.
            queries: which are answered, of those that go on.
        """
        left_out = {name: ("left out", None) for name in self._last.queries.live if name not in queries}
        self._reports(self._work(intakes, self._last.queries.with_failures(left_out)), intakes)

    def drop(self, queries: Collection[str]) -> None:
        """Do nothing more for some queries in the epoch that another thread is running; see `Runner.drop`."""
        self._runner.drop(queries)

    def want(self, queries: Collection[str]) -> None:
        """Take back a `drop`."""
        self._runner.want(queries)

    def point(self, name: str) -> StreamPoint:
        """How far a stream has been read."""
        return self._last.points.get(name, StreamPoint(0))

    @property
    def results(self) -> Sequence[EpochResults]:
        """The results that are kept, of epochs in order and without gaps."""
        return self.kept.results

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The streams that some query reads, and which of their columns are read."""
        return columns_of(self._last.queries, self._last.declared)

    def columns_for(self, wanted: Wanted) -> Mapping[str, tuple[str, ...]]:
        """The same after a change to some plans and streams."""
        epoch, look = self.totals.epochs + 1, self._last.settings.look
        changed = self._last.queries.changed(wanted.plans, epoch, look, holds=wanted.holds)
        return columns_of(changed, wanted.streams)

    @property
    def streams(self) -> Streams:
        """The streams that some query reads, as they are declared."""
        return {name: stream for name, stream in self._last.streams.items() if lane_of(name) is None}

    def backlogs(self) -> list[Backlog]:
        """The rows that lanes have yet to take, in the order in which the lanes began."""
        last = self._last
        return [backlog(lane, last.queries, last.points) for lane in sorted(last.queries.lanes)]

    def turn_of(self, waiting: Backlog, rows: int) -> dict[str, Intake]:
        """The intakes of an epoch for a lane: about so many of the rows that wait, and heartbeats."""
        return waiting.intakes(self._last.store, self._last.streams, rows)

    @property
    def known_streams(self) -> frozenset[str]:
        """The streams whose reading position the run remembers, without relations."""
        readings = {
            name
            for name, known in self._last.streams.items()
            if isinstance(known, BoundedRelation) or lane_of(name) is not None
        }
        return frozenset(self._last.points) - readings

    def look(self, caught_up: Callable[[], Mapping[str, bool]]) -> None:
        """Let time count for the streams.

        Args:
            caught_up: says per stream whether all that its source has is taken, by this epoch or before.
        """
        read = self._last.readings.read
        self._last.time.look(lambda: {**caught_up(), **dict.fromkeys(read, True)})

    @property
    def counts_time(self) -> bool:
        """Whether a heartbeat can move because time has counted in which nothing arrived."""
        return self._last.time.counts_time

    def is_due(self) -> bool:
        """Whether an epoch without input would move the heartbeat of an answer."""
        return self._last.time.is_due()

    def wait(self) -> float | None:
        """Seconds until time alone moves a heartbeat; None if it moves none."""
        return self._last.time.wait()

    def due_refreshes(self) -> Sequence[str]:
        """The relations that are to be read again by the clock."""
        return self._last.refresher.due(self._last.readings)

    def refresh(self, relation: str, again: ReadAgain | None = None) -> Refresh:
        """Read a relation again; it counts with an epoch that takes its intakes. See `Refresher.refresh`."""
        return self._last.refresher.refresh(relation, self._last.readings, again)

    def forget(self, refresh: Refresh) -> None:
        """Remove what was written of a relation that was read again, but for what the last commit names."""
        self.kept.sweep(set(refresh.written) - self._last.files)

    @property
    def store(self) -> Store:
        """Where state and results lie."""
        return self._last.store

    @property
    def reads_relations(self) -> bool:
        """Whether a relation has to be read before any row of a stream."""
        return reads_relations(self._last)

    def next_share(self) -> dict[str, Intake]:
        """What the next epoch takes of the bounded streams, as a function of how far they have been read."""
        return share_of(self._last)

    def _work(self, intakes: Mapping[str, Intake], queries: QuerySet) -> EpochWork:
        return work_of(self._last, queries, intakes, self._effort.tasks(intakes, self._runner))

    def _reports(self, work: EpochWork, intakes: Mapping[str, Intake]) -> list[TaskReport]:
        """Run an epoch; the reports of its tasks, or the error of one."""
        frames = {name: intake.frame for name, intake in intakes.items() if intake.frame is not None}
        return run_passes(self._runner, work, frames)

    def progress(self) -> Progress:
        """How far the run has come."""
        return self._last.progress()

    def sweep_strays(self) -> None:
        """Remove the files of epochs that did not commit."""
        self._last.sweep_strays()
