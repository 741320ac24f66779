"""The newest changes of queries, shared by all who wait for them.

One thread follows each query that somebody waits for, and makes the events of an epoch once. A client is only
a place: it takes what is newer from the shared events, or, when it has fallen behind them, from the store, at
its own pace. So neither an epoch nor the memory depends on how many clients there are, or how slow.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

import anyio.to_thread

from headrace.engine import Database, Query
from headrace.engine.served import Kept
from headrace.engine.subscription import Subscription
from headrace.errors import UserError
from headrace.runtime.results.changes import Change
from headrace.server.errors import RequestError
from headrace.server.events import Place, event, events_of
from headrace.server.limits import Limits

_SHARED_BYTES: Final = 4 * 2**20
"""So many bytes of the newest events of a query are shared; who lacks older ones reads the store."""
_CHUNK_BYTES: Final = 256 * 2**10
"""About so many bytes a client that reads the store gets at once."""

_PACE: Final = 1e-4
"""Seconds per client between two times at which they are woken; waking one takes less than half of it."""


@dataclass(frozen=True)
class _Shared:
    """The events of an epoch."""

    epoch: int
    data: bytes


class Tail:
    """The newest changes of one query.

    Args:
        query: it.
        kept: what of it can be read now.
        part_rows: how many rows an event has at most.

    Attributes:
        start: the first epoch of the query.
        ended: whether no change follows: the query was dropped, or the run has ended.
        clients: how many wait for its changes.
    """

    def __init__(self, query: Query, kept: Kept, part_rows: int) -> None:
        self.query = query
        self.start = kept.start
        self.ended = False
        self.clients = 0
        self._part_rows = part_rows
        self._base = kept.last
        self._newest = kept.last
        self._size = 0
        self._events: deque[_Shared] = deque()
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._due = False
        self._changes: Subscription[Change] = query.subscribe(kept.last + 1)
        self._thread = threading.Thread(target=self._follow, name="headrace events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow the query no longer."""
        self._changes.close()

    def _follow(self) -> None:
        # What ends a run is said by its status, and to whoever asks for the answer.
        with suppress(UserError):
            for change in self._changes:
                data = events_of(change, self.start, self.query.domain, self._part_rows)
                self._share(_Shared(change.epoch, data))
        self.ended = True
        self._wake()

    def _share(self, made: _Shared) -> None:
        with self._lock:
            self._events.append(made)
            self._newest, self._size = made.epoch, self._size + len(made.data)
            while self._size > _SHARED_BYTES:
                oldest = self._events.popleft()
                self._base, self._size = oldest.epoch, self._size - len(oldest.data)
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._announce_soon)

    def _announce_soon(self) -> None:
        """Wake the clients, if there are many after some more epochs, whose events then travel together."""
        if not self._due:
            self._due = True
            self._loop.call_later(self.clients * _PACE, self._announce)

    def _announce(self) -> None:
        self._due = False
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for another epoch, or for the end; whether one of them has come."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def read_shared(self, place: Place) -> tuple[bytes, Place] | None:
        """The events after a place, and the place after them; None where only the store has them."""
        with self._lock:
            if not place.whole or place.epoch < self._base:
                return None
            found = [part for part in self._events if part.epoch > place.epoch]
        last = found[-1].epoch if found else place.epoch
        return b"".join(part.data for part in found), replace(place, epoch=last)

    def read_stored(self, place: Place) -> tuple[bytes, Place]:
        """Some events after a place, from the store, and the place after them.

        Raises:
            UserError: what is due is no longer kept.
        """
        pieces, size, until = list[bytes](), 0, self._newest
        with self.query.subscribe(place.due) as changes:
            while place.due <= until and size < _CHUNK_BYTES:
                change = next(changes, None)
                if change is None:
                    break
                part = place.part if change.epoch == place.epoch and not place.whole else 0
                pieces.append(events_of(change, self.start, self.query.domain, self._part_rows, part))
                size += len(pieces[-1])
                place = Place(self.start, change.epoch, change.rows.num_rows, True)
        return b"".join(pieces), place


class Tails:
    """The queries that somebody follows.

    Args:
        db: the database.
        limits: how many clients may wait, and how large events may be.

    Attributes:
        clients: how many wait for changes now.
        closing: whether the server is stopping.
    """

    def __init__(self, db: Database, limits: Limits) -> None:
        self._db = db
        self._limits = limits
        self._tails: dict[str, Tail] = {}
        self.clients = 0
        self.closing = False

    def close(self) -> None:
        """Let all clients go, since the server stops; they continue elsewhere, or later."""
        self.closing = True
        for tail in list(self._tails.values()):
            tail.close()

    def check_room(self) -> None:
        """See that one more client may wait.

        Raises:
            RequestError: too many wait already.
        """
        if self.closing or self.clients >= self._limits.subscribers:
            raise RequestError(
                "busy", 429, "too many clients wait for changes", "try again later",
                headers={"Retry-After": "5"},
            )  # fmt: skip

    @contextmanager
    def client(self) -> Iterator[None]:
        """Count a client that waits, for as long as it does."""
        self.clients += 1
        try:
            yield
        finally:
            self.clients -= 1

    def of(self, query: Query, kept: Kept) -> Tail:
        """The newest changes of a query, followed from now on if nobody has done so yet."""
        known = self._tails.get(query.name)
        if known is None or known.ended or known.query is not query:
            if known is not None:
                known.close()
            known = self._tails[query.name] = Tail(query, kept, self._limits.part_rows)
        return known

    async def events(self, tail: Tail, place: Place) -> AsyncIterator[bytes]:
        """What a client gets from a place on, until the query ends or the server stops."""
        tail.clients += 1
        try:
            with self.client():
                async for data in self._events(tail, place):
                    yield data
        finally:
            tail.clients -= 1
            if not tail.clients and self._tails.get(tail.query.name) is tail:
                del self._tails[tail.query.name]
                tail.close()

    async def _events(self, tail: Tail, place: Place) -> AsyncIterator[bytes]:
        # Sent at once, so that the client knows that it is connected.
        yield b": connected\n\n"
        while not self.closing:
            # Asked first: what was shared before the end is still read.
            ended = tail.ended
            try:
                shared = tail.read_shared(place)
                if shared is None:
                    shared = await anyio.to_thread.run_sync(tail.read_stored, place)
            except UserError as error:
                yield event("gone", {"message": error.message, "hint": error.hint})
                return
            data, place = shared
            if data:
                yield data
            elif ended:
                if not self.closing:
                    yield event("end", {"message": f"{tail.query.name} is no longer answered"})
                return
            elif not await tail.wait(self._limits.heartbeat):
                yield b": waiting\n\n"
