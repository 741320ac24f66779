"""A real server on a loopback port, in a thread, and a real client."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import headrace as hr
from headrace.server.access import Door, hosts_of
from headrace.server.address import Address
from headrace.server.connections import ConnectionLimits
from headrace.server.keys import KeyFile
from headrace.server.limits import RequestLimits
from headrace.server.serving import listener, make_server, url_of
from headrace.server.session import Session

LIMITS = RequestLimits()
FREE_PORT = Address(port=0)
POLICY = hr.Policy.closed(may_change=True)


@contextmanager
def running(
    folder: Path,
    limits: RequestLimits = LIMITS,
    address: Address = FREE_PORT,
    runner: str = "inline",
    connections: ConnectionLimits | None = None,
    **options: int,
) -> Iterator[str]:
    """A server over a store in a folder; its URL."""
    with hr.connect(runner=runner, storage=folder / "store", **options) as db:  # type: ignore[arg-type]
        db.served.start()
        session = Session(db, POLICY, folder, limits)
        door = Door(KeyFile(folder / "keys.json"), hosts_of("127.0.0.1", ()))
        server = make_server(session, door, address, connections)
        with listener(address) as made:
            thread = threading.Thread(target=server.run, args=([made],), daemon=True)
            thread.start()
            try:
                url = url_of(made, address)
                _wait_for(url)
                yield url
            finally:
                server.handle_exit(15, None)
                thread.join(20)
                assert not thread.is_alive(), "the server did not stop"


def _wait_for(url: str) -> None:
    transport = httpx.HTTPTransport(retries=5, verify=_unchecked())
    with httpx.Client(transport=transport, base_url=url) as client:
        assert client.get("/healthz").json() == {"status": "ok"}


def _unchecked() -> ssl.SSLContext:
    """Takes any certificate: only whether the server answers is asked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
