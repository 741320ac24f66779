"""The newest changes of queries, shared by all who wait for them.

One thread follows each query that somebody waits for, and makes the events of an epoch once. A client is only
a place: it takes what is newer from the shared events, or, when it has fallen behind them, from the store, at
its own pace. So neither an epoch nor the memory depends on how many clients there are, or how slow.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import anyio
import anyio.to_thread

from headrace.engine import Database, Query
from headrace.engine.served import KeptAnswer
from headrace.engine.views.subscription import Subscription
from headrace.errors import UserError
from headrace.runtime.results.changes import Change
from headrace.server.errors import RequestError
from headrace.server.events import ClientPlace, EventPart, event, greeting, parts_of
from headrace.server.limits import RequestLimits

_SHARED_BYTES: Final = 4 * 2**20
"""So many bytes of the newest events of a query are shared; who lacks older ones reads the store."""
_CHUNK_BYTES: Final = 16 * 2**10
"""About so many bytes a client gets at once: what one holds that does not take them."""
_READERS: Final = 8
"""So many clients that have fallen behind read the store at once; other requests do not wait for them."""

_AT_ONCE: Final = 50
"""So many clients are woken before others have their turn."""
_REST: Final = 2
"""So many times as long as that took, nobody is woken: all clients together take a third of the time."""

_LOG: Final = logging.getLogger("headrace.server")
_Found = tuple[bytes, ClientPlace]
"""Events, and the place of a client that has them."""


class Tail:
    """The newest changes of one query.

    Args:
        query: it.
        kept: what of it can be read now.
        limits: how large events are, and when those who wait get a comment.

    Attributes:
        start: the first epoch of the query.
        ended: whether no change follows: the query was dropped, or the run has ended.
        closed: whether it is followed no longer, whatever follows.
        clients: how many wait for its changes.
        beats: how often it was time for a comment.
    """

    def __init__(self, query: Query, kept: KeptAnswer, limits: RequestLimits) -> None:
        self.query = query
        self.start = kept.start
        self.ended = self.closed = False
        self.clients = self.beats = 0
        self._limits = limits
        self._base = kept.last
        self._newest = kept.last
        self._size = 0
        self._parts: deque[EventPart] = deque()
        self._read: tuple[ClientPlace, _Found] | None = None
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._news = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._woken: deque[asyncio.Future[None]] = deque()
        self._waking = False
        self._changes: Subscription[Change] = query.subscribe(kept.last + 1)
        self._loop.call_later(limits.heartbeat, self._announce_beat)
        self._thread = threading.Thread(target=self._follow, name="headrace events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow the query no longer; clients that still wait are let go, and continue elsewhere."""
        self.closed = True
        self._changes.close()

    def _follow(self) -> None:
        try:
            # What ends a run is said by its status, and to whoever asks for the answer.
            with suppress(UserError):
                for change in self._changes:
                    parts = parts_of(change, self.start, self.query.domain, self._limits.part_rows)
                    self._share(change.epoch, list(parts))
            self.ended = True
        except Exception:
            # The clients are let go, and come back to a new thread.
            _LOG.exception("a fault")
            self.closed = True
        self._wake()

    def _share(self, epoch: int, parts: Sequence[EventPart]) -> None:
        with self._lock:
            self._parts.extend(parts)
            self._newest, self._size = epoch, self._size + sum(len(part.data) for part in parts)
            self._read = None
            while self._size > _SHARED_BYTES:
                oldest = self._parts.popleft()
                self._base, self._size = oldest.after.epoch, self._size - len(oldest.data)
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._announce)

    def _announce(self) -> None:
        """Wake the clients that wait: some at once, and the others while what else there is goes on."""
        self._news += 1
        self._woken.extend(self._waiting)
        self._waiting.clear()
        if not self._waking:
            self._wake_some()

    def _wake_some(self) -> None:
        self._waking = bool(self._woken)
        if self._waking:
            begin = self._loop.time()
            for _ in range(min(_AT_ONCE, len(self._woken))):
                one = self._woken.popleft()
                if not one.done():
                    one.set_result(None)
            # Called after all of them have sent what there is.
            self._loop.call_soon(self._rest, begin)

    def _rest(self, begin: float) -> None:
        self._loop.call_later(_REST * (self._loop.time() - begin), self._wake_some)

    def _announce_beat(self) -> None:
        """Let all clients send a comment: one timer for them, however many they are."""
        if not (self.ended or self.closed):
            self.beats += 1
            self._announce()
            self._loop.call_later(self._limits.heartbeat, self._announce_beat)

    @property
    def news(self) -> int:
        """How often there was another epoch, the end, or a comment due; asked before one reads."""
        return self._news

    async def wait(self, news: int) -> None:
        """Wait until there is more news than that."""
        if news == self._news:
            woken = self._loop.create_future()
            self._waiting.append(woken)
            await woken

    def read_shared(self, place: ClientPlace) -> _Found | None:
        """Some events after a place, and the place after them; None where only the store has them.

        Clients that keep up are at one place, and what follows it is found and joined once for all of them.
        """
        with self._lock:
            if self._read is not None and self._read[0] == place:
                return self._read[1]
            found = self._after(place)
            if found is None:
                return None
            chunk = _first(found)
            made = b"".join(part.data for part in chunk), chunk[-1].after if chunk else place
            self._read = place, made
            return made

    def _after(self, place: ClientPlace) -> list[EventPart] | None:
        """The shared events that follow a place, if the next one is among them."""
        found = list[EventPart]()
        for part in reversed(self._parts):
            if not part.follows(place):
                break
            found.append(part)
        found.reverse()
        if place.whole:
            return None if place.epoch < self._base else found
        begins = found[0].after.epoch == place.epoch and found[0].begin == place.part if found else False
        return found if begins else None

    def read_stored(self, place: ClientPlace) -> _Found:
        """Some events after a place, from the store, and the place after them.

        Raises:
            UserError: what is due is no longer kept.
        """
        pieces, until = list[bytes](), self._newest
        with self.query.subscribe(place.due) as changes:
            while place.due <= until and sum(map(len, pieces)) < _CHUNK_BYTES:
                change = next(changes, None)
                if change is None:
                    break
                part = place.part if change.epoch == place.epoch and not place.whole else 0
                parts = parts_of(change, self.start, self.query.domain, self._limits.part_rows, part)
                for one in _first(parts):
                    pieces.append(one.data)
                    place = one.after
        return b"".join(pieces), place


