"""Carrying one query's changes to one sink."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from headrace.errors import AwayError, DeliveryError, UserError, told
from headrace.runtime.delivery.contract import FINAL_ATTEMPTS, Attachment, Origin, Reached
from headrace.runtime.delivery.positions import Ledger, SinkPosition
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.journal.retention import since_of, whole_from
from headrace.runtime.outside.patience import SINCE, Away, patience
from headrace.runtime.outside.trouble import away, is_away
from headrace.runtime.results.changes import Change, watermark_after
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.release import Release
from headrace.runtime.store.crash_points import reach
from headrace.time import BEGINNING, INFINITY

_LOG: Final = logging.getLogger("headrace")

Results = Callable[[], Sequence[EpochResults]]
"""Says what is committed and retained, in order and without gaps."""


class Delivery:
    """Hands the epochs of a query to a sink, after their commits and in order.

    In an endless run it has a thread of its own, so that a slow sink delays nobody: committed results wait
    for it in the store.

    Args:
        attachment: the sink, and how it is attached.
        reader: reads the query's results.
        ledger: where its position is remembered.
        results: says what is committed.
        changed: notified after every commit.
        start: the epoch from which on the query answers.
        key: the columns that say which row it is, if the query says so.

    Attributes:
        problem: why the sink does not get on at the moment, or was given up; or None.
        error: what ended the delivery before its time, or None.

    Raises:
        DeliveryError: the sink would miss epochs, or has seen ones that this store does not have.
        StoreError: the remembered position is damaged.
    """

    def __init__(
        self,
        attachment: Attachment,
        reader: ResultReader,
        ledger: Ledger,
        results: Results,
        changed: threading.Condition,
        start: int = 1,
        key: tuple[str, ...] | None = None,
    ) -> None:
        self.attachment = attachment
        self._start = start
        self._key = key
        self._reader = reader
        self._ledger = ledger
        self._results = results
        self._changed = changed
        self._release = Release(reader.form.schema)
        self._watermark = BEGINNING
        position = ledger.load()
        if position is not None and not _is_ours(position, attachment, start):
            position = None
        self._position = _checked(attachment, position, results())
        self._read = self._position.since - 1
        self._stopping = threading.Event()
        self._is_final = False
        self._moving = threading.Lock()
        self._abandoned = False
        self._opened = threading.Event()
        self._opening: threading.Thread | None = None
        self._refusal: Exception | None = None
        self._away: Away | None = None
        self._thread = threading.Thread(
            target=self._loop, name=f"headrace {attachment.query} to {attachment.name}", daemon=True
        )
        self.problem: str | None = None
        self.error: BaseException | None = None

    @property
    def reached(self) -> Reached:
        """How far the sink is."""
        position, results, attachment = self._position, self._results(), self.attachment
        behind = max(0, results[-1].epoch - position.epoch) if results else 0
        return Reached(attachment.query, attachment.name, position.epoch, behind, self.problem)

    @property
    def needed(self) -> int:
        """The oldest epoch whose results must be kept for it; INFINITY when it was given up."""
        return self._position.since if self.error is None else INFINITY

    def begin(self) -> None:
        """Begin to get the sink ready, beside the run.

        Raises:
            DeliveryError: it is still busy.
        """
        if self.attachment.busy.locked():
            raise self._busy()
        self._begin_opening()

    def get_ready(self, until: float) -> None:
        """Wait until the sink is ready, for a while only.

        A sink whose target is away or silent gets ready when that answers; until then the problem is known.

        Args:
            until: for how long (`time.monotonic()`).

        Raises:
            UserError: the sink refuses.
        """
        assert self._opening is not None
        self._opening.join(max(0.0, until - time.monotonic()))
        if self._opening.is_alive():
            self.problem = f"{self.attachment.title} is not ready yet: its target has not answered so far"
        elif not self._opened.is_set():
            self._note_refusal()

    def open(self) -> None:
        """Get the sink ready.

        Raises:
            AwayError: what it delivers to cannot be reached for now.
            UserError: the sink refuses, or fails.
        """
        # Remembered first: the sink may keep the delivery's name from now on.
        self._ledger.record(self._position)
        position = self._position
        branch = position.branch or ("" if position.copied is None else secrets.token_hex(8))
        origin = Origin(
            *(self.attachment.query, self._reader.domain, position.delivery, position.first, position.epoch),
            *(self._start, self._reader.form.schema, self._key, self._reader.change_schema()),
            is_stream=self._reader.form.is_events,
            most=position.most,
            branch=branch,
        )
        if not self.attachment.busy.acquire(blocking=False):
            raise self._busy()
        try:
            self.attachment.sink.open(origin)
        except UserError:
            raise
        except Exception as error:
            if is_away(error):
                raise away(f"{self.attachment.title} cannot be used", error) from error
            raise DeliveryError(f"{self.attachment.title} cannot be used: {told(error)}") from error
        finally:
            self.attachment.busy.release()
        if branch != position.branch:
            # From now on the target may have what comes now.
            self._move(replace(position, branch=branch))
        self.problem, self._away = None, None
        self._opened.set()

    def _busy(self) -> DeliveryError:
        return DeliveryError(
            f"{self.attachment.title} is still busy with an epoch of the run before",
            hint="wait until it returns, or start again in a new process",
        )

    def _begin_opening(self) -> None:
        """Get the sink ready in a thread, which may take as long as its target is silent."""

        def work() -> None:
            try:
                self.open()
            except Exception as error:  # whatever it is, whoever waits has to hear of it
                self._refusal = error

        self._refusal = None
        self._opening = threading.Thread(target=work, name=f"{self._thread.name}, opening", daemon=True)
        self._opening.start()

    def _note_refusal(self) -> None:
        """Remember why the sink is not ready, and when it is tried again.

        Raises:
            Exception: what it has refused, unless it may be otherwise later: something is away, or it lacks
                what it has taken before, as a folder does that is not mounted.
        """
        error = self._refusal
        assert error is not None
        has_begun = self._position.epoch >= self._position.first
        if not isinstance(error, AwayError) and not (has_begun and isinstance(error, DeliveryError)):
            raise error
        if self._away is None:
            _LOG.warning("%s is not ready: %s", self.attachment.title, told(error))
        self._away = Away.after(self._away, error)
        self.problem = f"{self.attachment.title} is not ready: {self._away}"

    def _await_ready(self) -> None:
        """Try to get the sink ready again and again, until it is.

        Raises:
            Exception: the sink refuses, or is not ready when the run is over.
        """
        while not self._opened.is_set() and not self._abandoned:
            if self._opening is not None:
                self._opening.join()
                self._opening = None
                if not self._opened.is_set():
                    self._note_refusal()
                    self._end_unready()
            else:
                self._stopping.wait(0.0 if self._away is None else self._away.wait)
                self._begin_opening()

    def forget(self) -> None:
        """Remember no longer how far the sink is, once it has ended."""
        with self._moving:
            self._abandoned = True
            self._ledger.forget()

    def start(self) -> None:
        """Deliver in a thread, as epochs are committed."""
        self._thread.start()

    def stop(self) -> None:
        """Deliver what has been committed, then end; see `wait`."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self, until: float | None) -> None:
        """Wait for the end of a delivery that was stopped, and abandon it where that takes too long.

        An abandoned delivery moves its position no further, whatever its sink still does, so that another
        run may have the store.

        Args:
            until: the moment to stop waiting (`time.monotonic()`); None waits as long as it takes.
        """
        if self._thread.ident is None or self._abandoned:
            return
        self._thread.join(None if until is None else max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._abandon()

    def finish(self) -> None:
        """Deliver what a run has committed that is over."""
        self._is_final = True
        try:
            self._ready_at_last()
            self._catch_up()
        except Exception as error:  # whatever it is, the other sinks get theirs before it is reported
            self._give_up(error)

    def _end_unready(self) -> None:
        """Give the sink up where the run is over and it lacks what has been committed.

        Raises:
            DeliveryError: it does.
        """
        if self._stopping.is_set():
            if self.reached.behind:
                raise DeliveryError(
                    f"{self.attachment.title} has not become ready: {told(self._refusal or TimeoutError())}",
                    hint="with a durable store it gets everything when the run is started again",
                )
            self._abandoned = True

    def _ready_at_last(self) -> None:
        """Get the sink ready, now that nothing but this is left to do."""
        if self._opening is not None:
            self._opening.join()
        for failures in range(1, FINAL_ATTEMPTS):
            if self._opened.is_set():
                return
            try:
                self.open()
            except UserError:
                time.sleep(patience().after(failures))
        if not self._opened.is_set():
            self.open()

    def _loop(self) -> None:
        try:
            self._follow()
        except BaseException as error:  # whatever it is, whoever asks has to hear of it
            if not self._abandoned:
                self._give_up(error)

    def _abandon(self) -> None:
        with self._moving:
            due, results = self._position.epoch + 1, self._results()
            if not results or due > results[-1].epoch:
                return
            self._abandoned = True
        last = results[-1].epoch
        what = f"epoch {last}" if last == due else f"the epochs {due} to {last}"
        self._give_up(
            DeliveryError(
                f"{self.attachment.title} has not taken {what} in time: the run has ended without it",
                hint="with a durable store it gets them when the run is started again; stop(timeout=None) "
                "waits for as long as it takes",
            )
        )

    def _give_up(self, error: BaseException) -> None:
        self.error = error
        self.problem = told(error)

    def _follow(self) -> None:
        self._await_ready()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping.is_set() or bool(self._news()))
            is_last = self._stopping.is_set()
            self._catch_up()
            if is_last:
                return

    def _news(self) -> Sequence[EpochResults]:
        """The committed epochs that have not been read."""
        results = self._results()
        return results[max(0, self._read + 1 - results[0].epoch) :] if results else ()

    def _catch_up(self) -> None:
        for part in self._news():
            if self._abandoned:
                return
            self._expect(part)
            # A query that has failed has no heartbeat: its answer ends before that epoch.
            if self._reader.query in part.heartbeats:
                change = self._next(part)
                if part.epoch > self._position.epoch:
                    self._hand_over(change)
            self._read = part.epoch
            if part.epoch > self._position.epoch:
                since = self._release.oldest or part.epoch + 1
                self._move(replace(self._position, epoch=part.epoch, since=since))

    def _move(self, position: SinkPosition) -> None:
        """Remember that the sink has taken an epoch, unless another run may have the store by now."""
        with self._moving:
            if not self._abandoned:
                self._ledger.record(position)
                self._position = position
                reach("sink.recorded")

    def _expect(self, part: EpochResults) -> None:
        if part.epoch != self._read + 1:
            raise DeliveryError(
                f"{self.attachment.title} has missed the epochs {self._read + 1} to {part.epoch - 1}, whose "
                "results are no longer kept"
            )

    def _next(self, part: EpochResults) -> Change:
        reader, query = self._reader, self._reader.query
        elements = reader.release(self._release, part)
        rows = reader.change_table(part.epoch, elements)
        heartbeat, left = reader.heartbeat_of(part), part.departures.get(query, 0)
        self._watermark = watermark_after(self._watermark, elements)
        return Change(part.epoch, heartbeat, part.reach(query), elements, rows, left, self._watermark)

    def _hand_over(self, change: Change) -> None:
        """Let the sink take an epoch, again and again where it fails."""
        failures, since = 0, datetime.now().strftime(SINCE)
        retry = self.attachment.retry
        while True:
            try:
                with self.attachment.busy:
                    reach("sink.begun")
                    self.attachment.sink.write(change)
                reach("sink.taken")
                if not self._abandoned:
                    self.problem = None
                return
            except Exception as error:
                if self._abandoned:
                    raise
                failures += 1
                reason = f"{self.attachment.title} fails at epoch {change.epoch}: {told(error)}"
                if retry.is_over(failures, final=self._is_final or self._stopping.is_set()):
                    raise DeliveryError(
                        f"{reason}; it was given up after {failures} attempts",
                        hint="fix it and start again: with a durable store it goes on at that epoch",
                    ) from error
                self.problem = f"{reason}; since {since}, {failures} attempts so far, it is tried again"
                _LOG.warning("%s", self.problem)
            self._stopping.wait(retry.pause_after(failures))


