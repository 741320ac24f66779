"""Connections: how many a server takes, and for how long one may take to ask.

The run needs descriptors for its store and sinks. So connections get those below a bound alone, and one that
has not asked for anything goes first when there are too many: nobody without a key costs more than a closed
connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LOG: Final = logging.getLogger("headrace")

_UNSENT: Final = 8 * 2**10
"""With so many bytes of a connection that even the kernel does not take, nothing more is made for it."""
_WISHED: Final = 65_536
"""So many descriptors the process asks for, where it may have them."""
_LEAST_RESERVE: Final = 64
_MOST_RESERVE: Final = 1_024
_SUBSCRIBERS: Final = 0.75
"""The part of the connections that may wait for changes; the others push rows and ask."""
_LOOK: Final = 0.5
"""Seconds between two looks at whoever takes too long."""
_TRIES: Final = 20
_BETWEEN: Final = 0.001
"""Seconds between two tries to make room for a connection, after which it is closed."""
_GONE: Final = (errno.ECONNABORTED, errno.EINTR)


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take.

    Attributes:
        descriptors: a connection whose descriptor is this or more is one too many.
        head: seconds in which the head of a request is sent.
        silent: seconds that the body of a request may take beyond what its bytes are worth.
        slowest: bytes of a body that are worth a second.
    """

    descriptors: int
    head: float = 15.0
    silent: float = 30.0
    slowest: int = 1_000

    @property
    def subscribers(self) -> int:
        """How many clients may wait for changes, so that others can still ask."""
        return max(1, int(self.descriptors * _SUBSCRIBERS))


def connection_limits() -> ConnectionLimits:
    """The limits that the process's number of descriptors allows, which is raised as far as it may be."""
    allowed = _raised()
    return ConnectionLimits(allowed - min(_MOST_RESERVE, max(_LEAST_RESERVE, allowed // 4)))


def _raised() -> int:
    """How many descriptors the process may have."""
    try:
        import resource
    except ImportError:
        return _WISHED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WISHED if hard == resource.RLIM_INFINITY else min(hard, _WISHED)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return _WISHED if soft == resource.RLIM_INFINITY else min(soft, _WISHED)


class Watch:
    """The connections of one server that have still to ask, or to send what they ask with.

    Args:
        limits: what they may take.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._asking: dict[WatchedProtocol, None] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._full = False

    def protocol(self) -> type[WatchedProtocol]:
        """The protocol of the connections."""
        return type("WatchedConnection", (WatchedProtocol,), {"watch": self})

    async def accept(self, listening: socket.socket, make: Callable[[], WatchedProtocol], tls: Any) -> None:
        """Take connections until it is cancelled, one after the other, so that none is taken unseen.

        Args:
            listening: the socket.
            make: makes the protocol of a connection.
            tls: the context for TLS, or None.
        """
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        shaking = set[asyncio.Task[Any]]()
        while True:
            try:
                taken, _ = await loop.sock_accept(listening)
            except OSError as error:
                # Others of the process have the descriptors, or whoever came is gone.
                if error.errno not in _GONE:
                    await asyncio.sleep(_LOOK)
                continue
            if (placed := await self._placed(taken)) is None:
                continue
            taken = placed
            # A handshake of TLS waits beside.
            limit = None if tls is None else self.limits.head
            begun = loop.connect_accepted_socket(make, taken, ssl=tls, ssl_handshake_timeout=limit)
            task = loop.create_task(begun)
            shaking.add(task)
            task.add_done_callback(partial(_ended, shaking, taken))

    async def _placed(self, taken: socket.socket) -> socket.socket | None:
        """A connection with a descriptor below the bound; None where there is none, and it is closed.

        If need be those go that have not asked for longest. What the process opens besides may get the
        descriptors that they leave.
        """
        if taken.fileno() < self.limits.descriptors:
            self._full = False
            return taken
        self._note()
        for _ in range(_TRIES):
            last = next(iter(self._asking), None)
            if last is not None:
                last.transport.abort()
                self.has_asked(last)
            # It goes, or one that was taken before begins.
            await asyncio.sleep(_BETWEEN)
            with contextlib.suppress(OSError):
                lower = taken.dup()
                if lower.fileno() < taken.fileno():
                    taken, lower = lower, taken
                lower.close()
            if taken.fileno() < self.limits.descriptors:
                return taken
        taken.close()
        return None

    def asks(self, one: WatchedProtocol) -> None:
        """A connection is to send something from now on."""
        self._asking.pop(one, None)
        self._asking[one] = None
        if self._looking is None:
            self._looking = one.loop.call_later(_LOOK, self._look, one.loop)

    def waits_for(self, one: WatchedProtocol) -> bool:
        """Whether a connection is to send something."""
        return one in self._asking

    def has_asked(self, one: WatchedProtocol) -> None:
        """A connection has sent all, or is gone."""
        self._asking.pop(one, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = None
        now = loop.time()
        for one in [one for one in self._asking if one.is_late(now)]:
            one.transport.abort()
            self.has_asked(one)
        if self._asking:
            self._looking = loop.call_later(_LOOK, self._look, loop)

    def _note(self) -> None:
        if not self._full:
            self._full = True
            _LOG.warning(
                "%s connections are open: one that has not asked for anything is closed for each that comes",
                f"{len(self._asking):,}",
            )


class WatchedProtocol(H11Protocol):
    """A connection that holds little for a client that does not read, and waits for a while only."""

    watch: Watch
    begun = 0.0
    received = 0

    def is_late(self, now: float) -> bool:
        """Whether it has taken too long to send what it is sending.

        Args:
            now: seconds of the loop's clock.
        """
        limits = self.watch.limits
        if self.conn.their_state is not h11.SEND_BODY:
            return now > self.begun + limits.head
        if self.flow.read_paused:
            # It would send, and whoever answers does not read.
            self.begun, self.received = now, 0
        return now > self.begun + limits.silent + self.received / limits.slowest

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; see asyncio."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(_UNSENT)
        self.begun, self.received = self.loop.time(), 0
        self.watch.asks(self)

    def data_received(self, data: bytes) -> None:
        """Take what has come; see asyncio."""
        before = self.conn.their_state
        super().data_received(data)
        state = self.conn.their_state
        if state not in (h11.IDLE, h11.SEND_BODY):
            self.watch.has_asked(self)
            return
        if state is not before or (state is h11.IDLE and not self.watch.waits_for(self)):
            # The head is there and the body is to come, or another request begins.
            self.begun, self.received = self.loop.time(), 0
            self.watch.asks(self)
        self.received += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; see asyncio."""
        self.watch.has_asked(self)
        super().connection_lost(exc)


def _ended(shaking: set[asyncio.Task[Any]], taken: socket.socket, task: asyncio.Task[Any]) -> None:
    """A handshake has come to its end; one that went wrong leaves nothing open."""
    shaking.discard(task)
    if task.cancelled() or task.exception() is not None:
        taken.close()
