"""One execution of a database's queries: its store, its run, and the thread of an endless one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import domain_of
from headrace.elements import Batch
from headrace.engine.inputs import Input, TemporaryFolders
from headrace.engine.summary import Summary, summarise
from headrace.errors import StoreError, UserError
from headrace.operators.lowering import identity
from headrace.runtime.commits import EpochResults
from headrace.runtime.delivery.contract import STOP_TIMEOUT, Attachment
from headrace.runtime.delivery.deliveries import Deliveries
from headrace.runtime.description import Description
from headrace.runtime.epochs import Run
from headrace.runtime.feeds import Feed, PushFeed
from headrace.runtime.journal import Journal
from headrace.runtime.live import LiveRun
from headrace.runtime.progress import Progress
from headrace.runtime.retention import since_of, whole_from
from headrace.runtime.runner import Runner
from headrace.runtime.store import FolderStore
from headrace.runtime.views import Change, Release, ResultReader


@dataclass(frozen=True)
class Settings:
    """How a database runs its queries.

    Attributes:
        storage: the folder of a durable store, or None for a temporary one.
        epoch_rows: about how many rows an epoch takes.
        buckets: how many buckets state is spread over, or None for the runner's parallelism.
        keep_results: whether results are stored, or only counted.
        retain_epochs: of how many epochs results are kept; of all if None.
    """

    storage: Path | None
    epoch_rows: int
    buckets: int | None
    keep_results: bool
    retain_epochs: int | None


class Execution:
    """Queries at work, or that have been.

    Args:
        runner: where epochs run.
        settings: how.
        plans: optimized plans by query name.
        inputs: all streams by name.
        adapt: whether a durable store follows when queries are new or missing, or refuses.

    Raises:
        StoreError: the durable store cannot be used.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        plans: Mapping[str, Plan],
        inputs: Mapping[str, Input],
        *,
        adapt: bool,
    ) -> None:
        self._inputs = dict(inputs)
        self._settings = settings
        self._folders = TemporaryFolders()
        self._changed = threading.Condition()
        self._live: LiveRun | None = None
        self._feeds: dict[str, Feed] = {}
        self._journal: Journal | None = None
        buckets = settings.buckets or runner.parallelism
        if settings.storage is None:
            self.store = runner.new_store()
        else:
            self.store = FolderStore(str(settings.storage), durable=True)
            description = _described(plans, self._inputs, buckets)
            self._journal = Journal(self.store, description)
            buckets = self._journal.buckets
        streams = {name: stream.stream for name, stream in self._inputs.items()}
        self.run = Run(
            runner, self.store, streams, plans,
            settings.epoch_rows, buckets, settings.keep_results, settings.retain_epochs,
        )  # fmt: skip
        if self._journal is not None:
            try:
                self.run.resume(self._journal, description, adapt=adapt)
            except BaseException:
                self._journal.close()
                raise
        self._deliveries = Deliveries(self.store, lambda: self.run.results, self._changed)
        self.run.keep_for(self._deliveries.needed)

    @property
    def running(self) -> bool:
        """Whether an endless run is going on."""
        return self._live is not None and self._live.running

    @property
    def problems(self) -> Mapping[str, str]:
        """Streams that were given up, and sinks that fail, with the reason."""
        streams = self._live.problems if self._live is not None else {}
        return {**streams, **self._deliveries.problems}

    def attach(self, attachment: Attachment, plan: Plan) -> None:
        """Deliver the changes of a query, from now on or from when the run starts.

        Args:
            attachment: the query's name and the sink.
            plan: the query's plan.

        Raises:
            UserError: the sink cannot be used, or would miss epochs.
        """
        self._deliveries.add(attachment, plan)

    def complete(self, progress: Callable[[Progress], None] | None) -> Summary:
        """Read bounded streams to their end.

        Raises:
            UserError: a stream never ends, an input is damaged, or a sink does not take everything.
        """
        try:
            endless = [name for name in self.run.streams if self._inputs[name].is_live]
            if endless:
                raise UserError(f"the stream {endless[0]} never ends", hint="call start() instead of run()")
            self.run.run(progress)
            self._deliveries.finish()
        finally:
            self._release()
        return summarise(self.run)

    def start(self) -> None:
        """Run epochs in a thread, as input comes."""
        folder = self._settings.storage or self._folders.new()
        self._live = LiveRun(self.run, self._changed)
        for name in self.run.streams:
            stream = self._inputs[name]
            if stream.is_live:
                self._feeds[name] = stream.feed(folder, self._settings.epoch_rows, self._live.wake)
        self._live.start(self._feeds)
        self._deliveries.start()

    def push(self, name: str, rows: Any, producer: str | None, sequence: int | None) -> Future[bool]:
        """Add rows to a pushed stream; resolved when they are committed.

        Raises:
            UserError: there is no such stream among those that a query reads, or the rows do not fit.
        """
        feed = self._feeds.get(name)
        if not isinstance(feed, PushFeed):
            raise UserError(
                f"no query reads a stream {name} of pushed rows",
                hint="CREATE STREAM name (...) FROM push TIMESTAMP BY column, and a query over it",
            )
        return feed.put(rows, producer, sequence)

    def stop(self, timeout: float | None) -> Summary:
        """End between two epochs, when the sinks have taken what was committed.

        Args:
            timeout: seconds to wait for the sinks; None waits as long as it takes.

        Raises:
            BaseException: what ended the run before.
        """
        assert self._live is not None
        self._live.stop()
        self._deliveries.stop(timeout)
        self._release()
        if self._live.error is not None:
            raise self._live.error
        self._deliveries.check()
        return summarise(self.run)

    def follow(self, reader: ResultReader, from_epoch: int) -> Iterator[Change]:
        """The changes from an epoch on, as they are committed; ends when the run does.

        Raises:
            UserError: an epoch that is due is no longer kept; or what ended the run.
        """
        release, last, begin = Release(reader), 0, from_epoch
        while True:
            with self._changed:
                while self.running and not self._news(last):
                    self._changed.wait(timeout=1.0)
            # Asked first: a run that ends in between has committed all its news by then.
            running = self.running
            news = self._news(last)
            if not news and not running:
                if self._live is not None and self._live.error is not None:
                    raise self._live.error
                return
            if news and not last:
                begin, last = _beginning(reader.name, news, from_epoch)
            for part in news:
                if part.epoch <= last:
                    continue
                if part.epoch > last + 1:
                    raise _gone(reader.name, last + 1, whole_from(reader.name, news))
                last = part.epoch
                batch = self._released(reader.name, release, part)
                if last >= begin:
                    table = reader.change_table(last, batch)
                    yield Change(last, reader.heartbeat_of(part), batch, table)

    def reader(self, name: str, plan: Plan) -> ResultReader:
        """What has been committed for a query so far."""
        return ResultReader(name, plan, self.store, tuple(self.run.results))

    def close(self) -> None:
        """Stop what runs, and remove what is temporary."""
        if self._live is not None:
            self._live.stop()
        self._deliveries.stop(STOP_TIMEOUT)
        self._release()
        self.store.close()

    def _released(self, name: str, release: Release, part: EpochResults) -> Batch:
        try:
            return release.next(part)
        except StoreError:
            oldest = self.run.results[0].epoch
            if part.epoch < oldest:
                raise _gone(name, part.epoch, oldest) from None
            raise

    def _news(self, last: int) -> list[EpochResults]:
        return [part for part in self.run.results if part.epoch > last]

    def _release(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._folders.close()


def _beginning(query: str, results: Sequence[EpochResults], from_epoch: int) -> tuple[int, int]:
    """The first epoch to tell, and the one after which reading begins.

    Raises:
        UserError: the epoch that is wanted is no longer kept.
    """
    whole = whole_from(query, results)
    if whole > from_epoch > 1:
        raise _gone(query, from_epoch, whole)
    begin = max(from_epoch, whole)
    return begin, since_of(query, results, begin) - 1


def _described(plans: Mapping[str, Plan], inputs: Mapping[str, Input], buckets: int) -> Description:
    """What a durable store is told of queries and streams."""
    return Description(
        queries={name: identity(plan) for name, plan in plans.items()},
        streams={name: stream.describe() for name, stream in inputs.items()},
        buckets=buckets,
        query_domains={name: domain_of(plan) for name, plan in plans.items()},
        stream_domains={name: stream.info.domain for name, stream in inputs.items()},
    )


def _gone(query: str, due: int, oldest: int) -> UserError:
    return UserError(
        f"the results of {query} in epoch {due} are no longer kept; the oldest are those of epoch {oldest}",
        hint="read faster, or keep more with retain_epochs",
    )
