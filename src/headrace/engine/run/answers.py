"""The answers of a run's queries, as far as they are committed."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.properties import sources_of
from headrace.elements import Batch
from headrace.engine.query.query import Query
from headrace.engine.views.subscription import Subscription
from headrace.errors import ReplacedError, StoreError, UserError
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.journal.retention import since_of, whole_from
from headrace.runtime.results.changes import Change, watermark_after
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.release import Release
from headrace.runtime.store.segments import Store
from headrace.time import BEGINNING, INFINITY


@dataclass(eq=False)
class _Span:
    """The epochs of a run in which a query is answered; it ends when the query is dropped.

    Attributes:
        query: its identity.
        start: the first of them.
        end: the first one after them; INFINITY while the query is answered.
        failed: why the query had failed when it was dropped, or None.
        replaced: with what a query has taken its place in which its answer could not go on, or None.
    """

    query: str
    start: int
    end: int = INFINITY
    failed: Reason | None = None
    replaced: str | None = None

    @property
    def is_over(self) -> bool:
        return self.end != INFINITY


class Answers:
    """What has been committed for the queries of a run; those that were dropped meanwhile stay readable.

    Args:
        run: commits the epochs.
        store: where results are.
        changed: notified after every commit.
        state: whether an endless run is going on, and what has ended it.
    """

    def __init__(
        self,
        run: Run,
        store: Store,
        changed: threading.Condition,
        state: Callable[[], tuple[bool, BaseException | None]],
    ) -> None:
        self._run = run
        self._store = store
        self._changed = changed
        self._state = state
        self._spans: dict[Query, _Span] = {}

    def change(self, queries: Collection[Query], epoch: int, failed: Mapping[str, Reason]) -> None:
        """Let the answers of new queries be read, and those of queries that are gone end.

        Args:
            queries: all that are answered now.
            epoch: that of the change.
            failed: the queries that had failed before it.
        """
        # Of thousands of queries few begin or end: sets find those before anything is asked of each.
        answered = set(queries)
        begun = answered.difference(self._spans)
        new = {query.id: query for query in queries if query in begun} if begun else {}
        left = [query for query in self._spans if query not in answered]
        # A query that was replaced may share the span of the one in its place.
        going_on = {id(self._spans[query]) for query in answered.intersection(self._spans)} if left else ()
        for query, span in [(query, self._spans[query]) for query in left]:
            other = new.get(query.id)
            if id(span) in going_on or span.is_over:
                continue
            if other is not None and self._run.reading.queries.start_of(query.id) == span.start:
                # Its answer goes on; whoever has the query that was replaced reads it as well.
                self._spans[other] = span
            else:
                span.failed = failed.get(query.id)
                span.replaced = None if other is None else _new_in(other, query)
                span.end = epoch
        for query in new.values():
            if query not in self._spans:
                self._spans[query] = _Span(query.id, self._run.reading.queries.start_of(query.id))
        with self._changed:
            self._changed.notify_all()

    def reader(self, query: Query) -> ResultReader:
        """What has been committed for a query so far.

        Raises:
            UserError: the query has no answer: it is not part of the run, or it failed.
        """
        span = self._spans.get(query)
        if span is None:
            raise UserError(f"{query.name} has no answer yet", hint="call run() first")
        self._refuse_failed(span, query.name)
        epochs = tuple(self._news(span))
        # Of a query that was dropped nothing is carried on.
        carried = epochs[-1].carried.get(span.query) if epochs and not span.is_over else None
        form = form_of(query.plan)
        return ResultReader(span.query, form, self._store, epochs, carried, span.start, query.name)

    def newest(self, query: Query) -> int:
        """The newest timestamp that was read of the query's streams (instant), BEGINNING if none was."""
        seen = self._run.totals.arrivals
        streams = {source.name for source in sources_of(query.plan)}
        return max((seen[name].newest for name in streams if name in seen), default=BEGINNING)

    def follow(self, query: Query, from_epoch: int) -> Subscription[Change]:
        """The changes from an epoch on, as they are committed; ends when the run does, or the query.

        Raises:
            UserError: the query has no answer, or it fails; an epoch that is due is no longer kept; or what
                ended the run.
        """
        closed = threading.Event()

        def stop() -> None:
            closed.set()
            with self._changed:
                self._changed.notify_all()

        return Subscription(self._follow(self.reader(query), self._spans[query], from_epoch, closed), stop)

    def _follow(
        self, reader: ResultReader, span: _Span, from_epoch: int, closed: threading.Event
    ) -> Iterator[Change]:
        release, last, begin = Release(reader.form.schema), 0, from_epoch
        watermark = BEGINNING
        while True:
            # Asked first: what ends in between has committed all its news by then.
            going_on, error = self._wait(span, last, closed)
            if closed.is_set():
                return
            news = self._news(span, last)
            if not news and not going_on:
                self._refuse_failed(span, reader.name)
                if error is not None:
                    raise error
                if span.replaced is not None:
                    raise _replaced(reader.name, span.replaced)
                return
            if news and not last:
                begin, last = _beginning(reader, news, from_epoch, span.start)
            for part in news:
                if part.epoch <= last:
                    continue
                if part.epoch > last + 1:
                    raise _gone(reader.name, last + 1, whole_from(reader.query, news))
                last = part.epoch
                batch = self._released(reader, release, part)
                if last >= begin:
                    table = reader.change_table(last, batch)
                    reach, left = part.reach(reader.query), part.departures.get(reader.query, 0)
                    watermark = watermark_after(watermark, batch)
                    yield Change(last, reader.heartbeat_of(part), reach, batch, table, left, watermark)

    def _wait(self, span: _Span, last: int, closed: threading.Event) -> tuple[bool, BaseException | None]:
        """Wait for epochs after the last one, or for the end; whether it goes on, and what ended the run."""
        with self._changed:
            while not closed.is_set() and self._goes_on(span) and not self._news(span, last):
                self._changed.wait(timeout=1.0)
        going_on = self._goes_on(span)
        return going_on, None if span.is_over else self._state()[1]

    def _goes_on(self, span: _Span) -> bool:
        failed = span.query in self._run.reading.queries.failed
        return self._state()[0] and not span.is_over and not failed

    def _refuse_failed(self, span: _Span, name: str) -> None:
        failed = span.failed if span.is_over else self._run.reading.queries.failed.get(span.query)
        if failed is not None:
            message, hint = failed
            raise UserError(f"{name} failed: {message}", hint=hint)

    def _news(self, span: _Span, last: int = 0) -> list[EpochResults]:
        """The query's epochs after one; it has no heartbeat once it has failed, or is just being dropped."""
        results = self._run.results
        # All epochs of a long run are kept, and this is asked several times in each.
        begin = bisect_left(results, max(span.start, last + 1), key=lambda part: part.epoch)
        end = bisect_left(results, span.end, begin, key=lambda part: part.epoch)
        return [part for part in results[begin:end] if span.query in part.heartbeats]

    def _released(self, reader: ResultReader, release: Release, part: EpochResults) -> Batch:
        try:
            return reader.release(release, part)
        except StoreError:
            oldest = self._run.results[0].epoch
            if part.epoch < oldest:
                raise _gone(reader.name, part.epoch, oldest) from None
            raise


