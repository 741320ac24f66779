"""A server that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn

from headrace.errors import UserError
from headrace.server.access import Door
from headrace.server.address import Address
from headrace.server.app import create_app
from headrace.server.connections import ConnectionLimits, Watch, WatchedProtocol, connection_limits
from headrace.server.session import Session

_GRACE: Final = 10
"""Seconds that requests under way have when the server stops."""

_SEND_BUFFER: Final = 32 * 2**10
"""Bytes of a connection that the kernel holds, twice over: who does not read cannot fill its memory."""

_BACKLOG: Final = 2_048
"""So many connections wait until they are taken."""


class _Server(uvicorn.Server):
    """A server whose waiting clients are let go first when it is told to stop.

    Args:
        config: how it serves.
        watch: takes the connections.
        leave: lets clients go.
    """

    def __init__(self, config: uvicorn.Config, watch: Watch, leave: Callable[[], None]) -> None:
        super().__init__(config)
        self._watch = watch
        self._leave = leave
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin; the connections are taken here, and not by the loop, which takes all that have come."""
        await super().startup(sockets=[])

        def make() -> WatchedProtocol:
            kind = self.config.http_protocol_class
            found: WatchedProtocol = kind(self.config, self.server_state, self.lifespan.state)  # type: ignore[call-arg, assignment]
            return found

        loop = asyncio.get_running_loop()
        for one in sockets or ():
            self._accepting.append(loop.create_task(self._watch.accept(one, make, self.config.ssl)))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to stop; at the second one, requests under way are given up.

        The signal is not raised again at the end, as uvicorn does: the process has ended as it was asked to.
        """
        self._leave()
        self.force_exit, self.should_exit = self.should_exit, True


def serve(
    session: Session,
    door: Door,
    address: Address,
    listening: Callable[[str], None] | None = None,
    bound: socket.socket | None = None,
) -> None:
    """Serve a database until SIGINT or SIGTERM; the run then ends between two epochs.

    Args:
        session: the database.
        door: which requests are let in.
        address: where to listen.
        listening: called with the server's URL before the first request is taken.
        bound: what `listener` has made of the address, if it was called before; it is closed at the end.

    Raises:
        UserError: the address cannot be used.
    """
    address.check(has_keys=bool(door.keys.keys))
    server = make_server(session, door, address)
    with bound or listener(address) as made:
        if listening is not None:
            listening(url_of(made, address))
        # What there is now stays; looking through it for garbage would hold up requests and epochs.
        gc.collect()
        gc.freeze()
        server.run([made])


def make_server(
    session: Session, door: Door, address: Address, connections: ConnectionLimits | None = None
) -> uvicorn.Server:
    """A server that is not running yet.

    Args:
        session: the database.
        door: which requests are let in.
        address: where it will listen.
        connections: what connections may take; as the process's limits allow if None.
    """
    app, tails = create_app(session, door)
    watch = Watch(connections or connection_limits())
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.private_key,
        lifespan="on",
        ws="none",
        # It limits the size of headers; httptools, which would be taken where it is there, does not.
        http=watch.protocol(),
    )
    return _Server(config, watch, tails.close)


def listener(address: Address) -> socket.socket:
    """A socket that listens on an address.

    Raises:
        UserError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The connections that are taken have the same.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        made.bind((address.host, address.port))
        # At once, so that clients that come as soon as the address is known wait, and are not refused.
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise UserError(
            f"{address.host}:{address.port} cannot be used: {error.strerror}", hint="choose another --port"
        ) from error
    return made


def url_of(made: socket.socket, address: Address) -> str:
    """How clients reach a socket."""
    scheme = "http" if address.certificate is None else "https"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{scheme}://{host}:{made.getsockname()[1]}"