def _is_ours(position: SinkPosition, attachment: Attachment, start: int) -> bool:
    """Whether a position is not that of an earlier query, or of an earlier sink, of the same name."""
    return position.first >= start and attachment.delivery in (None, position.delivery)


def _checked(
    attachment: Attachment, position: SinkPosition | None, results: Sequence[EpochResults]
) -> SinkPosition:
    """Where to begin, if nothing is missing between the sink and the store."""
    oldest = results[0].epoch if results else 1
    whole = whole_from(attachment.identity, results)
    last = results[-1].epoch if results else 0
    if position is None:
        if attachment.from_epoch < whole:
            # Of a sink of SQL the definition is an epoch itself, after which less may be kept.
            given = f"from_epoch={whole}" if attachment.delivery is None else "the option from_epoch now"
            raise DeliveryError(
                f"{attachment.title} starts with epoch {attachment.from_epoch}, and results are kept "
                f"from epoch {whole} on",
                hint=f"give {given}; rows that were written before it are not delivered then",
            )
        first = attachment.from_epoch
        since = since_of(attachment.identity, results, first)
        return SinkPosition(attachment.delivery or secrets.token_hex(8), first, first - 1, min(since, first))
    if position.epoch > last and position.epoch >= position.first:
        raise DeliveryError(
            f"{attachment.title} has taken epoch {position.epoch}, and the store ends with epoch {last}",
            hint="the store is older than the sink: use the newest copy, or give the sink another name",
        )
    if position.since < oldest:
        raise DeliveryError(
            f"{attachment.title} has missed the epochs {position.since} to {oldest - 1}, whose results are "
            "no longer kept",
            hint=f"give the sink another name, and from_epoch={whole} or later",
        )
    return position
