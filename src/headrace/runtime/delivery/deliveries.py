"""All deliveries of one run."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import key_of
from headrace.errors import UserError, told
from headrace.runtime.delivery.contract import Attachment, Reached, Retry, SinkLike
from headrace.runtime.delivery.delivery import Delivery, Results
from headrace.runtime.delivery.function import FunctionSink
from headrace.runtime.delivery.positions import Ledger
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.outside.patience import patience
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import Store
from headrace.time import INFINITY

_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
"""A sink's name is part of a file's."""


def attachment_of(
    query: str,
    to: SinkLike,
    name: str | None,
    from_epoch: int,
    retry: Retry | None,
    others: Iterable[Attachment],
    *,
    of: str = "",
) -> Attachment:
    """A sink, or a function, attached to a query.

    Args:
        query: what the query is called.
        to: the sink or the function.
        name: the sink's name; its own if None.
        from_epoch: the first epoch it gets.
        retry: what happens when it fails; tried again until the run is over if None.
        others: what is attached already.
        of: the query's identity; its name where that is empty.

    Raises:
        UserError: the name is taken or not valid, or there is no such epoch.
    """
    sink = FunctionSink(to) if callable(to) else to
    name = sink.name if name is None else name
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is not a valid sink name", hint="use letters, digits and underscores")
    if any(other.identity == (of or query) and other.name.lower() == name.lower() for other in others):
        raise UserError(f"{query} has a sink {name} already", hint="give this one another name")
    if from_epoch < 1:
        raise UserError(f"there is no epoch {from_epoch}", hint="the first one is 1")
    return Attachment(query, name, sink, from_epoch, retry or Retry(), of=of)


class Deliveries:
    """The sinks of a run.

    Args:
        store: where results are.
        results: says what is committed.
        changed: notified after every commit.
    """

    def __init__(self, store: Store, results: Results, changed: threading.Condition) -> None:
        self._store = store
        self._results = results
        self._changed = changed
        self._all: list[Delivery] = []
        self._started = False

    def add(self, *attached: tuple[Attachment, Plan, int]) -> None:
        """Attach sinks to queries; in a run that goes on, deliver from now on.

        They get ready together: silent targets hold up a start once, however many they are.

        Args:
            attached: the sink of a query, the query's plan, and the epoch from which on it answers.

        Raises:
            UserError: a sink cannot be used, or would miss epochs; none is attached then.
        """
        added: list[Delivery] = []
        until = time.monotonic() + patience().opening
        try:
            for one in attached:
                added.append(self._begun(*one))
            for delivery in added:
                delivery.get_ready(until)
        except BaseException:
            self._all = [delivery for delivery in self._all if delivery not in added]
            raise
        if self._started:
            for delivery in added:
                delivery.start()

    def _begun(self, attachment: Attachment, plan: Plan, start: int) -> Delivery:
        """A delivery whose sink is getting ready."""
        committed = self._results()
        first = attachment.from_epoch
        if attachment.from_now and committed:
            first = committed[-1].epoch + 1
        attachment = replace(attachment, from_epoch=max(first, start))
        reader = ResultReader(attachment.identity, form_of(plan), self._store, ())
        ledger = Ledger(self._store, attachment.identity, attachment.name)
        places, names = key_of(plan), plan.schema.names
        key = None if places is None else tuple(names[place] for place in places)
        delivery = Delivery(attachment, reader, ledger, lambda: self._since(start), self._changed, start, key)
        delivery.begin()
        # From here on results are kept for it, also while the sink gets ready.
        self._all.append(delivery)
        return delivery

    def drop(self, query: str, timeout: float | None) -> None:
        """End the deliveries of a query when they have delivered what has been committed.

        Args:
            query: the query's identity.
            timeout: seconds to wait for its sinks together; None waits as long as it takes.

        Raises:
            DeliveryError: a sink has not taken everything.
        """
        dropped = [delivery for delivery in self._all if delivery.attachment.identity == query]
        _end(dropped, timeout)
        self._all = [delivery for delivery in self._all if delivery not in dropped]
        self._forget(part for part in dropped if part.attachment.delivery is not None)
        _check(dropped)

    def drop_sink(self, query: str, name: str, timeout: float | None) -> str | None:
        """End a delivery when it has delivered what has been committed; in a run, forget how far it is.

        Args:
            query: the query's identity.
            name: the sink's.
            timeout: seconds to wait for it; None waits as long as it takes.

        Returns:
            Why it has not taken everything, or None if it has.
        """
        dropped = [
            one for one in self._all if (one.attachment.identity, one.attachment.name) == (query, name)
        ]
        _end(dropped, timeout)
        self._all = [delivery for delivery in self._all if delivery not in dropped]
        self._forget(dropped)
        return next((told(one.error) for one in dropped if one.error is not None), None)

    def rename(self, query: str, name: str) -> None:
        """Let messages call a query by another name.

        Args:
            query: its identity.
            name: its name from now on.
        """
        for delivery in self._all:
            if delivery.attachment.identity == query:
                delivery.attachment = replace(delivery.attachment, query=name)

    def start(self) -> None:
        """Deliver in the background, as epochs are committed."""
        self._started = True
        for delivery in self._all:
            delivery.start()

    def stop(self, timeout: float | None) -> None:
        """Deliver what has been committed, then end; a sink that takes too long is abandoned.

        Args:
            timeout: seconds to wait for all sinks together; None waits as long as it takes.
        """
        _end(self._all, timeout)
        self._started = False

    def finish(self) -> None:
        """Deliver what a run has committed that is over.

        Raises:
            DeliveryError: a sink has not taken everything.
        """
        for delivery in self._all:
            delivery.finish()
        self.check()

    def check(self) -> None:
        """Raise what ended a delivery before its time."""
        _check(self._all)

    def needed(self) -> int:
        """The oldest epoch whose results a sink still needs; INFINITY if there is none."""
        return min((delivery.needed for delivery in self._all), default=INFINITY)

    @property
    def reached(self) -> tuple[Reached, ...]:
        """How far each sink is, in the order in which they were attached."""
        return tuple(delivery.reached for delivery in self._all)

    @property
    def problems(self) -> dict[str, str]:
        """The sinks that fail, as `query to sink`, with the reason."""
        return {
            f"{delivery.attachment.query} to {delivery.attachment.name}": delivery.problem
            for delivery in self._all
            if delivery.problem is not None
        }

    def _forget(self, dropped: Iterable[Delivery]) -> None:
        """Forget how far sinks are, unless another run may have the store by now."""
        for delivery in dropped if self._started else ():
            delivery.forget()

    def _since(self, start: int) -> Sequence[EpochResults]:
        """What is committed and retained from an epoch on."""
        results = self._results()
        return results[max(0, start - results[0].epoch) :] if start > 1 and results else results


def _end(deliveries: Sequence[Delivery], timeout: float | None) -> None:
    for delivery in deliveries:
        delivery.stop()
    until = None if timeout is None else time.monotonic() + timeout
    for delivery in deliveries:
        delivery.wait(until)


def _check(deliveries: Sequence[Delivery]) -> None:
    for delivery in deliveries:
        if delivery.error is not None:
            raise delivery.error
