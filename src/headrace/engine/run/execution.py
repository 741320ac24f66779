"""One execution of a database's queries: its store, its run, and the thread of an endless one."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from headrace.algebra.system_streams import system_stream
from headrace.algebra.tunings.tunings import Tuning, Tunings, tunings_in
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.inputs.inputs import TemporaryFolders, stream_folder, system_feed
from headrace.engine.inputs.times import instant_of
from headrace.engine.planning.holds import earlier_identity_of, identity_of
from headrace.engine.planning.samples import looked_at
from headrace.engine.query.choices import holds_in
from headrace.engine.query.query import Query
from headrace.engine.run.answers import Answers
from headrace.engine.run.watched import Watched
from headrace.engine.shown.status import Status, status_of
from headrace.engine.shown.summary import Summary, summarise
from headrace.engine.views.subscription import Subscription
from headrace.errors import EndedError, ExecutionError, StoreError, UserError, told, warn
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import RelationInfo, StreamInfo
from headrace.language.defaults import INITIAL, Defaults
from headrace.language.statements.statements import Heartbeats
from headrace.lowering.graph import Graph
from headrace.lowering.lower import NO_HOLDS, Holds
from headrace.optimizer.cost.expected import Expectation
from headrace.runtime.delivery.clients import Clients
from headrace.runtime.delivery.contract import STOP_TIMEOUT, Attachment, Reached
from headrace.runtime.delivery.deliveries import Deliveries
from headrace.runtime.driver.beside.catch_up import Ahead
from headrace.runtime.driver.beside.joining import join, keeps_rows
from headrace.runtime.driver.change.beginning.boundary import Beginning
from headrace.runtime.driver.change.refresh import Refreshed
from headrace.runtime.driver.change.wanted import AnswerStart, Settle, Starts, Tune, Wanted
from headrace.runtime.driver.change.warm import derivation
from headrace.runtime.driver.endless.live import Asked, LiveRun
from headrace.runtime.driver.endless.retries import run_to_end
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.seen_rows import SeenRun, WantedColumns
from headrace.runtime.driver.kept.letters import all_columns, kept_letters
from headrace.runtime.driver.kept.replay import Choose, Replayed
from headrace.runtime.driver.kept.strictness import refuse_dead_letters
from headrace.runtime.driver.manager.manager import Manager
from headrace.runtime.driver.manager.room import Room
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.driver.shedder.shedder import Shedder
from headrace.runtime.intake.feed import Feed
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.retained import all_retained, not_kept
from headrace.runtime.intake.shares import FIRST_ROWS
from headrace.runtime.intake.streams import (
    BoundedRelation,
    BoundedStream,
    Incoming,
    LiveStream,
    ReadAgain,
    Retain,
)
from headrace.runtime.intake.system_feed import Pace
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description, Differences
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.journal.journal import Journal
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.changes import Change
from headrace.runtime.results.dead_letters import dead_letters, newest_dead_letters
from headrace.runtime.results.instants import form_of
from headrace.runtime.sources.composed.later import later
from headrace.runtime.store.paths import file_name, inside
from headrace.runtime.store.segments import FolderStore, reading_store
from headrace.runtime.tasks.runner import Runner
from headrace.schema import Schema
from headrace.time import INFINITY, MAX_INSTANT, MIN_INSTANT

_LOG: Final = logging.getLogger("headrace")


@dataclass(frozen=True)
class Settings:
    """How a database runs its queries.

    Attributes:
        storage: the folder of a durable store, or None for a temporary one.
        run: how a run cuts its input, and what it keeps.
        max_dead_letters: how many dead letters end the run if there are more; any number if None.
        given: what of it somebody has said who opened the database, by the names of the arguments.
        dialect: how texts are read until SET dialect says something else.
        machine: how many bytes of memory there are, where all of a run is on this machine and that is known.
    """

    storage: Path | None
    run: RunSettings
    max_dead_letters: int | None
    given: frozenset[str] = frozenset()
    dialect: Defaults = INITIAL
    machine: int | None = None


class Execution:
    """Queries at work, or that have been.

    Args:
        runner: where epochs run.
        settings: how.
        defined: the queries, and all streams.
        adapt: whether a durable store follows when queries are new or missing, or refuses.

    Attributes:
        run: what commits the epochs.
        store: where everything lies.
        answers: what the queries have said.

    Raises:
        StoreError: the durable store cannot be used.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        defined: Definitions,
        *,
        adapt: bool,
    ) -> None:
        self._runner = runner
        self._defined = self._asked = defined
        self._settings = settings
        self._folders = TemporaryFolders()
        self._feed_folder = settings.storage or self._folders.new()
        self._changed = threading.Condition()
        self._live: LiveRun | None = None
        self._pace = Pace()
        self._journal: Journal | None = None
        self._watched: Watched | None = None
        self._changes = Differences()
        buckets = settings.run.buckets or runner.buckets(bulk=defined.has_bulk)
        if settings.storage is None:
            self.store = runner.new_store()
        else:
            self.store = FolderStore(str(settings.storage), durable=True)
            description = self._described(defined, buckets)
            self._journal = Journal(self.store, description)
            buckets = self._journal.buckets
        self._buckets = buckets
        how = replace(settings.run, buckets=buckets, look=self._look)
        holds, names = _holds(defined), defined.names
        self.run = Run(runner, self.store, defined.streams, defined.plans, how, holds, names)
        if self._journal is not None:
            try:
                with reading_store(self._feed_folder):
                    self._go_on(self._journal, description, adapt=adapt)
            except BaseException:
                self._journal.close()
                raise
        self._deliveries = Deliveries(self.store, lambda: self.run.results, self._changed)
        try:
            self._clients = Clients(self.store, lambda: self.run.results, self._name_of)
            self._clients.keep({*defined.queries, *defined.not_answered})
        except BaseException:
            self._release()
            raise
        self.run.kept.oldest_needed = self._needed
        self.run.kept.allowed = settings.max_dead_letters
        self.answers = Answers(self.run, self.store, self._changed, self._state)
        self._answer(defined)
        self._watched = None if settings.storage is None else Watched(settings.storage, self._look_at_all)

    def _go_on(self, journal: Journal, description: Description, *, adapt: bool) -> None:
        """Take up the run of a durable store at its last commit, and bring what is new to the present."""
        defined = self._defined
        past = {**_filled(defined, defined.answered), **_past(defined)}
        self._changes = self.run.resume(journal, description, adapt=adapt, past=past)
        starts = {name: start for name, start in past.items() if name in self._changes.added}
        if not self.run.totals.epochs:
            starts = {name: start for name, start in starts.items() if start is not None}
        # Those whose input was kept while they were paused join over it.
        kept = _resumed(defined, self.run)
        anew = [name for name in self._changes.anew if name not in kept]
        join(self.run, {**dict.fromkeys(anew), **starts, **kept}, self._wanted(defined, description))
        self._say_what_lacks(anew)
        self._sweep_streams()

    def _say_what_lacks(self, names: Sequence[str]) -> None:
        """Warn of queries whose state was of no use, and say what they lack."""
        for name in names:
            gaps = self.run.reading.queries.gaps.get(name, ())
            domain = self._defined.answered[name].domain
            lacks = f"it says {gaps[-1].text(domain)}" if gaps else "it lacks nothing"
            warn(
                f"{self._name_of(name)} is carried out in another way than its store has it: another version "
                f"wrote that, or a function is another one. Its state is of no use, so that {lacks}"
            )

    @property
    def differences(self) -> Differences:
        """The queries that were new to the store, and those that only it had, by name."""
        return self._changes.named()

    @property
    def running(self) -> bool:
        """Whether an endless run is going on."""
        return self._live is not None and self._live.running

    @property
    def problems(self) -> Mapping[str, str]:
        """Inputs that cannot be read, were given up or not read again, and sinks that fail; and why."""
        live = self._live
        troubles = live.troubles if live is not None and self.running else {}
        given_up = {} if live is None else {**live.problems, **live.stale}
        return {**self._away, **troubles, **given_up, **self._deliveries.problems}

    @property
    def _away(self) -> dict[str, str]:
        """Bounded inputs that were away when the store was opened, and are needed."""
        found = {}
        for name, one in self.run.streams.items():
            if not isinstance(one, BoundedStream | BoundedRelation):
                continue
            away = later(one.source)
            if away is not None and self.run.point(name).heartbeat != INFINITY and away.trouble is not None:
                found[name] = away.trouble
        return found

    @property
    def sinks(self) -> tuple[Reached, ...]:
        """How far each sink is."""
        return self._deliveries.reached

    @property
    def status(self) -> Status:
        """How far everything is, as of the last commit; ages up to now."""
        live = self._live
        return status_of(
            self.run.reading,
            self.run.results,
            self._settings.run.clock.now(),
            running=self.running,
            problems=live.problems if live is not None else {},
            troubles=live.troubles if live is not None and self.running else {},
            attempt=live.attempt if live is not None else None,
            catching_up=live.catching_up if live is not None else None,
            clients=self._clients.all(),
            sinks=self.sinks,
            ended=None if self.ended_by is None else told(self.ended_by),
            managed=None if live is None else live.managed,
            shedding=None if live is None else live.shedder.found,
            lanes=() if live is None else live.lanes.status,
        )

    def ahead(self, defined: Definitions) -> Ahead | None:
        """Begin to bring a query to the present with which definitions are to take effect; None without any.

        Args:
            defined: the queries from then on, and all streams.

        Raises:
            UserError: rows are missing that it depends on, or the run has ended.
        """
        assert self._live is not None
        return self._live.ahead(self._change_to(defined))

    def seen(self, wanted: WantedColumns, rows: int, patience: float | None = None) -> SeenRun:
        """The findings of the run that goes on about streams; see `LiveRun.seen`."""
        assert self._live is not None
        return self._live.seen(wanted, rows, patience)

    @contextmanager
    def near_present(self, query: str) -> Iterator[None]:
        """Let a query that is behind others come near the present; see `LiveRun.near_present`."""
        assert self._live is not None
        with self._live.near_present(query):
            yield

    def give_up(self, ahead: Ahead) -> None:
        """Forget a query that was to be brought to the present."""
        assert self._live is not None
        self._live.give_up(ahead)

    def change(self, defined: Definitions, ahead: Ahead | None = None) -> None:
        """Answer other queries from the next epoch on; returns when that is committed.

        Args:
            defined: the queries from then on, and all streams.
            ahead: the query of them that has been brought to the present, if there is one.

        Raises:
            UserError: a new stream cannot be started, or the run has ended; nothing has changed then.
            StoreError: the change cannot be written; nothing has changed then.
        """
        assert self._live is not None
        gone = self.run.known_streams - defined.streams.keys()
        if not self._differs(defined, gone):
            self._limit_feeds(defined)
            return
        self._asked = defined
        failed = self.run.reading.queries.failed
        epoch = self._live.change(replace(self._change_to(defined), ahead=ahead))
        self._defined = defined
        self._limit_feeds(defined)
        self._answer(defined, epoch, failed)
        self._live.prioritise(defined.priorities)
        for name in gone:
            self._forget_stream(name)

    def _differs(self, defined: Definitions, gone: Collection[str]) -> bool:
        """Whether a run, or its store, has to hear of definitions."""
        streams = defined.streams
        retimed = any(
            _declared(stream) != _declared(streams[name])
            for name, stream in self.run.streams.items()
            if name in streams
        )
        same = defined.queries == self._defined.queries
        recorded = self._journal is not None and defined.records.known != self._defined.records.known
        return not same or bool(gone) or retimed or recorded

    def _change_to(self, defined: Definitions) -> Asked:
        """What the run is asked for by definitions."""
        description = self._described(defined, self._buckets) if self._journal is not None else None
        another = self._another(defined)
        known = {name: query.plan for name, query in self._defined.answered.items()}
        goes_on = {*known, *self.run.reading.queries.paused}
        new = {name: query for name, query in defined.answered.items() if name not in goes_on}
        starts: Starts = {name: start for name, start in _past(defined).items() if name in new}
        starts = starts or _resumed(defined, self.run) or dict.fromkeys(_going_on(defined, self.run))
        if another is not None or len(new) == 1:
            starts = starts or ({another: None} if another is not None else _filled(defined, new))
        return Asked(
            self._wanted(defined, description),
            lambda name: self._feed(name, defined),
            {name: derivation(query.plan, known) for name, query in new.items() if query.warm},
            starts if len(starts) == 1 else {},
            defined.keeping_input,
            another,
            another if another is not None and self._goes_on(defined.answered[another]) else None,
            behind=[name for names in self.run.reading.queries.lanes.values() for name in names],
        )

    def _wanted(self, defined: Definitions, description: Description | None) -> Wanted:
        """What the run is by definitions."""
        return Wanted(
            *(defined.plans, defined.streams, description, _holds(defined)),
            *(defined.not_answered, defined.names),
        )

    def _name_of(self, query: str) -> str:
        """What the query of an identity is called."""
        return self.run.reading.queries.name_of(query)

    def _another(self, defined: Definitions) -> str | None:
        """The query that is another one from then on, and has not failed, by identity; None without one."""
        failed = self.run.reading.queries.failed
        known = self._defined.answered
        others = (
            name
            for name, query in defined.answered.items()
            if known.get(name, query) is not query and name not in failed
        )
        return next(others, None)

    def _goes_on(self, query: Query) -> bool:
        """Whether the answer of the query that has the name goes on in that of another one."""
        return form_of(query.plan).is_like(form_of(self._defined.answered[query.id].plan))

    def settle(self, settings: Settings) -> None:
        """Go on in another way from the next epoch on."""
        self._settings = settings
        if self._live is not None and self.running:
            self._live.settle(settings.run, settings.max_dead_letters)
            self._limit_feeds(self._defined)
        else:
            self.run.change(Settle(settings.run, settings.max_dead_letters))

    def _limit_feeds(self, defined: Definitions) -> None:
        """Say to what is pushed to how much epochs take, and what happens to the rest."""
        run = self._settings.run
        for name, stream in defined.inputs.items():
            if self._live is not None and isinstance(feed := self._live.feed(name), PushFeed):
                rows = stream.max_rows or run.epoch_rows or FIRST_ROWS
                feed.limit(rows, run.epoch_bytes, stream.overflow)

    def reoptimize(self, query: str) -> PlanExchange | None:
        """Let a query join in a better order, if there is one; see `Run.reoptimize`.

        Raises:
            UserError: the plan cannot be exchanged, or the run has ended; nothing has changed then.
            StoreError: the change cannot be written; nothing has changed then.
        """
        assert self._live is not None
        return self._live.reoptimize(query)

    def reordering_of(self, query: str) -> PlanExchange | None:
        """The exchange that `reoptimize` would begin; None where there is no better order.

        Raises:
            PlanError: the plan cannot be exchanged, and why.
        """
        assert self._live is not None
        return self._live.reordering_of(query)

    def tune(self, change: Tune) -> None:
        """Give windows within bounds another size; see `LiveRun.tune`."""
        assert self._live is not None
        self._live.tune(change)

    def tunings_after(self, change: Tune) -> Tunings:
        """The sizes that there would be; see `LiveRun.tunings_after`."""
        assert self._live is not None
        return self._live.tunings_after(change)

    def _tuned_by(self) -> dict[Tuning, list[str]]:
        """The queries that have windows whose sizes may change, by identity."""
        found: dict[Tuning, list[str]] = {}
        for name, known in self._defined.queries.items():
            for tuning in tunings_in(known.plan):
                found.setdefault(tuning, []).append(name)
        return found

    def check_limits(self, how: RunSettings) -> None:
        """Refuse limits below what the run needs; see `LiveRun.check_limits`."""
        if self._live is not None and self.running:
            self._live.check_limits(how)

    def rename(self, defined: Definitions, query: Query, name: str) -> None:
        """Give a query another name; returns when that is committed.

        Args:
            defined: all queries, this one under the other name.
            query: it, with the name so far.
            name: the other one.

        Raises:
            UserError: the run has ended; nothing has changed then.
            StoreError: it cannot be written; nothing has changed then.
        """
        assert self._live is not None
        description = self._described(defined, self._buckets) if self._journal is not None else None
        self._live.rename(query.id, name, description)
        self._deliveries.rename(query.id, name)
        self._asked = self._defined = defined

    def beginning_of(self, query: Query, defined: Definitions) -> Beginning:
        """The beginning that a query would have that is created, replaced or resumed now.

        Args:
            query: the query.
            defined: all queries with it, and all streams.

        Raises:
            PlanError: all of the answer is final in whose place its own is to be.
            UserError: it could not begin so, or the run has ended.
        """
        assert self._live is not None
        return self._live.beginning_of(query.id, self._change_to(defined))

    def room(self, defined: Definitions) -> Room | None:
        """The state that queries would add that are in definitions and not in the run; None if not known.

        Args:
            defined: all queries, and all streams.

        Raises:
            UserError: the run has ended.
        """
        assert self._live is not None
        return self._live.room(self._change_to(defined))

    def check_keeping(self, query: Query) -> None:
        """See that the rows of a query's streams can be kept for it while it is paused.

        Raises:
            UserError: rows are missing that its answer will depend on, or the run has ended.
        """
        assert self._live is not None
        self._live.check_keeping(query.id, self._defined.streams)

    def refresh(self, relation: str, again: ReadAgain | None = None) -> Refreshed:
        """Read a relation again; see `LiveRun.refresh`."""
        assert self._live is not None
        return self._live.refresh(relation, again)

    def replay(self, stream: str, chosen: Choose) -> Replayed:
        """Take dead letters of a stream once more; see `LiveRun.replay`."""
        assert self._live is not None
        found = self._live.replay(stream, chosen)
        answers = tuple(replace(one, query=self._name_of(one.query)) for one in found.answers)
        return replace(found, answers=answers)

    def _look(self, graph: Graph) -> Sequence[Expectation] | None:
        return looked_at(self._asked, graph)

    def _needed(self) -> int:
        """The oldest epoch whose results a sink or a client has yet to read."""
        return min(self._deliveries.needed(), self._clients.needed(self.run.kept.retain))

    def attend(self, query: Query, client: str, from_epoch: int) -> Subscription[Change]:
        """The changes of a query for a client with a name, who has had those that it has asked beyond.

        Args:
            query: the query.
            client: what the client calls itself.
            from_epoch: where it begins if it is not known yet.
        """
        clients, name = self._clients, query.id
        self.answers.reader(query)
        reader = object()
        begin = clients.begin(name, client, self.run.reading.queries.start_of(name), from_epoch, reader)
        changes = self.answers.follow(query, begin)

        def acknowledged() -> Iterator[Change]:
            for change in changes:
                yield change
                # Whoever asks for the next one has this one.
                clients.acknowledge(name, client, change.epoch, reader)

        return Subscription(acknowledged(), changes.close)

    def forget_client(self, query: Query, client: str) -> None:
        """Keep nothing for a client of a query any more.

        Raises:
            UserError: there is no such client.
        """
        self._clients.forget(query.id, client)

    def drop_sinks(self, query: str) -> None:
        """End the deliveries of a query that was dropped, when they have delivered what was committed.

        Args:
            query: its identity.

        Its clients are forgotten; where a store hears of the drop only when the next run begins, by that.

        Raises:
            DeliveryError: a sink has not taken everything.
        """
        if self.running or self._journal is None:
            self._clients.drop(query)
        self._deliveries.drop(query, STOP_TIMEOUT)

    def drop_sink(self, attachment: Attachment) -> str | None:
        """End the delivery to a sink that was dropped, when it has delivered what was committed.

        Returns:
            Why it has not taken everything, or None if it has.
        """
        return self._deliveries.drop_sink(attachment.identity, attachment.name, STOP_TIMEOUT)

    def attach(self, *attachments: Attachment) -> None:
        """Deliver the changes of queries, from now on or from when the run starts.

        Args:
            attachments: each the query's name and the sink.

        Raises:
            UserError: a sink cannot be used, or would miss epochs.
        """
        found = []
        for one in attachments:
            query = self._defined.queries[one.identity].query
            found.append((one, query.plan, self.run.reading.queries.start_of(query.id)))
        self._deliveries.add(*found)

    def complete(self, progress: Callable[[Progress], None] | None) -> Summary:
        """Read bounded streams to their end.

        Raises:
            UserError: a stream never ends, an input is damaged, or a sink does not take everything.
        """
        try:
            endless = [name for name, read in self.run.streams.items() if isinstance(read, LiveStream)]
            if endless:
                raise UserError(f"the stream {endless[0]} never ends", hint="call start() instead of run()")
            # A store may have more of them than are allowed now, and no further epoch.
            refuse_dead_letters(
                self._settings.max_dead_letters,
                self.run.totals.dead_letters,
                self.store,
                self.run.results,
            )
            _LOG.info("running to the end: %s", self._names(self._defined))
            run_to_end(self.run, progress)
            self._deliveries.finish()
        finally:
            self._release()
        return self._logged(self._summary())

    def start(self, progress: Callable[[Progress], None] | None) -> None:
        """Run epochs in a thread, as input comes; `progress` is called after each."""
        manager = Manager(self._tuned_by)
        manager.begin(self.run.reading)
        self._live = LiveRun(self.run, self._changed, progress, manager, Shedder(self._tuned_by))
        self._live.lanes.priorities = self._defined.priorities
        live = (name for name, read in self.run.streams.items() if isinstance(read, LiveStream))
        self._live.start({name: self._feed(name, self._defined) for name in live})
        self._deliveries.start()
        _LOG.info("started: %s", self._names(self._defined))

    def push(
        self,
        name: str,
        rows: Any,
        producer: str | None,
        sequence: int | None,
        patience: float | None = None,
    ) -> Future[bool]:
        """Add rows to a pushed stream; resolved when they are committed.

        Raises:
            BusyError: there is no room for them after so many seconds of patience.
            UserError: there is no such stream among those that a query reads, the rows do not fit, or the run
                has not begun.
        """
        feed = self._begun().feed(name)
        if not isinstance(feed, PushFeed):
            raise UserError(
                f"no query reads a stream {name} of pushed rows",
                hint="CREATE STREAM name (...) FROM push TIMESTAMP BY column, and a query over it",
            )
        return feed.put(rows, producer, sequence, patience)

    def heartbeat(self, name: str, at: object) -> None:
        """Take a heartbeat of a live stream; returns when it is committed.

        Raises:
            UserError: no query reads such a stream, it is not timed by such instants, or by arrival, or the
                run has not begun.
        """
        live = self._begun()
        if live.feed(name) is None:
            raise UserError(
                f"no query reads a live stream {name}",
                hint="heartbeats are sent for streams FROM push and for Spark's, while a query reads them",
            )
        info = self._defined.catalog.find(name)
        if isinstance(info, RelationInfo) and info.changes is not None:
            info = info.changes.stream
        if not isinstance(info, StreamInfo) or info.by_arrival:
            raise UserError(
                f"{name} is timed by arrival, so that the clock alone moves its heartbeat",
                hint="leave it out: no answer waits for a row of it",
            )
        instant = instant_of(at, info.domain)
        if not MIN_INSTANT <= instant <= MAX_INSTANT:
            raise UserError(f"{instant} is not an instant of {name}", hint="instants have 62 bits at most")
        live.promise(name, instant).result()

    def _begun(self) -> LiveRun:
        """The endless run, whose feeds are those of the streams that queries read.

        Raises:
            UserError: it has not begun; another thread may just be starting it.
        """
        if self._live is None or not self._live.begun:
            raise EndedError("the database is not started", hint="call start() first")
        return self._live

    def stop(self, timeout: float | None) -> Summary:
        """End between two epochs, when the sinks have taken what was committed.

        Args:
            timeout: seconds to wait for the epoch and the sinks; None waits as long as it takes.

        Raises:
            ExecutionError: the epoch has not ended in time.
            UserError: the run has not begun.
            BaseException: what ended the run before.
        """
        live = self._begun()
        self._end_and_release(timeout)
        if live.error is not None:
            raise live.error
        self._deliveries.check()
        return self._logged(self._summary())

    def close(self) -> None:
        """Stop what runs, and remove what is temporary."""
        try:
            self._end_and_release(STOP_TIMEOUT)
            self.run.kept.forget_refused()
        finally:
            self.store.close()

    def _end_and_release(self, timeout: float | None) -> None:
        """Wait for what runs, and let another driver have the store whatever goes wrong meanwhile."""
        try:
            self._end(timeout)
        finally:
            self._release()

    def _end(self, timeout: float | None) -> None:
        """Wait for the epoch that is running and for the sinks; abandon those that take longer."""
        until = None if timeout is None else time.monotonic() + timeout
        if self._live is not None and not self._live.stop(timeout):
            # First of all the epoch must not be able to count any more.
            self._release()
            self._live.abandon(
                ExecutionError(
                    f"the epoch that was running has not ended within {timeout:g} s and was given up",
                    hint="a function or an input may hang; nothing of the epoch counts",
                )
            )
            self._runner.cancel()
        self._deliveries.stop(None if until is None else max(0.0, until - time.monotonic()))

    def dead_letters(self) -> pa.Table:
        """The rows that no query could use, those of a refused epoch included."""
        refused = self.run.kept.refused
        results = [*self.run.results, *([refused] if refused is not None else [])]
        return dead_letters(self.store, results, self._name_of)

    def newest_letters(self, wanted: int) -> pa.Table:
        """About the newest of the rows that no query could use; see `newest_dead_letters`."""
        return newest_dead_letters(self.store, self.run.results, self._name_of, wanted)

    def letters_after(self, epoch: int) -> pa.Table:
        """The rows that no query could use in the epochs after one, in the form of `dead_letters`."""
        return dead_letters(self.store, self._after(epoch), self._name_of)

    def has_letters_after(self, epoch: int) -> bool:
        """Whether there are such rows; reads no file."""
        return any(part.dead_letters for part in self._after(epoch))

    def _after(self, epoch: int) -> Sequence[EpochResults]:
        results = self.run.results
        return results[bisect_right(results, epoch, key=lambda part: part.epoch) :]

    @property
    def ended_by(self) -> BaseException | None:
        """What has ended an endless run, or None."""
        return None if self._live is None else self._live.error

    def kept_letters(self, stream: str) -> pa.Table:
        """The dead letters of a stream that are kept with all their columns.

        Raises:
            UserError: none are.
        """
        known = self.run.streams.get(stream)
        if known is None:
            raise UserError(f"no query reads {stream}", hint="its rows are set apart while one does")
        clock = self._settings.run.clock.now()
        return kept_letters(stream, known, self.run.point(stream), self.store, clock)

    def rows(self, stream: str, newest: int | None = None) -> pa.Table:
        """The rows of a stream that are kept, or the newest of them, in the order in which they came.

        Raises:
            UserError: nothing says that they are to be kept.
        """
        known = self.run.streams.get(stream)
        if not isinstance(known, BoundedStream | LiveStream) or known.retain is None:
            raise not_kept(stream)
        while True:
            kept = self.run.point(stream).retained
            try:
                return all_retained(self.store, kept, all_columns(known), newest)
            except StoreError:
                # Meanwhile an epoch may have let go of a file, or put it together with others.
                if self.run.point(stream).retained == kept:
                    raise

    def _state(self) -> tuple[bool, BaseException | None]:
        """Whether an endless run is going on, and what has ended it."""
        return self.running, self._live.error if self._live is not None else None

    def _answer(
        self, defined: Definitions, epoch: int = 1, failed: Mapping[str, Reason] = MappingProxyType({})
    ) -> None:
        if self._settings.run.keep_results:
            self.answers.change(defined.all_queries, epoch, failed)

    def _described(self, defined: Definitions, buckets: int) -> Description:
        """What a durable store records of queries and streams."""
        return Description(
            queries={
                name: DescribedQuery(
                    identity_of(defined.plans[name], query.heartbeats),
                    query.domain,
                    form_of(query.plan),
                    query.choices,
                    earlier=earlier_identity_of(defined.plans[name]),
                )
                for name, query in defined.answered.items()
            },
            streams=defined.described_inputs(),
            buckets=buckets,
            stream_domains={name: stream.info.domain for name, stream in defined.inputs.items()},
            keeps_results=self._settings.run.keep_results,
            catalog=tuple(defined.records.known.values()),
            names=defined.names,
            made=defined.made,
        )

    @staticmethod
    def _names(defined: Definitions) -> str:
        """The queries that are answered, for messages."""
        return ", ".join(query.name for query in defined.answered.values())

    def _logged(self, summary: Summary) -> Summary:
        _LOG.info("stopped: %s", summary)
        return summary

    def _summary(self) -> Summary:
        domains = {name: stream.info.domain for name, stream in self._defined.inputs.items()}
        return summarise(self.run, domains)

    def _feed(self, name: str, defined: Definitions) -> Feed:
        assert self._live is not None
        system = system_stream(name)
        if system is not None:
            return system_feed(system, self._feed_folder, self._pace)
        rows, size = self._settings.run.epoch_rows or FIRST_ROWS, self._settings.run.epoch_bytes
        return defined.inputs[name].feed(self._feed_folder, rows, size, self._live.wake)

    def _forget_stream(self, name: str) -> None:
        """Remove what a stream's feed has left, such as Spark's log; another one of the name begins anew."""
        shutil.rmtree(stream_folder(self._feed_folder, name), ignore_errors=True)

    def _sweep_streams(self) -> None:
        """Do so for streams that were dropped just before the run was killed."""
        folder = inside(self._feed_folder, "streams")
        if self.run.totals.epochs and folder.is_dir():
            known = {file_name(name) for name in self.run.known_streams}
            for path in folder.iterdir():
                if path.name not in known and path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)

    def _look_at_all(self) -> dict[str, Any]:
        """The status for JSON, with what is wrong."""
        # A run to the end, too, is one for who looks at it from outside.
        running = self.running or self._live is None
        return {**self.status.to_dict(), "running": running, "problems": dict(self.problems)}

    def _release(self) -> None:
        if self._watched is not None:
            self._watched.close()
        if self._journal is not None:
            self._journal.close()
        self._folders.close()