def _beginning(
    reader: ResultReader, results: Sequence[EpochResults], from_epoch: int, start: int
) -> tuple[int, int]:
    """The first epoch to yield, and the one after which reading begins.

    Args:
        reader: reads the query.
        results: those of its epochs that are kept.
        from_epoch: the first epoch that is wanted.
        start: the query's first epoch.

    Raises:
        UserError: the epoch that is wanted is no longer kept.
    """
    whole = whole_from(reader.query, results)
    if whole > from_epoch > start:
        raise _gone(reader.name, from_epoch, whole)
    begin = max(from_epoch, whole)
    return begin, since_of(reader.query, results, begin) - 1


def _new_in(query: Query, known: Query) -> str:
    """The part of a query in which the answer of the one before it does not go on."""
    return form_of(known.plan).unlike(form_of(query.plan)) or "an answer that begins anew"


def _replaced(query: str, new: str) -> ReplacedError:
    return ReplacedError(
        f"{query} was replaced by a query with {new}",
        hint=f"subscribe to the new one: db['{query}'].subscribe()",
    )


def _gone(query: str, due: int, oldest: int) -> UserError:
    return UserError(
        f"the results of {query} in epoch {due} are no longer kept; the oldest are those of epoch {oldest}",
        hint="read faster, or keep more with retain_epochs",
    )
