"""The driver: cuts bounded inputs into epochs, runs them, commits what they did.

An epoch that did not commit has no effect: its segments are named by nothing. A commit holds the streams'
positions and heartbeats, the manifests of all state, and where the results are.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from headrace.algebra.arrival import Past
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import has_unbounded_state, relations_of
from headrace.elements import Batch
from headrace.errors import PlanError
from headrace.heartbeats.estimated import in_force
from headrace.heartbeats.estimated_skew import skews_in_force
from headrace.heartbeats.timing import Timing
from headrace.lowering.adoption import Adopted
from headrace.lowering.early import horizon_of
from headrace.lowering.lower import Holds
from headrace.lowering.sharing.weighing import Look, shows_nothing
from headrace.operators.state.runs import Part
from headrace.runtime.driver.adopting import Derivation, adopt, begin
from headrace.runtime.driver.commit import Outcome, RunState, Streams, commit_of_change, commit_of_epoch
from headrace.runtime.driver.effort import Effort
from headrace.runtime.driver.exchange import begun, ended
from headrace.runtime.driver.following import Following
from headrace.runtime.driver.inputs import columns_of, inputs_of, promises_of
from headrace.runtime.driver.joining import Joining
from headrace.runtime.driver.kept import Kept
from headrace.runtime.driver.letters import LetterKeeper
from headrace.runtime.driver.levels import going_on, level_changes, spoken
from headrace.runtime.driver.merging import Holding, Merging
from headrace.runtime.driver.passes import run_passes
from headrace.runtime.driver.pausing import (
    Known,
    ended_answers,
    known_in,
    known_to,
    paused_now,
    resumed,
    said_for_good,
)
from headrace.runtime.driver.progress import Progress, progress_of
from headrace.runtime.driver.query_set import QuerySet, Reason
from headrace.runtime.driver.reading import Reading
from headrace.runtime.driver.refreshing import Readings, Refresh, Refresher
from headrace.runtime.driver.relation_index import given_to, with_indices, written
from headrace.runtime.driver.relation_sides import without_reading
from headrace.runtime.driver.reordering import Reordered, reordered
from headrace.runtime.driver.replaced import Exchange
from headrace.runtime.driver.replacing import (
    Replacement,
    begun_anew,
    exchange_of,
    replacement,
    require_open,
    taken_back,
)
from headrace.runtime.driver.replay import Choose, Found, letters_for
from headrace.runtime.driver.reports import log_epoch, log_exchange, log_refused
from headrace.runtime.driver.retaining import RowKeeper, keeping_all
from headrace.runtime.driver.statistics import Statistics
from headrace.runtime.driver.timekeeper import Timekeeper
from headrace.runtime.intake.letters import letters_to_take
from headrace.runtime.intake.shares import (
    MOST_HELD,
    MOST_PASSED,
    assignments,
    grown_rows,
    next_share,
    relations_to_read,
    rows_left,
)
from headrace.runtime.intake.streams import (
    BoundedRelation,
    Incoming,
    Intake,
    ReadAgain,
    check_not_rewritten,
    check_unchanged,
)
from headrace.runtime.journal.description import Description, Differences, Paused, WarmStart, gaps_of
from headrace.runtime.journal.gap import Gap
from headrace.runtime.journal.journal import Journal
from headrace.runtime.journal.records import (
    EpochResults,
    StreamPoint,
    Totals,
    carried_parts,
    point_parts,
    points_after,
    result_files,
    result_parts,
    state_after,
    state_parts,
)
from headrace.runtime.store.crash_points import reach
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.messages import (
    EpochWork,
    Manifest,
    ResultRef,
    StateKey,
    TaskReport,
)
from headrace.runtime.tasks.profile import Profile
from headrace.runtime.tasks.runner import Runner
from headrace.time import INFINITY, Clock, SystemClock, TimeDomain

DEFAULT_EPOCH_BYTES: Final = 256 * 2**20
"""About how many bytes of rows an epoch takes, from all streams together."""


@dataclass(frozen=True)
class RunSettings:
    """How a run cuts its input, and what it keeps.

    Attributes:
        epoch_rows: about how many rows an epoch takes; if None, more as more have been read.
        epoch_bytes: about how many bytes of rows an epoch takes.
        buckets: how many buckets state is spread over; the runner's parallelism if None.
        keep_results: whether results are stored, or only counted.
        retain: of how many epochs results are kept; of all if None.
        clock: wall-clock time.
        look: says what is expected of operators, which decides what queries share.
        reoptimize_every: how often plans are looked at that others may be better than (seconds of wall-clock
            time, at least); never if None.
    """

    epoch_rows: int | None = None
    epoch_bytes: int = DEFAULT_EPOCH_BYTES
    buckets: int | None = None
    keep_results: bool = True
    retain: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    look: Look = shows_nothing
    reoptimize_every: float | None = None


class Run:
    """One run of some queries over some streams.

    Args:
        runner: where the epochs run.
        store: where segments are.
        streams: all streams, by name; those that no query reads are left alone.
        queries: optimized plans by query name.
        settings: how it cuts its input, and what it keeps.
        holds: which operators of a query wait for others; none of a query that is not named.

    Attributes:
        reading: what is to be seen of the run since its last commit; replaced as a whole.
        kept: the results that are kept, and which files of the store go.
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
    ) -> None:
        self._runner = runner
        self._store = store
        self._queries = QuerySet.begun(queries, settings.look, holds)
        self._declared = dict(streams)
        self._streams = self._read_by(self._queries)
        self._settings = settings
        self._buckets = settings.buckets or runner.parallelism
        self._token = secrets.token_hex(8)
        self._points = dict.fromkeys(self._streams, StreamPoint(0))
        self._state: dict[StateKey, Manifest] = {}
        self._journal: Journal | None = None
        self._description = Description({}, {}, self._buckets)
        self._last_clock = 0
        self._merging = Merging()
        self._refresher = Refresher(store, self._token, settings.clock)
        self._following = Following(settings.reoptimize_every)
        self._effort = Effort()
        self.kept = Kept(store, settings.retain)
        self.keeps_all_rows = False
        self.totals = Totals()
        self.profile = Profile()
        self._time = self._timekeeper()
        now = settings.clock.now()
        self.reading = self._read(Statistics(now), now)

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
            adapt: whether a query that the store does not have is added now, and one that is only in the
                store is dropped; both are refused otherwise.
            past: the queries that are left out where the store does not have them, since they are to join.

        Returns:
            What was added and dropped.

        Raises:
            StoreError: a record is damaged, the store is for other queries or streams, or an input is not
                what it was.
        """
        commits = journal.load()
        found = journal.compare(commits, description, adapt=adapt)
        self._journal = journal
        self._description = description
        if commits:
            last = commits[-1]
            self.kept.results = [commit.results for commit in commits if commit.epoch >= last.retained]
            self._state = state_after(commits)
            self._points = points_after(commits)
            self.totals = last.totals
            self._last_clock = last.results.clock
            present = journal.present(commits)
            resumed = {
                name for name in description.queries if name in present.paused and present.paused[name].keeps
            }
            self._go_on_with(present, dict(last.failed), ({*past} & {*found.added}) | resumed)
            self._time = self._timekeeper()
            self.reading = self._read(self.reading.statistics, self._settings.clock.now())
        elif journal.present(commits).catalog != description.catalog:
            # What the store was made for says what is defined until there is a record.
            queries = self._queries
            to_pause = description.to_pause
            self.change(queries.plans, self._declared, description, holds=queries.holds, to_pause=to_pause)
        self.sweep_strays()
        return found

    def _read_by(self, queries: QuerySet) -> dict[str, Incoming]:
        """What some queries read, by the names of their inputs."""
        found = {name: self._declared[declared] for name, declared in queries.inputs.items()}
        return {**found, **{name: keeping_all(found[name]) for name in queries.keeps}}

    def _go_on_with(self, present: Description, failed: dict[str, Reason], left_out: Collection[str]) -> None:
        """Take over the queries of a store, then change them to those that are given but some."""
        plans, holds = self._queries.plans, self._queries.holds
        self._queries = QuerySet.resumed(plans, present, failed, holds)
        self._streams = self._read_by(self._queries)
        check_unchanged({**self._declared, **self._streams}, self._points)
        asked = self._description.without(left_out)
        changed = present.queries.keys() != asked.queries.keys()
        changed |= any(
            self._queries.plans[name] != plan for name, plan in plans.items() if name in present.queries
        )
        # Those that are left out bring the catalog with them when they join.
        changed |= present.catalog != asked.catalog and not left_out
        if changed or not self._points.keys() - self._streams.keys() <= self._declared.keys():
            wanted = {name: plan for name, plan in plans.items() if name not in left_out}
            to_pause, known = asked.to_pause, known_in(present)
            self.change(wanted, self._declared, asked, holds=holds, to_pause=to_pause, known=known)

    def change(
        self,
        plans: Mapping[str, Plan],
        streams: Streams,
        description: Description | None = None,
        warm: Mapping[str, Derivation] = MappingProxyType({}),
        holds: Mapping[str, Holds] = MappingProxyType({}),
        to_pause: Collection[str] = (),
        known: Mapping[str, Known] | None = None,
        keeping: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        replaced: Collection[str] = (),
    ) -> None:
        """Answer other queries from now on; what goes on keeps its state.

        The change is an epoch of its own, without input: it counts when its record is there. A query that is
        new answers from the streams' present heartbeats on, over the rows that arrive from now on.

        Args:
            plans: all queries from now on, optimized, by name.
            streams: all streams from now on, by name; how far others have been read is forgotten.
            description: the same for a store; as it was if None.
            warm: the new queries that take over the state of others, and how each follows from their answers.
            holds: which operators of a query wait for others.
            to_pause: the queries that are not answered from now on, until they are among the plans again.
            known: what is known of queries that may be paused; of those that are answered if None.
            keeping: of queries that are paused, the streams whose rows are kept meanwhile.
            replaced: the queries whose plans are others, which start anew, while their answers go on.

        Raises:
            UserError: a query has no state that it could take over.
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        adopted = {
            name: adopt(
                name,
                derived,
                horizon_of(plans[name]),
                self._queries,
                self.results,
                self._settings.keep_results,
            )
            for name, derived in warm.items()
        }
        epoch = self.totals.epochs + 1
        adoptions = {name: found.adoption for name, found in adopted.items()}
        adoptions |= said_for_good(plans, self._queries.paused, epoch)
        prefix, before = f"e{epoch}-{self._token}", self._holding(self._queries)
        known = known_to(self._queries, self._description, to_pause) if known is None else known
        stopped = paused_now(to_pause, known, self.results, epoch, keeping)
        stayed = {name: one for name, one in self._queries.paused.items() if name in to_pause}
        paused = {**stopped, **stayed}
        levels = level_changes(before, plans)
        carried_out = {name: level.new for name, level in levels.items()}
        replaced = [name for name in replaced if name not in levels]
        changed = self._queries.changed(
            plans, epoch, self._settings.look, adoptions, holds, paused, carried_out, replaced
        )
        changed = resumed(changed, epoch, self._queries, self.point)
        changed = begun_anew(changed, epoch, replaced, before, self.results)
        changed = going_on(changed, self._queries, levels)
        queries, given = without_reading(changed, before, epoch)
        queries = with_indices(queries, before, epoch)
        at_once = given_to(queries, before, given, epoch, f"{prefix}-rows")
        kept = self._settings.keep_results
        said = spoken(levels, before, queries, self.results, f"{prefix}-level", kept)
        given |= {**at_once.state, **said.state}
        queries = self._merging.merged(self._holding(queries, given))
        for name in queries.inputs.keys() - self._points.keys():
            check_not_rewritten(queries.inputs[name], streams.get(queries.inputs[name]))
        begins = self._begun(queries, at_once.results, f"{prefix}-rows") | {**said.results}
        if kept:
            begins |= taken_back(replaced, before, queries, self.results, begins, f"{prefix}-replaced")
        for place, (name, found) in enumerate(adopted.items()):
            beginning = begin(name, found, before, queries, self.results, f"{prefix}-warm{place}")
            begins[name] = beginning.results
            given |= beginning.state
        stopped = {name: one for name, one in stopped.items() if name not in stayed}
        end = ended_answers(stopped, self._store, self.results, f"e{epoch}-{self._token}-paused")
        description = description or self._description
        self._change(queries, streams, description, started, begins=begins, given=given, ended=end)

    def replace(
        self,
        name: str,
        plans: Mapping[str, Plan],
        streams: Streams,
        description: Description | None = None,
        holds: Mapping[str, Holds] = MappingProxyType({}),
        to_pause: Collection[str] = (),
    ) -> None:
        """Let another plan answer a query from some instant on, below which the old answer holds.

        It is a change of the plan. See `headrace.runtime.driver.replacing` for the instant.

        Args:
            name: the query's, whose columns are the same.
            plans, streams, description, holds, to_pause: as for `change`; no other query is new or gone.

        Raises:
            PlanError: all of its answer is final.
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        require_open(name, self.results)
        new = exchange_of(self._holding(self._queries), name, plans[name], waits=name in holds)
        if isinstance(new, PlanError):
            self.change(plans, streams, description, holds=holds, to_pause=to_pause, replaced=(name,))
            return
        description = description or self._description
        self._change(new.queries, streams, description, started, new.adopted, given=new.given)
        self.end_exchanges()

    def rename(self, old: str, new: str, description: Description | None = None) -> None:
        """Give a query another name; a change of the plan.

        Args:
            old: its name.
            new: the other one, which no query has.
            description: what the run is from then on; as it was if None.

        Raises:
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        queries = self._queries.renaming(old, new)
        description = description or self._description
        self._change(queries, self._declared, description, started, renamed={old: new})

    def replacement_of(self, name: str, plan: Plan, *, alike: bool, waits: bool) -> Replacement:
        """What would become of a query that another plan takes the place of now.

        Args:
            name: the query's, which has not failed.
            plan: the other plan, optimized.
            alike: whether its columns are the same.
            waits: whether some of its operators are to wait for others.

        Raises:
            PlanError: all of its answer is final, and the new one's is to be a part of it.
        """
        if alike:
            require_open(name, self.results)
        holding = self._holding(self._queries)
        return replacement(holding, name, plan, self.results, alike=alike, waits=waits)

    def _begun(
        self, queries: QuerySet, results: Mapping[str, Batch], file: str
    ) -> dict[str, tuple[ResultRef, ...]]:
        """Where it is written what new queries yield at once."""
        if not results or not self._settings.keep_results:
            return {}
        return written(queries.graph, results, SegmentWriter(self._store, f"results/{file}"))

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
        how = replace(self._settings, buckets=self._buckets, retain=None)
        return Run(self._runner, self._store, streams, {name: plan}, how)

    def join(
        self,
        found: Joining,
        plans: Mapping[str, Plan],
        streams: Streams,
        description: Description | None = None,
        holds: Mapping[str, Holds] = MappingProxyType({}),
    ) -> None:
        """Answer another query from now on, which was brought to the present; a change of the plan.

        Args:
            found: what it begins with.
            plans, streams, description, holds: as for `change`; no other query is new.

        Raises:
            StoreError: the record cannot be written; nothing has changed then.
        """
        started, epoch = time.perf_counter(), self.totals.epochs + 1
        adoptions = {found.query: found.adoption}
        paused = {name: one for name, one in self._queries.paused.items() if name not in plans}
        queries = self._queries.changed(plans, epoch, self._settings.look, adoptions, holds, paused)
        self._change(queries, streams, description or self._description, started, joining=found)

    def settle(self, settings: RunSettings, max_dead_letters: int | None) -> None:
        """Cut input, and keep results, in another way from the next epoch on.

        Args:
            settings: how; of them what a run can change: not its clock, nor over what state is spread.
            max_dead_letters: how many dead letters there may be; any number if None.
        """
        if settings.reoptimize_every != self._settings.reoptimize_every:
            self._following = Following(settings.reoptimize_every)
        self._settings = replace(settings, buckets=self._settings.buckets, look=self._settings.look)
        self.kept.retain, self.kept.allowed = settings.retain, max_dead_letters

    def discard(self) -> None:
        """Remove what was written, of a run that nobody reads."""
        files = self.kept.files(self._state, self._points).union(*map(result_files, self.results))
        self.kept.sweep(files)

    def merge(self) -> None:
        """Let operators of one plan whose states have become equal go on as one: a change of the plan.

        Raises:
            StoreError: state cannot be read, or the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        queries = self._merging.merged(self._holding(self._queries))
        if queries is not self._queries:
            self._change(queries, self._declared, self._description, started)

    def _holding(
        self, queries: QuerySet, given: Mapping[StateKey, Manifest] = MappingProxyType({})
    ) -> Holding:
        state = {**self._state, **given} if given else self._state
        return Holding(queries, self._points, state, self._buckets, self._store)

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
        new = begun(self._holding(self._queries), name, plan)
        at, queries = new.queries.migrations[name].at, new.queries
        if found is not None:
            epoch = self.totals.epochs + 1
            known = queries.exchanged.get(name)
            times = (0 if known is None else known.times) + (not asked)
            last = Exchange(epoch, at, found.before, found.after, round(found.gain, 2), asked, times)
            queries = replace(queries, exchanged={**queries.exchanged, name: last})
        self._change(queries, self._declared, self._description, started, new.adopted, given=new.given)
        if found is not None:
            log_exchange(name, queries.exchanged[name])
        self.end_exchanges()
        return at

    def reoptimize(self, name: str) -> Exchange | None:
        """Let a query join in another order from some instant on, where the rows of now make it a better one.

        Args:
            name: the query's, which has not failed.

        Returns:
            The exchange that has begun, or None.

        Raises:
            PlanError: the plan cannot be exchanged, and why; nothing has changed then.
            StoreError: state cannot be read, or the record cannot be written; nothing has changed then.
        """
        found = reordered(self._holding(self._queries), name)
        if found is None:
            return None
        self.exchange(name, found.plan, found)
        return self._queries.exchanged[name]

    def follow(self) -> bool:
        """Exchange the plans for which the rows have long made others much better; whether there was one.

        Raises:
            StoreError: state cannot be read, or the record cannot be written.
        """
        holding = self._holding(self._queries)
        due = self._following.due(holding, self.reading.statistics, self._settings.clock.now())
        begun = False
        for name, found in due.items():
            try:
                self.exchange(name, found.plan, found, asked=False)
            except PlanError as error:
                log_refused(name, error)
            else:
                begun = True
        return begun

    def end_exchanges(self) -> bool:
        """Let go of the plans from which others have taken over; whether there was one.

        Raises:
            StoreError: the record cannot be written; nothing has changed then.
        """
        started = time.perf_counter()
        heartbeats = {name: self._points[name].heartbeat for name in self._streams}
        newest = {name: self._points[name].time.latest for name in self._streams}
        over = ended(self._queries, heartbeats, newest, self._pasts(self._queries))
        if over is not None:
            self._change(over[0], self._declared, self._description, started, over[1])
        return over is not None

    def _change(
        self,
        queries: QuerySet,
        streams: Streams,
        description: Description,
        started: float,
        adopted: Adopted = MappingProxyType({}),
        begins: Mapping[str, tuple[ResultRef, ...]] = MappingProxyType({}),
        given: Mapping[StateKey, Manifest] = MappingProxyType({}),
        ended: Mapping[str, tuple[ResultRef, ...]] = MappingProxyType({}),
        joining: Joining | None = None,
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Commit a change of the plan, and move on to what it says."""
        known = replace(self._known(), state={**self._state, **given})
        if joining is not None:
            known = joining.known_to(known)
        outcome = commit_of_change(
            known, queries, streams, description, started, adopted, begins, ended, renamed
        )
        if joining is not None:
            outcome = joining.said_by(outcome)
        reach("change.begun")
        if self._journal is not None:
            self._journal.append(outcome.commit, self._needed(outcome))
        reach("change.done")
        self._description, self._declared = description, dict(streams)
        self._accept(outcome)

    def step(self, intakes: Mapping[str, Intake], ended: Mapping[str, Reason] = MappingProxyType({})) -> None:
        """Run and commit one epoch; one with too many dead letters leaves the store as it was.

        Args:
            intakes: what it takes of each stream; a stream that is not named brings nothing.
            ended: queries that fail with this epoch, with the reason; they are left out of it.

        Raises:
            DeadLetterError: there would be more dead letters than are allowed; nothing is committed.
        """
        started = time.perf_counter()
        work = self._work(intakes, self._queries.with_failures(ended))
        reports = self._reports(work, intakes)
        ran = time.perf_counter()
        self._commit(work, intakes, ended, reports, started)
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
        clock = max(self._settings.clock.now(), self._last_clock)
        keeper = LetterKeeper(self._store, self._token, self.totals.epochs + 1, clock)
        return letters_for(stream, chosen, self._streams, self._points, self._queries, keeper)

    def rehearse(self, intakes: Mapping[str, Intake], queries: Collection[str]) -> None:
        """Run an epoch for some of the queries, and forget what it did.

        Args:
            intakes: what it takes of each stream; all of it is read, whichever queries read it.
            queries: which are answered, of those that go on.
        """
        left_out = {name: ("left out", None) for name in self._queries.live if name not in queries}
        self._reports(self._work(intakes, self._queries.with_failures(left_out)), intakes)

    def point(self, name: str) -> StreamPoint:
        """How far a stream has been read."""
        return self._points.get(name, StreamPoint(0))

    @property
    def results(self) -> Sequence[EpochResults]:
        """The results that are kept, of epochs in order and without gaps."""
        return self.kept.results

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The streams that some query reads, and which of their columns are read."""
        return columns_of(self._queries, self._declared)

    def columns_for(
        self, plans: Mapping[str, Plan], streams: Streams, holds: Mapping[str, Holds]
    ) -> Mapping[str, tuple[str, ...]]:
        """The same after a change to some plans and streams."""
        queries = self._queries.changed(plans, self.totals.epochs + 1, self._settings.look, holds=holds)
        return columns_of(queries, streams)

    @property
    def streams(self) -> Streams:
        """The streams that some query reads."""
        return self._streams

    @property
    def known_streams(self) -> frozenset[str]:
        """The streams whose reading position the run remembers, without relations."""
        readings = (name for name, known in self._streams.items() if isinstance(known, BoundedRelation))
        return frozenset(self._points) - frozenset(readings)

    @property
    def live(self) -> Collection[str]:
        """The queries that go on."""
        return self._queries.live.keys()

    @property
    def failed(self) -> Mapping[str, Reason]:
        """The queries that have ended early, with the reason and a hint."""
        return self._queries.failed

    @property
    def growing(self) -> tuple[str, ...]:
        """The queries whose state grows for as long as they run."""
        return tuple(name for name, plan in self._queries.live.items() if has_unbounded_state(plan))

    def warm_start_of(self, query: str) -> WarmStart | None:
        """How a query began that has taken over the state of another one; None if it did not."""
        return self._queries.warm.get(query)

    @property
    def paused(self) -> Mapping[str, Paused]:
        """The queries that are not answered until they are resumed."""
        return self._queries.paused

    def gaps_of(self, query: str) -> tuple[Gap, ...]:
        """The instants about which a query says nothing, since it was paused."""
        return gaps_of(query, self._queries.gaps, self._queries.paused)

    def start_of(self, query: str) -> int:
        """The epoch from which on a query answers."""
        return self._queries.start_of(query)

    def look(self, caught_up: Callable[[], Mapping[str, bool]]) -> None:
        """Let time count for the streams.

        Args:
            caught_up: says per stream whether all that its source has is taken, by this epoch or before.
        """
        read = self._readings.read
        self._time.look(lambda: {**caught_up(), **dict.fromkeys(read, True)})

    @property
    def counts_time(self) -> bool:
        """Whether a heartbeat can move because time has counted in which nothing arrived."""
        return self._time.counts_time

    def is_due(self) -> bool:
        """Whether an epoch without input would move the heartbeat of an answer."""
        return self._time.is_due()

    def wait(self) -> float | None:
        """Seconds until time alone moves a heartbeat; None if it moves none."""
        return self._time.wait()

    def due_refreshes(self) -> Sequence[str]:
        """The relations that are to be read again by the clock."""
        return self._refresher.due(self._readings)

    def refresh(self, relation: str, again: ReadAgain | None = None) -> Refresh:
        """Read a relation again; it counts with an epoch that takes its intakes. See `Refresher.refresh`."""
        return self._refresher.refresh(relation, self._readings, again)

    def forget(self, refresh: Refresh) -> None:
        """Remove what was written of a relation that was read again, but for what the last commit names."""
        self.kept.sweep(set(refresh.written) - self.kept.files(self._state, self._points))

    @property
    def _readings(self) -> Readings:
        return Readings(self._queries, self._streams, self._points)

    @property
    def store(self) -> Store:
        """Where state and results lie."""
        return self._store

    @property
    def reads_relations(self) -> bool:
        """Whether a relation has to be read before any row of a stream."""
        return bool(relations_to_read(self._streams, self._points))

    def next_share(self) -> dict[str, Intake]:
        """What the next epoch takes of the bounded streams, as a function of how far they have been read."""
        most = MOST_HELD if self._queries.graph.levels else MOST_PASSED
        streams = self._refresher.readable(self._readings)
        rows = self._settings.epoch_rows or grown_rows(streams, self._points, most)
        share = next_share(streams, self._points, rows, self._settings.epoch_bytes)
        letters = {} if self.reads_relations else letters_to_take(self._streams, self._points, self._store)
        return {**self._refresher.begin(share, self._readings), **letters}

    def _reports(self, work: EpochWork, intakes: Mapping[str, Intake]) -> list[TaskReport]:
        """Run an epoch; the reports of its tasks, or the error of one."""
        frames = {name: intake.frame for name, intake in intakes.items() if intake.frame is not None}
        return run_passes(self._runner, work, frames)

    def _work(self, intakes: Mapping[str, Intake], queries: QuerySet) -> EpochWork:
        clock = max(self._settings.clock.now(), self._last_clock)
        taken = {name: intakes.get(name, Intake(0)) for name in self._streams}
        inputs = inputs_of(self._streams, self._points, self._timings(), taken, self.columns, clock)
        parts = self._effort.tasks(intakes, self._runner)
        whole = [name for name, stream in self._streams.items() if stream.timing.is_read_whole]
        return EpochWork(
            epoch=self.totals.epochs + 1,
            token=self._token,
            graph=queries.graph,
            buckets=self._buckets,
            tasks=min(parts, self._buckets),
            streams=inputs.streams,
            relations=inputs.relations,
            assignments=assignments(intakes, parts, whole),
            state=self._state,
            store=self._store,
            keep_results=self._settings.keep_results,
            time=self._time.epoch(promises_of(taken), clock, intakes),
            clock=clock,
            pasts=self._pasts(queries),
        )

    def _pasts(self, queries: QuerySet) -> dict[str, Past]:
        """What the streams had brought before to which some queries look back."""
        return {name: self._points[name].past for name in queries.graph.dials}

    def _timekeeper(self) -> Timekeeper:
        return Timekeeper(self._timings(), self._queries, self._points, self._settings.clock)

    def _timings(self) -> dict[str, Timing]:
        """What holds for the next epoch of each stream."""
        timings = {
            name: in_force(stream.timing, self._points[name].estimate)
            for name, stream in self._streams.items()
        }
        return skews_in_force(timings, {name: self._points[name].skews for name in timings})

    def _known(self) -> RunState:
        return RunState(
            self._queries,
            self._points,
            self._state,
            self.results,
            self.totals,
            self._description,
            self._buckets,
            self._last_clock,
        )

    def _commit(
        self,
        work: EpochWork,
        intakes: Mapping[str, Intake],
        ended: Mapping[str, Reason],
        reports: list[TaskReport],
        started: float,
    ) -> None:
        """Make an epoch count: first on disk, then here; then forget what it made needless."""
        reach("epoch.reported")
        outcome = commit_of_epoch(
            self._known(),
            work,
            self._streams,
            intakes,
            ended,
            reports,
            lambda last: self.kept.after(last, self._queries, self._token),
            LetterKeeper(self._store, self._token, work.epoch, work.clock),
            RowKeeper(self._store, self._token, work.epoch, self.keeps_all_rows),
            started,
        )
        self.kept.check(outcome, self._state, self._points)
        if self._journal is not None:
            self._journal.append(outcome.commit, self._needed(outcome))
        log_epoch(outcome.commit, self.totals, self.failed)
        self._accept(outcome, work, reports)

    def _needed(self, outcome: Outcome) -> Iterator[Part]:
        """The parts of files without which a commit would be worth nothing.

        Results are written once and pile up, so all of them are looked at with a checkpoint only.
        """
        commit = outcome.commit
        yield from state_parts(outcome.state)
        yield from point_parts(outcome.points)
        yield from result_parts(commit.results)
        yield from carried_parts(commit.results)
        for results in self.results if commit.checkpoint else ():
            if results.epoch >= commit.retained:
                yield from result_parts(results)

    def _accept(
        self, outcome: Outcome, work: EpochWork | None = None, reports: Sequence[TaskReport] = ()
    ) -> None:
        """Move on to what a commit says, which counts already, and remove what it made needless.

        Args:
            outcome: what was committed.
            work: the epoch, or None for a change of the plan.
            reports: of its tasks.
        """
        commit = outcome.commit
        statistics, at = self.reading.statistics, self._settings.clock.now()
        if work is not None:
            counted = statistics.keyed(work.graph, work.heartbeats_before(), at)
            statistics = counted.after(reports, self.totals, commit.totals, at)
        before = self.kept.files(self._state, self._points) | outcome.written
        self._state, self._points, self.totals = dict(outcome.state), dict(outcome.points), commit.totals
        self._last_clock = commit.results.clock
        known, self._queries = self._queries, outcome.queries
        self._streams = self._read_by(self._queries)
        if work is None or self._queries is not known:
            self._time = self._timekeeper()
        else:
            self._time.accept(self._points, self._timings())
        self._refresher.accept(self._readings)
        outlived = self.kept.accept(commit.results, commit.retained)
        if self._journal is not None:
            outlived |= self._journal.outlived(commit.retained)
        self.reading = self._read(statistics, at)
        self.kept.sweep((before - self.kept.files(self._state, self._points)) | outlived)

    def _read(self, statistics: Statistics, at: int) -> Reading:
        """What is to be seen of the run from an instant of the clock on."""
        heartbeats = {name: self._points[name].heartbeat for name in self._streams}
        return Reading(
            self._queries,
            self._streams,
            self._points,
            self._state,
            self.totals,
            statistics.keyed(self._queries.graph, heartbeats, at),
        )

    def progress(self) -> Progress:
        """How far the run has come."""
        heartbeat = min((self._points[name].heartbeat for name in self._streams), default=INFINITY)
        plans = list(self._queries.live.values())
        domain = plans[0].domain if plans else TimeDomain.INTEGER
        left = rows_left(self._streams, self._points)
        return progress_of(self.totals, left, heartbeat, domain, self._state)

    def sweep_strays(self) -> None:
        """Remove the files of epochs that did not commit."""
        self.kept.sweep_strays(self._state, self._points)
