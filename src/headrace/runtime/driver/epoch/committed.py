"""What a run has committed: how far its input has been read, its state, and its results."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.algebra.tunings.tunings import Tunings
from headrace.errors import DeadLetterError
from headrace.heartbeats.estimated import in_force
from headrace.heartbeats.estimated_skew import skews_in_force
from headrace.heartbeats.timing import Timing
from headrace.lowering.behind import lane_of
from headrace.operators.state.runs import RunPart
from headrace.runtime.driver.change.content.merge import Merging
from headrace.runtime.driver.change.refresh import Readings, Refresher
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.turn_commit import commit_of_turn
from headrace.runtime.driver.clock.timekeeper import Timekeeper
from headrace.runtime.driver.commit import commit_of_epoch
from headrace.runtime.driver.facts.progress import Progress, progress_of
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import log_epoch, log_traces
from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.kept.behind import part_behind, untaken
from headrace.runtime.driver.kept.letters import LetterKeeper
from headrace.runtime.driver.kept.results import Kept
from headrace.runtime.driver.kept.rows import RowKeeper, keeping_all, keeping_untaken
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.driver.state import EpochOutcome, RunState
from headrace.runtime.intake.shares import rows_left
from headrace.runtime.intake.streams import Incoming, Intake, Streams, check_unchanged
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.held_state import HeldState, held
from headrace.runtime.journal.journal import Journal
from headrace.runtime.journal.records import (
    Commit,
    StreamPoint,
    Totals,
    carried_parts,
    point_parts,
    points_after,
    result_parts,
    state_after,
    state_parts,
)
from headrace.runtime.store.crash_points import reach
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import EpochWork, TaskReport
from headrace.time import INFINITY, TimeDomain


class Committed:
    """A run as of its last commit.

    Args:
        store: where segments are.
        declared: all streams, by name; those that no query reads are left alone.
        queries: those that are answered.
        settings: how input is cut, and what is kept.
        buckets: how many buckets state is spread over.

    Attributes:
        store, declared, queries, settings, buckets: as given, until a commit says otherwise.
        token: sets the names of this run's files apart from those of others.
        streams: those that some query reads.
        points: how far each input has been read.
        state: the manifests of all state.
        totals: the counters.
        clock: the clock's reading for the last epoch.
        journal: where records are written; None where nothing outlives the process.
        description: what the run is, for a store.
        merging: looks for operators whose states have become equal.
        refresher: reads relations again.
        kept: the results that are kept, and which files of the store go.
        time: moves heartbeats while nothing arrives.
        reading: what is to be seen from outside; replaced as a whole.
    """

    def __init__(
        self, store: Store, declared: Streams, queries: QuerySet, settings: RunSettings, buckets: int
    ) -> None:
        self.store = store
        self.queries = queries
        self.declared = dict(declared)
        self.streams = self.read_by(queries)
        self.settings = settings
        self.buckets = buckets
        self.token = secrets.token_hex(8)
        self.points = dict.fromkeys(self.streams, StreamPoint(0))
        self.state = HeldState()
        self.totals = Totals()
        self.clock = 0
        self.journal: Journal | None = None
        self.description = Description({}, {}, buckets)
        self.merging = Merging()
        self.refresher = Refresher(store, self.token, settings.clock)
        self.kept = Kept(store, settings.retain)
        self.time = self._timekeeper()
        now = settings.clock.now()
        self.reading = self._read(Statistics(now), now)

    def load(self, commits: Sequence[Commit]) -> None:
        """Be where a store's last commit was; which queries are answered is for `go_on_with` to say."""
        last = commits[-1]
        self.kept.results = [commit.results for commit in commits if commit.epoch >= last.retained]
        self.state = held(state_after(commits))
        self.points = points_after(commits)
        self.totals = last.totals
        self.clock = last.results.clock

    @property
    def files(self) -> set[str]:
        """The files of the state, and of what the results that are kept have carried on."""
        return self.kept.files(self.state, self.points)

    def go_on_with(self, queries: QuerySet) -> None:
        """Answer the queries of a store.

        Raises:
            StoreError: an input is not what it was.
        """
        self.queries = queries
        self.streams = self.read_by(queries)
        check_unchanged({**self.declared, **self.streams}, self.points)

    def tune(self, tunings: Tunings) -> None:
        """Let windows within bounds have these sizes; of a run that has no store of its own."""
        known, self.queries = self.queries, self.queries.with_tunings(tunings)
        if self.queries is not known:
            self.look_again()

    def stand_as(self, other: Committed) -> None:
        """Have seen as much of time as another run, whose streams this one reads."""
        read = self.points.keys() & other.points.keys()
        now = {name: other.points[name] for name in read}
        times = {
            # What is promised for later is of the other's bounds, which say nothing here.
            name: replace(self.points[name], time=replace(one.time, pending=(), counting=()), past=one.past)
            for name, one in now.items()
        }
        self.points, self.clock = {**self.points, **times}, other.clock

    def look_again(self) -> None:
        """Let what follows from the queries and the points follow from those of now."""
        self.time = self._timekeeper()
        self.reading = self._read(self.reading.statistics, self.settings.clock.now())

    def append(self, outcome: EpochOutcome) -> None:
        """Make a commit count on disk.

        Raises:
            StoreError: it cannot be written.
        """
        if self.journal is not None:
            self.journal.append(outcome.commit, self._needed(outcome))

    def turn(self, turn: Turn, started: float) -> None:
        """Commit a change of the plan, and move on to what it says.

        Args:
            turn: what it comes to.
            started: when it began (`time.perf_counter()`).

        Raises:
            DeadLetterError: a query that joins brings more dead letters than are allowed; the same then.
            StoreError: it cannot be written; nothing has changed then.
        """
        outcome = commit_of_turn(self.known(), turn, started)
        if turn.joining is not None and turn.joining.dead_letters:
            self._check_joining(outcome)
        reach("change.begun")
        self.append(outcome)
        reach("change.done")
        self.description, self.declared = turn.description, dict(turn.streams)
        self.accept(outcome)

    def _check_joining(self, outcome: EpochOutcome) -> None:
        """Refuse a query that brings too many dead letters; the run goes on without it, and without these."""
        try:
            self.kept.check(outcome, self.state, self.points)
        except DeadLetterError:
            self.kept.forget_refused()
            raise

    def commit(
        self,
        work: EpochWork,
        intakes: Mapping[str, Intake],
        ended: Mapping[str, Reason],
        reports: list[TaskReport],
        started: float,
        *,
        keep_all: bool,
    ) -> None:
        """Make an epoch count: first on disk, then here; then forget what it made needless.

        Args:
            work: the epoch.
            intakes: what it has taken.
            ended: queries that failed before it, with the reason; they were left out of it.
            reports: of its tasks.
            started: when it began (`time.perf_counter()`).
            keep_all: whether no rows of streams are let go of.

        Raises:
            DeadLetterError: there would be more dead letters than are allowed; nothing is committed.
            StoreError: it cannot be written; nothing is committed.
        """
        reach("epoch.reported")
        outcome = commit_of_epoch(
            self.known(),
            work,
            self.streams,
            intakes,
            ended,
            reports,
            lambda last: self.kept.after(last, self.queries, self.token),
            LetterKeeper(self.store, self.token, work.epoch, work.clock),
            RowKeeper(self.store, self.token, work.epoch, keep_all, untaken(self.queries, self.points)),
            started,
        )
        self.kept.check(outcome, self.state, self.points)
        self.append(outcome)
        log_traces(work.epoch, (failure for report in reports for failure in report.failures))
        log_epoch(outcome.commit, self.totals, self.queries)
        self.accept(outcome, work, reports)

    def read_by(self, queries: QuerySet) -> dict[str, Incoming]:
        """What some queries read, by the names of their inputs."""
        found = {
            name: self.declared[declared] if lane_of(name) is None else part_behind(self.declared[declared])
            for name, declared in queries.inputs.items()
        }
        found |= {name: keeping_untaken(found[name]) for name in queries.read_behind}
        return {**found, **{name: keeping_all(found[name]) for name in queries.keeps}}

    def _timekeeper(self) -> Timekeeper:
        return Timekeeper(self.timings(), self.queries, self.points, self.settings.clock)

    def timings(self) -> dict[str, Timing]:
        """What holds for the next epoch of each stream."""
        timings = {
            name: in_force(stream.timing, self.points[name].estimate) for name, stream in self.streams.items()
        }
        return skews_in_force(timings, {name: self.points[name].skews for name in timings})

    def known(self) -> RunState:
        """What there is between two epochs."""
        return RunState(
            self.queries,
            self.points,
            self.state,
            self.kept.results,
            self.totals,
            self.description,
            self.buckets,
            self.clock,
        )

    @property
    def present(self) -> Present:
        """The same for a change of the plan."""
        known = self.known()
        return Present(known, self.declared, self.store, self.token, self.settings, self.merging)

    @property
    def readings(self) -> Readings:
        """What relations are read again by."""
        return Readings(self.queries, self.streams, self.points)

    def _needed(self, outcome: EpochOutcome) -> Iterator[RunPart]:
        """The parts of files without which a commit would be worth nothing.

        Results are written once and pile up, so all of them are looked at with a checkpoint only.
        """
        commit = outcome.commit
        yield from state_parts(outcome.state)
        yield from point_parts(outcome.points)
        yield from result_parts(commit.results)
        yield from carried_parts(commit.results)
        for results in self.kept.results if commit.checkpoint else ():
            if results.epoch >= commit.retained:
                yield from result_parts(results)

    def accept(
        self, outcome: EpochOutcome, work: EpochWork | None = None, reports: Sequence[TaskReport] = ()
    ) -> None:
        """Move on to what a commit says, which counts already, and remove what it made needless.

        Args:
            outcome: what was committed.
            work: the epoch, or None for a change of the plan.
            reports: of its tasks.
        """
        commit = outcome.commit
        statistics, at = self.reading.statistics, self.settings.clock.now()
        if work is not None:
            counted = statistics.keyed(work.graph, work.heartbeats_before(), at)
            statistics = counted.after(reports, self.totals, commit.totals, at)
        before = self.files | outcome.written
        self.state, self.points, self.totals = held(outcome.state), dict(outcome.points), commit.totals
        self.clock = commit.results.clock
        known, self.queries = self.queries, outcome.queries
        self.streams = self.read_by(self.queries)
        if work is None or self.queries is not known:
            self.time = self._timekeeper()
        else:
            self.time.accept(self.points, self.timings())
        self.refresher.accept(self.readings)
        outlived = self.kept.accept(commit.results, commit.retained)
        if self.journal is not None:
            outlived |= self.journal.outlived(commit.retained)
        self.reading = self._read(statistics, at)
        self.kept.sweep((before - self.files) | outlived)

    def _read(self, statistics: Statistics, at: int) -> PublishedRun:
        """What is to be seen of the run from an instant of the clock on."""
        heartbeats = {name: self.points[name].heartbeat for name in self.streams}
        return PublishedRun(
            self.queries,
            self.streams,
            self.points,
            self.state,
            self.totals,
            statistics.keyed(self.queries.graph, heartbeats, at),
        )

    def progress(self) -> Progress:
        """How far the run has come."""
        heartbeat = min((self.points[name].heartbeat for name in self.streams), default=INFINITY)
        plans = list(self.queries.live.values())
        domain = plans[0].domain if plans else TimeDomain.INTEGER
        left = rows_left(self.streams, self.points)
        return progress_of(self.totals, left, heartbeat, domain, self.state)

    def sweep_strays(self) -> None:
        """Remove the files of epochs that did not commit."""
        self.kept.sweep_strays(self.state, self.points)