def _first(parts: Iterable[EventPart]) -> list[EventPart]:
    """As many of the first events as a client gets at once: one at least, if there is one."""
    found, size = list[EventPart](), 0
    for part in parts:
        found.append(part)
        size += len(part.data)
        if size >= _CHUNK_BYTES:
            break
    return found


class Tails:
    """The queries that somebody follows.

    Args:
        db: the database.
        limits: how many clients may wait, and how large events may be.

    Attributes:
        clients: how many wait for changes now.
        closing: whether the server is stopping.
    """

    def __init__(self, db: Database, limits: RequestLimits) -> None:
        self._db = db
        self._limits = limits
        # By the query itself: its name may become that of another one.
        self._tails: dict[Query, Tail] = {}
        self._readers = anyio.CapacityLimiter(_READERS)
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

    def _of(self, query: Query, kept: KeptAnswer) -> Tail:
        """The newest changes of a query, followed from now on if nobody has done so yet."""
        known = self._tails.get(query)
        if known is None or known.ended or known.closed:
            known = self._tails[query] = Tail(query, kept, self._limits)
        return known

    async def events(self, query: Query, kept: KeptAnswer, place: ClientPlace) -> AsyncIterator[bytes]:
        """What a client gets from a place on, until the query ends or the server stops.

        Args:
            query: whose changes.
            kept: what of it can be read.
            place: of the client.
        """
        with self.client():
            yield greeting(place)
            try:
                # Looked for and counted at once: the last other client may have left in between.
                tail = self._of(query, kept)
            except UserError as error:
                yield _gone(error)
                return
            tail.clients += 1
            try:
                async for data in self._events(tail, place):
                    yield data
            finally:
                tail.clients -= 1
                if not tail.clients:
                    if self._tails.get(query) is tail:
                        del self._tails[query]
                    tail.close()

    async def _events(self, tail: Tail, place: ClientPlace) -> AsyncIterator[bytes]:
        beats = tail.beats
        while not (self.closing or tail.closed):
            # Asked first: what was shared before the end is still read.
            ended, news = tail.ended, tail.news
            try:
                shared = tail.read_shared(place)
                if shared is None:
                    shared = await anyio.to_thread.run_sync(tail.read_stored, place, limiter=self._readers)
            except UserError as error:
                yield _gone(error)
                return
            data, place = shared
            if data:
                yield data
            elif ended:
                if not (self.closing or tail.closed):
                    yield event("end", {"message": f"{tail.query.name} is no longer answered"})
                return
            elif beats != tail.beats:
                beats = tail.beats
                yield b": waiting\n\n"
            else:
                await tail.wait(news)


def _gone(error: UserError) -> bytes:
    return event("gone", {"message": error.message, "hint": error.hint})