def _declared(stream: Incoming) -> tuple[Schema, Timing, int | None, Retain | None]:
    """What is declared of an input that may change while it is read."""
    if isinstance(stream, BoundedStream | LiveStream):
        return stream.schema, stream.timing, stream.letters_kept, stream.retain
    return stream.schema, stream.timing, None, None


def _past(defined: Definitions) -> dict[str, AnswerStart]:
    """The queries that answer from the past on where others go on already, and since when."""
    return {name: query.start for name, query in defined.answered.items() if query.start is not None}


def _filled(defined: Definitions, new: Collection[str]) -> dict[str, None]:
    """Those of some queries that begin with what is kept of the rows from before them."""
    known = ((name, defined.answered[name]) for name in new)
    return {
        name: None
        for name, query in known
        if query.start is None and not query.warm and keeps_rows(query.plan, defined.streams)
    }


def _resumed(defined: Definitions, run: Run) -> dict[str, AnswerStart]:
    """The queries that go on after a pause in which the rows of their streams were kept, and since when."""
    paused = run.reading.queries.paused
    return {
        name: AnswerStart(paused[name].heartbeat)
        for name in defined.answered
        if name in paused and paused[name].keeps
    }


def _going_on(defined: Definitions, run: Run) -> tuple[str, ...]:
    """The queries that go on after a pause in which nothing was kept for them."""
    paused = run.reading.queries.paused
    return tuple(name for name in defined.answered if name in paused and not paused[name].keeps)


def _holds(defined: Definitions) -> dict[str, Holds]:
    """Which operators of queries wait for others, of those that ask for it."""
    return {
        name: holds_in(query.choices) or NO_HOLDS
        for name, query in defined.answered.items()
        if query.heartbeats is not Heartbeats.OPERATOR
    }
