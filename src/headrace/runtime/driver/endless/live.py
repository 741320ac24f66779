"""An endless run: a thread that turns what the feeds bring into epochs, until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from headrace.algebra.properties import names_read
from headrace.algebra.system_streams import system_stream
from headrace.algebra.tunings.tunings import Tunings
from headrace.elements import Batch
from headrace.errors import EndedError, HeadraceError, StoreError, UserError, as_ours, told
from headrace.lowering.behind import declared_name
from headrace.runtime.driver.beside.catch_up import Ahead, CatchingUps
from headrace.runtime.driver.beside.joining import catch_up_of
from headrace.runtime.driver.beside.starting_at import MOST_ROWS, CatchingUp, CatchUp
from headrace.runtime.driver.change.automatic import exchanged
from headrace.runtime.driver.change.beginning.boundary import Beginning, beginning_of
from headrace.runtime.driver.change.beginning.kept_input import kept_for
from headrace.runtime.driver.change.beginning.newcomer import Newcomer, newcomers
from headrace.runtime.driver.change.migration.join_order import reordered
from headrace.runtime.driver.change.refresh import Refreshed
from headrace.runtime.driver.change.tuning import tuned
from headrace.runtime.driver.change.wanted import (
    JoinRun,
    Placement,
    Redefine,
    Rename,
    Replace,
    RunChange,
    Settle,
    Starts,
    Tune,
    Wanted,
)
from headrace.runtime.driver.change.warm import Derivation
from headrace.runtime.driver.endless.attempt import Attempt
from headrace.runtime.driver.endless.feeds import Feeds
from headrace.runtime.driver.endless.promises import Promises
from headrace.runtime.driver.endless.retries import cause_of, run_epoch
from headrace.runtime.driver.endless.withdrawal import check_wanted, withdrawing
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.reports import LOG, log_passed_over
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns, seen_rows
from headrace.runtime.driver.facts.self_report import Epoch, describe
from headrace.runtime.driver.facts.working_set import fitting_rows
from headrace.runtime.driver.kept.replay import Choose, Replayed, carried_out
from headrace.runtime.driver.lanes.lanes import Lanes
from headrace.runtime.driver.lanes.status import LaneStatus, rows_of_lanes
from headrace.runtime.driver.manager.managed import Managed
from headrace.runtime.driver.manager.manager import Manager
from headrace.runtime.driver.manager.room import LOOKED_AT, Room
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.remembering.remembering import Remembering
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.driver.shedder.shedder import Shedder
from headrace.runtime.intake.feed import Feed
from headrace.runtime.intake.streams import Intake, LiveStream, ReadAgain, Streams
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.outside.patience import Away
from headrace.runtime.results.carried import written
from headrace.scheduling.priority import Priority

T = TypeVar("T")

LINGER = 0.02
"""Seconds that an epoch waits, after something has come, for other streams to bring something too."""

_LOOK = 0.25
"""Seconds between two looks at whether all feeds are well."""

_SHORTEST = 0.01
"""Seconds between two looks at the clock, at least."""

_HURRY = 1.0
"""Seconds that a change waits for an epoch before that does without the queries that are to go."""

_ENDING = 10.0
"""Seconds that the end of a run takes at most when no epoch is running."""


@dataclass(frozen=True)
class Asked:
    """What a run is asked to answer from the next epoch on.

    Attributes:
        wanted: all of it.
        feed: makes the feed of a live stream that is read from then on.
        warm: the new queries that take over the state of others, and how each follows from their answers.
        starts: the query that is new, goes on after a pause, or takes the place of another one, if kept rows
            may matter to it, and since when it answers.
        keeping: those queries to be paused for which the rows of their streams are kept meanwhile.
        another: the query that is another one from then on; None if there is none.
        replaced: the same where its answer goes on.
        ahead: the query of them that is there already; if None, it is brought to the present first.
        behind: the queries that were behind others when it was asked.
    """

    wanted: Wanted
    feed: Callable[[str], Feed]
    warm: Mapping[str, Derivation] = field(default_factory=dict)
    starts: Starts = field(default_factory=dict)
    keeping: Collection[str] = ()
    another: str | None = None
    replaced: str | None = None
    ahead: Ahead | None = None
    behind: Collection[str] = ()


class LiveRun:
    """Runs epochs as input comes.

    Args:
        run: what commits the epochs; the thread is its only user while it runs.
        changed: notified after every commit and at the end.
        progress: called after every epoch, or None.
        manager: keeps its state within a limit; one that has seen nothing of it if None.
        shedder: keeps it from falling behind; the same if None.

    Attributes:
        error: what ended the run, or None.
        stale: relations that could not be read again, with the reason; what was read before holds.
        attempt: the epoch that is running, or None.
        shedder: keeps the run from falling behind.
        lanes: let queries that are behind take turns.
    """

    def __init__(
        self,
        run: Run,
        changed: threading.Condition,
        progress: Callable[[Progress], None] | None = None,
        manager: Manager | None = None,
        shedder: Shedder | None = None,
    ) -> None:
        self._run = run
        self.shedder = shedder or Shedder()
        self._manager = manager or Manager()
        self._remembering = Remembering()
        self.lanes = Lanes(run)
        self._progress = progress
        self._changed = changed
        self._feeds = Feeds()
        self._changes: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._blamed: Mapping[str, BaseException] = {}
        self._away: dict[str, Away] = {}
        self._promises = Promises(changed, self._feeds)
        self._ahead = CatchingUps(run)
        self._stopping = False
        self._in_epoch = False
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="headrace epochs", daemon=True)
        self.error: BaseException | None = None
        self.stale: dict[str, str] = {}
        self.attempt: Attempt | None = None

    @property
    def troubles(self) -> dict[str, str]:
        """Streams that cannot be read for now, with the reason; they are tried again."""
        return {name: str(one) for name, one in self._away.items()} | self._feeds.troubles

    @property
    def problems(self) -> Mapping[str, str]:
        """Streams that were given up, with the reason; the others go on."""
        return self._feeds.problems

    def start(self, feeds: Mapping[str, Feed]) -> None:
        """Start the feeds and the thread; where a feed cannot start, those before it are stopped again."""
        self._feeds.start(feeds, self._run.point, self._run.columns)
        self._thread.start()

    def wake(self) -> None:
        """Something has come."""
        with self._changed:
            self._changed.notify_all()

    @property
    def running(self) -> bool:
        """Whether epochs are still run."""
        return self._thread.is_alive() and not self._ended

    @property
    def begun(self) -> bool:
        """Whether its feeds have been started; they may have been stopped since."""
        return self._thread.ident is not None

    def feed(self, name: str) -> Feed | None:
        """What brings the rows of a live stream that some query reads."""
        return self._feeds.get(name)

    @property
    def catching_up(self) -> CatchingUp | None:
        """How far the query is that is being brought from the past to the present; None if none is."""
        return self._ahead.progress

    def change(self, change: Asked) -> int:
        """Answer other queries from the next epoch on; returns when that is committed.

        Returns:
            The epoch of the change.

        Raises:
            UserError: a new stream cannot be started, a query that it is about has failed meanwhile, or the
                run has ended; nothing has changed then.
            StoreError: the change cannot be written; nothing has changed then.
        """
        with self._near(lambda: self._affected(change)):
            return self._changed_to(change)

    def _changed_to(self, change: Asked) -> int:
        """Answer other queries; the same as `change`."""
        ahead = change.ahead or self.ahead(change)
        if ahead is None:
            if self._ended:
                raise _over(self.error)
            ended = self._run.reading.queries.live.keys() - change.wanted.plans.keys()
            return self._between_epochs(lambda: self._change(change), ended - {*change.keeping})
        ahead.arrived.result()
        return self._between_epochs(lambda: self._change(replace(change, ahead=ahead)))

    def ahead(self, change: Asked) -> Ahead | None:
        """Begin to bring a query to the present that a change needs, while others change what they like.

        Args:
            change: the change that is to follow.

        Returns:
            None where there is none.

        Raises:
            UserError: rows are missing that its answer depends on, there is no memory for it, or the run has
                ended.
        """
        if not change.starts:
            return None

        def begun() -> Ahead | None:
            self._check_living(change)
            query = self._past_of(change)
            if query is None:
                return None
            try:
                # To bring it to the present takes long, and its state is there as well meanwhile.
                self._check_room(change)
            except BaseException:
                query.discard()
                raise
            return self._ahead.add(query)

        return self._between_epochs(begun)

    def give_up(self, ahead: Ahead) -> None:
        """Forget a query that was to be brought to the present."""
        self._between_epochs(lambda: self._ahead.give_up(ahead))

    @property
    def managed(self) -> Managed | None:
        """The findings of the manager of memory after the last commit; None where there is no limit."""
        return self._manager.found

    def check_limits(self, how: RunSettings) -> None:
        """Refuse limits of memory and time below what the run needs with the smallest windows.

        Raises:
            UserError: it is, or the run has ended.
        """
        self._between_epochs(lambda: self._manager.check_limits(self._run.reading, how))

    def seen(self, wanted: WantedColumns, rows: int, patience: float | None = None) -> SeenRun:
        """The findings of the run about streams; see `seen_rows`.

        Args:
            wanted: the streams and their columns.
            rows: about so many rows of each are looked at.
            patience: so long the end of an epoch is waited for (seconds); as long as it takes if None.

        Raises:
            StoreError: state, or rows that are kept, cannot be read.
            UserError: the run has ended, or an epoch takes longer.
        """
        done: Future[SeenRun] = Future()
        with self._changed:
            if self._ended:
                raise _over(self.error)
            self._changes.append((lambda: self._seen(wanted, rows), done))
            self._changed.notify_all()
        with withdrawing(done.cancel):
            if patience is not None and not wait([done], patience).done and done.cancel():
                raise UserError(f"an epoch has been running for {patience:g} s", hint="try again after it")
            return done.result()

    def room(self, change: Asked) -> Room | None:
        """The state that is expected of the queries that a change would add; see `Manager.room`.

        Raises:
            UserError: the run has ended.
        """
        return self._between_epochs(lambda: self._room(change))

    def settle(self, settings: RunSettings, max_dead_letters: int | None) -> None:
        """Go on in another way from the next epoch on; see `Settle`.

        Raises:
            UserError: the run has ended.
        """

        def settled() -> None:
            known = self._run.present.settings
            self._run.change(Settle(settings, max_dead_letters))
            limits = [(how.memory_limit, how.processing_limit, how.manager) for how in (settings, known)]
            if limits[0] != limits[1]:
                self._manage()
            if (settings.latency_bound, settings.shedder) != (known.latency_bound, known.shedder):
                self._shed()

        self._between_epochs(settled)

    def prioritise(self, priorities: Mapping[str, Priority]) -> None:
        """Let queries have these priorities from now on; those that are not named have the usual one.

        Raises:
            UserError: the run has ended.
        """
        if priorities != self.lanes.priorities:
            self._between_epochs(lambda: self._prioritise(priorities))

    def reoptimize(self, query: str) -> PlanExchange | None:
        """Let a query join in a better order, if there is one; see `Run.reoptimize`."""
        with self.near_present(query):
            return self._between_epochs(lambda: self._reoptimize(query))

    def reordering_of(self, query: str) -> PlanExchange | None:
        """The exchange that `reoptimize` would begin."""

        def found() -> PlanExchange | None:
            present = self._run.present
            order = reordered(present.holding(), query)
            if order is None:
                return None
            return exchanged(present, query, order.plan, order).queries.exchanged[query]

        return self._between_epochs(found)

    def rename(self, query: str, name: str, description: Description | None) -> None:
        """Give a query another name; returns when that is committed. See `Rename`."""
        self._between_epochs(lambda: self._run.change(Rename(query, name, description)))

    def tune(self, change: Tune) -> None:
        """Give windows within bounds another size; returns when that is committed."""
        self._between_epochs(lambda: self._run.change(change))

    def tunings_after(self, change: Tune) -> Tunings:
        """The sizes of windows that there would be after `tune`."""
        return self._between_epochs(lambda: tuned(self._run.present, change).queries.tunings)

    def beginning_of(self, query: str, change: Asked) -> Beginning:
        """The beginning that a query would have that is created, replaced or resumed now.

        Args:
            query: the query.
            change: the change that would do so.

        Raises:
            PlanError: all of the answer is final in whose place its own is to be.
            UserError: rows are missing from an instant on that was asked for, there is no state to take over,
                or the run has ended.
        """
        return self._between_epochs(lambda: beginning_of(self._newcomer(query, change)))

    def check_keeping(self, query: str, streams: Streams) -> None:
        """See that the rows of a query's streams can be kept for it while it is paused; see `kept_for`."""

        def check() -> None:
            kept_for(self._run.present, query, self._run.reading.queries.plans[query], streams)

        self._between_epochs(check)

    def refresh(self, relation: str, again: ReadAgain | None = None) -> Refreshed:
        """Read a relation again; returns when what was read counts.

        Args:
            relation: its name.
            again: reads all its rows; those of what it was declared with if None.

        Raises:
            UserError: it cannot be read, or not be refreshed; what was read before holds then.
            StoreError: what was read cannot be written; the same then.
        """
        with self._near(lambda: self._lanes_reading(relation)):
            return self._between_epochs(lambda: self._refresh(relation, again))

    def replay(self, stream: str, chosen: Choose) -> Replayed:
        """Let dead letters of a stream be input once more; returns when that counts, or nothing was taken.

        Args:
            stream: its name.
            chosen: which of them.

        Raises:
            UserError: no query reads the stream, or its dead letters are not kept; nothing has changed then.
        """
        with self._near(lambda: self._lanes_reading(stream)):
            return self._between_epochs(lambda: self._replay(stream, chosen))

    def _between_epochs(self, change: Callable[[], T], unwanted: Collection[str] = ()) -> T:
        """Let the thread carry out a change when no epoch is running; what it gives.

        Args:
            change: the change.
            unwanted: the queries that are not answered after it; an epoch that takes long does without them.
        """
        done: Future[T] = Future()
        with self._changed:
            if self._ended:
                raise _over(self.error)
            self._changes.append((change, done))
            self._changed.notify_all()
        # Until it begins it can be taken back; then it is waited for, since it may take effect.
        with withdrawing(done.cancel):
            try:
                if not unwanted or wait([done], _HURRY).done:
                    return done.result()
            except CancelledError:
                check_wanted()
                raise
        check_wanted()
        # What has been hurried cannot be taken back any more: the queries end with the epoch.
        self._run.drop(unwanted)
        try:
            return done.result()
        finally:
            self._run.want(unwanted)

    def promise(self, stream: str, heartbeat: int) -> Future[None]:
        """Take a heartbeat that a stream's source sends beside its rows; resolved when it is committed.

        Args:
            stream: a live stream that some query reads.
            heartbeat: no row that comes later is below it (instant).

        Raises:
            UserError: the run has ended.
        """
        with self._changed:
            if self._ended or stream not in self._feeds:
                raise _over(self.error)
            done = self._promises.add(stream, heartbeat)
            self._changed.notify_all()
        return done

    def stop(self, timeout: float | None = None) -> bool:
        """End after the epoch that is running.

        Args:
            timeout: seconds to wait for it; None waits as long as it takes.

        Returns:
            Whether it has ended.
        """
        self._stopping = True
        self.wake()
        if self._thread.ident is not None and not self._ended:
            self._thread.join(timeout)
            if not self._in_epoch:
                self._thread.join(_ENDING)
        return self._ended or not self._thread.is_alive()

    def abandon(self, error: UserError) -> None:
        """Abandon an epoch that does not end; it must not be able to commit any more.

        Args:
            error: what is raised to whoever waits for it.
        """
        self.error = error
        self._finish()

    def _loop(self) -> None:
        try:
            while not self._stopping:
                self._carry_out_changes()
                self._catch_up()
                self._refresh_what_is_due()
                intakes = self._next()
                if intakes is not None:
                    self._pass(intakes, intakes.keys())
        except BaseException as error:  # whatever it is, whoever waits has to hear of it
            self.error = self.error or error
        if not self._ended:
            self._finish()

    def _pass(self, intakes: Mapping[str, Intake], waiting: Collection[str] = ()) -> None:
        """Run an epoch, and do what follows from its commit.

        Args:
            intakes: what it takes.
            waiting: the streams that may come later.
        """
        before, epochs, began = self._run.reading, self._run.totals.epochs, time.perf_counter()
        lanes = self.lanes.status
        failed = self._run_epoch(intakes, waiting)
        took = time.perf_counter() - began
        self._note_away(intakes, failed)
        self._run.merge()
        if self._run.totals.epochs > epochs:
            self.lanes.note(intakes, before, took)
            self._note(intakes, before, lanes)
            self._remember()
            self._manage()
            self._shed()
        blamed = {name: error for name, error in self._blamed.items() if name not in intakes}
        self._blamed = {**blamed, **failed}
        self._feeds.settle(failed)
        self._promises.keep(failed)
        self._feeds.retire(self._run.streams)
        if self._run.end_exchanges() | self._run.follow():
            self._read_columns()
        self.wake()
        if self._progress is not None:
            self._progress(self._run.progress())

    def _prioritise(self, priorities: Mapping[str, Priority]) -> None:
        self.lanes.priorities = dict(priorities)
        if not self._run.reads_relations:
            self._place()

    def _place(self) -> None:
        """Give those queries lanes of their own that are to have them, and let others come back.

        A change that has let lanes come back goes on with all of them in front: so this is done before an
        epoch takes rows, and not after each.
        """
        lanes = self.lanes
        while (change := lanes.placement() or lanes.relief() or lanes.returning()) is not None:
            self._run.change(change)
            self._read_columns()
        lanes.look()

    @contextmanager
    def near_present(self, query: str) -> Iterator[None]:
        """Let a query that is behind others come near the present, and stay so for a while.

        Raises:
            UserError: the run has ended.
        """
        with self._near(lambda: self._lanes_with([query])):
            yield

    @contextmanager
    def _near(self, lanes: Callable[[], Collection[int]]) -> Iterator[None]:
        """Let lanes come near the present; what is done then comes soon enough after that."""
        try:
            self._approach(lanes)
            yield
        finally:
            # Whom nobody waits for any more goes on as before.
            self.lanes.hurried = set()

    def _approach(self, lanes: Callable[[], Collection[int]]) -> None:
        """Wait until lanes have come near the present, while others go on."""
        while bool(self._run.reading.queries.lanes) and self._between_epochs(lambda: self.lanes.far(lanes())):
            with self._changed:
                self._changed.wait(_LOOK)

    def _affected(self, asked: Asked) -> set[int]:
        """The lanes of queries that a change lets go on as others, or whose state others take over."""
        lanes = self._run.reading.queries.lanes
        return {lane for lane, names in lanes.items() if self._about(asked, names)}

    def _about(self, asked: Asked, queries: Collection[str]) -> list[str]:
        """Those of some queries that a change lets go on as others, or whose state others take over."""
        known, wanted = self._run.reading.queries, asked.wanted
        read = {name for derived in asked.warm.values() for _, names in derived.answers for name in names}
        touched = {*wanted.to_pause, *asked.keeping, *asked.starts, *read, asked.another}

        def goes_on(name: str) -> bool:
            plan, now = wanted.plans.get(name), known.plans[name]
            same = plan is None or plan is now or plan == now
            return same and (plan is None or wanted.holds.get(name) == known.holds.get(name))

        return [name for name in queries if name in touched or not goes_on(name)]

    def _check_living(self, asked: Asked) -> None:
        """See that no query that a change is about has failed on its way to the present.

        Raises:
            UserError: one has.
        """
        queries = self._run.reading.queries
        for name in self._about(asked, queries.failed.keys() & {*asked.behind}):
            raise _failed(queries, name)

    def _lanes_with(self, queries: Collection[str]) -> set[int]:
        """The lanes of some queries."""
        lanes = self._run.reading.queries.lanes
        return {lane for lane, names in lanes.items() if not set(names).isdisjoint(queries)}

    def _lanes_reading(self, name: str) -> set[int]:
        """The lanes of queries that read a stream or a relation."""
        plans = self._run.reading.queries.live
        return self._lanes_with([query for query, plan in plans.items() if name in names_read(plan)])

    def _come_back(self, lanes: Collection[int]) -> None:
        """Bring lanes to the present, and their queries back to the others."""
        for lane in lanes:
            while any(one.lane == lane and not one.is_present for one in self.lanes.backlogs):
                (one,) = (one for one in self.lanes.backlogs if one.lane == lane)
                self._look()
                self._pass(self._run.turn_of(one, MOST_ROWS))
            if names := self._run.reading.queries.lanes.get(lane):
                self._run.change(Placement(names, behind=False))

    def _remember(self) -> None:
        """Let joins remember what there is memory for, of queries that have a limit."""
        try:
            change = self._remembering.after(self._run.reading)
            if change is not None:
                self._run.change(change)
        except (StoreError, OSError):
            raise
        except Exception as error:
            log_passed_over("to look whether joins are within their memory", error)

    def _manage(self) -> None:
        """Give windows the sizes that are to be in force by the manager."""
        settings = self._run.present.settings
        waiting = {} if settings.processing_limit is None else self._feeds.waiting()
        try:
            change = self._manager.after(self._run.reading, settings, waiting)
            if change is not None:
                self._run.change(change)
                self._manager.after(self._run.reading, settings)
            self._feeds.fit(fitting_rows(self._run.totals, settings))
        except (StoreError, OSError):
            raise
        except Exception as error:
            log_passed_over("to look whether state is within its limit", error)

    def _shed(self) -> None:
        """Keep the shares of rows that are to be kept by the shedder."""
        settings = self._run.present.settings
        looks = settings.latency_bound is not None
        waiting = self._feeds.waiting() if looks else {}
        try:
            change = self.shedder.after(self._run.reading, settings, waiting, self._said)
            if change is not None:
                self._run.change(change)
                self.shedder.after(self._run.reading, settings, waiting, self._said)
        except (StoreError, OSError):
            raise
        except Exception as error:
            log_passed_over("to look whether a run is behind", error)

    def _said(self, query: str) -> list[Batch]:
        """The elements that the last epoch brought to a query's answer."""
        return written(query, self._run.store, self._run.results[-1])[0] if self._run.results else []

    def _note(self, intakes: Mapping[str, Intake], before: PublishedRun, lanes: Sequence[LaneStatus]) -> None:
        """Let whoever reads the streams about the run hear of an epoch, unless nothing else was in it."""
        noting = self._feeds.of_system
        if not noting or all(system_stream(declared_name(name)) is not None for name in intakes):
            return
        known = {name: rows for name, rows in self._feeds.waiting().items() if rows is not None}
        results, store = self._run.results[-1], self._run.store
        # The shedder has yet to look at the epoch: these are the shares that its rows have had.
        shares = () if self.shedder.found is None else self.shedder.found.rows
        rows = tuple(rows_of_lanes(lanes, self.lanes.status))
        epoch = Epoch(before, self._run.reading, results, store, self.problems, known, shares, rows)
        for feed in noting:
            feed.note(describe(epoch, feed.kind))

    def _note_away(self, intakes: Mapping[str, Intake], failed: Mapping[str, Exception]) -> None:
        """Remember of the streams without a feed which of them could not be read, and when to try again."""
        for name in intakes:
            if name not in self._feeds and (error := failed.get(name)) is not None:
                if name not in self._away:
                    LOG.warning("%s cannot be read for now: %s", name, told(error))
                self._away[name] = Away.after(self._away.get(name), error)
            else:
                self._away.pop(name, None)

    def _run_epoch(self, intakes: Mapping[str, Intake], waiting: Collection[str]) -> Mapping[str, Exception]:
        """Run an epoch; the streams that had to be left out, with the error."""
        self._in_epoch = True
        try:
            self.attempt = Attempt(self._run.totals.epochs + 1, time.monotonic())
            return run_epoch(
                *(self._run, intakes, self._blamed.keys()),
                *(lambda: self._stopping, self._notice_failure, waiting),
            )
        finally:
            self._in_epoch, self.attempt = False, None

    def _notice_failure(self, error: Exception) -> None:
        """An epoch is tried again."""
        if self.attempt is not None:
            self.attempt = replace(self.attempt, failed=cause_of(error))

    def _finish(self) -> None:
        """Let everyone hear that no epoch follows."""
        try:
            with ExitStack() as last:
                last.callback(self._end)
                self._feeds.stop(last)
                if self.error is not None:
                    last.callback(self._feeds.settle, dict.fromkeys(self._feeds.names, self.error))
        except BaseException as error:  # the other steps have been taken all the same
            self.error = self.error or error

    def _end(self) -> None:
        """Refuse the changes that nobody will carry out."""
        with self._changed:
            self._stopping = self._ended = True
            refused, self._changes = self._changes, []
            self._changed.notify_all()
        self._ahead.end(_over(self.error))
        for _, change in refused:
            with suppress(InvalidStateError):  # taken back meanwhile
                change.set_exception(_over(self.error))
        self._promises.end(_over(self.error))

    def _carry_out_changes(self) -> None:
        """Change the plan as it was asked for; what goes wrong is for whoever asked."""
        while self._changes:
            change, done = self._changes[0]
            try:
                found = change() if done.set_running_or_notify_cancel() else None
                self.lanes.look()
            except Exception as error:
                if not isinstance(error, HeadraceError):
                    LOG.warning("a change of the run failed", exc_info=error)
                done.set_exception(as_ours(error, "the change"))
            else:
                if not done.cancelled():
                    done.set_result(found)
            with self._changed:
                self._changes.pop(0)
                self._changed.notify_all()

    def _past_of(self, change: Asked) -> CatchUp | None:
        """The query of a change that is to be brought to the present first; None where there is none."""
        if not self._run.totals.epochs:
            # It is there before the first row.
            return None
        (name,) = change.starts
        return catch_up_of(self._run, self._newcomer(name, change))

    def _newcomer(self, query: str, change: Asked) -> Newcomer:
        """A query that a change lets begin, for which there is time to read kept rows if any may matter."""
        replaced = change.another == query
        (found,) = newcomers(
            *(self._run.present, change.wanted, (query,), change.warm, change.starts),
            alike=change.replaced is not None if replaced else None,
            beside=query in change.starts and bool(self._run.totals.epochs),
        )
        return found

    def _catch_up(self) -> None:
        """Bring a query that is to join an epoch nearer to the present."""
        self._in_epoch = True
        try:
            caught = self._ahead.step()
        finally:
            self._in_epoch = False
        if caught:
            self.wake()

    def _reoptimize(self, query: str) -> PlanExchange | None:
        self._come_back(self._lanes_with([query]))
        if query in self._run.reading.queries.failed:
            raise _failed(self._run.reading.queries, query)
        found = self._run.reoptimize(query)
        self._read_columns()
        return found

    def _refresh(self, relation: str, again: ReadAgain | None = None) -> Refreshed:
        while self._run.reads_relations:
            self._pass(self._run.next_share())
        self._come_back(self._lanes_reading(relation))
        refresh = self._run.refresh(relation, again)
        if refresh.intakes:
            # Where that fails, the files may count all the same: the next start looks which do.
            self._pass(refresh.intakes)
            self._run.forget(refresh)
        self.stale.pop(relation, None)
        return refresh.report

    def _refresh_what_is_due(self) -> None:
        """Read relations again by the clock; where that fails, the old content holds until the next time."""
        for relation in self._run.due_refreshes():
            if self.lanes.far(self._lanes_reading(relation)):
                # It is read when those that read it are near the present.
                continue
            try:
                self._refresh(relation)
            except UserError as error:
                self.stale[relation] = f"it could not be read again: {told(error)}"
                LOG.warning("the relation %s stays as it was: %s", relation, self.stale[relation])

    def _replay(self, stream: str, chosen: Choose) -> Replayed:
        while self._run.reads_relations:
            self._pass(self._run.next_share())

        self._come_back(self._lanes_reading(stream))

        def run(intake: Intake) -> int:
            self._pass({stream: intake})
            return self._run.totals.epochs

        return carried_out(lambda: self._run.letters_for(stream, chosen), run)

    def _read_columns(self) -> None:
        """Let the feeds know which columns are read now."""
        self._feeds.read(self._run.columns)

    def _change(self, asked: Asked) -> int:
        """Start the feeds that a change needs, commit it, and stop the feeds that nobody needs; its epoch."""
        started: dict[str, Feed] = {}
        wanted = asked.wanted
        self._come_back(self._affected(asked))
        self._check_living(asked)
        wider = self._feeds.wider(self._run.streams, wanted.streams)
        columns = self._run.columns_for(wanted)
        self._check_room(asked)
        try:
            for name in columns:
                if isinstance(wanted.streams.get(name), LiveStream) and name not in self._feeds:
                    started[name] = asked.feed(name)
                    started[name].start(self._run.point(name), columns[name])
            self._run.change(self._kind_of(asked))
        except BaseException:
            for feed in started.values():
                feed.stop()
            raise
        self._feeds.retire(self._run.streams)
        self._feeds.add(started)
        self._feeds.widen(wider, asked.feed, self._run.point, columns)
        self._read_columns()
        changed = self._run.totals.epochs
        self._manage()
        return changed

    def _check_room(self, asked: Asked) -> None:
        """Refuse queries for which there is no memory or time even with the smallest windows."""
        settings = self._run.present.settings
        if not settings.has_limits or settings.managing is not Managing.ACT:
            return
        room = self._room(asked)
        if room is not None:
            room.check()
        self._manager.expect(room)

    def _room(self, asked: Asked) -> Room | None:
        """The state that is expected of queries that are asked for and not there; None if nothing is."""
        present, wanted = self._run.present, asked.wanted
        settings, known = present.settings, present.known.queries
        new = [name for name in wanted.plans if name not in known.plans or name == asked.another]
        if not new:
            return None
        other = known.changed(wanted.plans, present.epoch, present.settings.look, holds=wanted.holds)
        named = other.called(wanted.names or known.names)
        return self._manager.room(
            self._run.reading, named, new, lambda read: self._seen(read, LOOKED_AT), settings
        )

    def _seen(self, wanted: WantedColumns, rows: int) -> SeenRun:
        run = self._run
        return seen_rows(run.reading, run.present.holding(), wanted, self._manager.rate, rows)

    def _kind_of(self, asked: Asked) -> RunChange:
        """The change that carries out what is asked for.

        Raises:
            UserError: rows are missing that the answer of a query will depend on that is to keep its input.
        """
        if asked.ahead is not None:
            return JoinRun(asked.wanted, self._ahead.take(asked.ahead))
        if asked.another is not None:
            return Replace(asked.wanted, asked.another, goes_on=asked.replaced is not None)
        plans = self._run.reading.queries.plans
        new = (name for name in asked.keeping if name in plans)
        present, streams = self._run.present, asked.wanted.streams
        kept = {name: kept_for(present, name, plans[name], streams) for name in new}
        return Redefine(asked.wanted, asked.warm, keeping=kept, starts=asked.starts)

    def _next(self) -> dict[str, Intake] | None:
        """What the next epoch takes, nothing where time alone makes it; None where there is to be none yet.

        Waits until there is something, or for a short while.
        """
        with self._changed:
            patience = 0.0 if self._ahead.first is not None or self.lanes.waits else self._patience()
            self._changed.wait_for(self._something, timeout=patience)
        self._feeds.check(self._blamed)
        if self._stopping or self._changes:
            return None
        if self._run.reads_relations:
            return self._share() or None
        self._place()
        ready = self._something()
        if (turn := self.lanes.take(front=ready)) is not None:
            self._look()
            return dict(turn)
        if not ready:
            self._look()
            return {} if self._run.is_due() else None
        if not (self._feeds.all_ready() or self.lanes.waits):
            time.sleep(LINGER)
        intakes = {**self._share(), **self._feeds.take(self._run.point), **self.lanes.beside()}
        self._promises.take(intakes, self._run.point)
        self._look()
        return intakes

    def _patience(self) -> float:
        """Seconds until the next look at whether all feeds are well, and at the clock."""
        wait = self._run.wait()
        return _LOOK if wait is None else min(_LOOK, max(wait, _SHORTEST))

    def _look(self) -> None:
        """Let time count for the streams that have nothing left, now that what there was is taken."""
        if self._run.counts_time:
            self._run.look(self._feeds.caught_up)

    def _something(self) -> bool:
        if self._stopping or self._changes:
            return True
        share = self._share()
        if share or self._run.reads_relations:
            return bool(share)
        return bool(self._promises) or self._feeds.any_ready()

    def _share(self) -> dict[str, Intake]:
        """What the next epoch takes of the bounded streams, without those that are away for now."""
        share = self._run.next_share()
        return {name: one for name, one in share.items() if name not in self._away or self._away[name].is_due}


def _over(error: BaseException | None) -> UserError:
    """The error for whoever asked for a change too late."""
    reason = f"the run ended with: {told(error)}" if error is not None else "the database was stopped"
    return EndedError(f"the queries were not changed: {reason}", hint="try again, then call start()")


def _failed(queries: QuerySet, query: str) -> UserError:
    """The error for whoever asked for a change of a query that has failed meanwhile."""
    name, (reason, _) = queries.name_of(query), queries.failed[query]
    return UserError(
        f"{name} has failed meanwhile: {reason}",
        hint=f"replace it, try it again with ALTER QUERY {name} RESUME, or drop it: DROP QUERY {name}",
    )
