"""Connections that ask for nothing, or slowly, cost the run nothing."""

from __future__ import annotations

import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from headrace.server.connections import ConnectionLimits, connection_limits
from unit.server.serving_for_tests import running
from waiting import wait_for

TEXT = """CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]"""


@contextmanager
def served(folder: Path, connections: ConnectionLimits) -> Iterator[httpx.Client]:
    with (
        running(folder, connections=connections) as url,
        httpx.Client(base_url=url, timeout=60, headers={"Connection": "close"}) as client,
    ):
        assert client.post("/statements", json={"text": TEXT}).status_code == 200
        yield client


def connected(client: httpx.Client) -> socket.socket:
    made = socket.create_connection((client.base_url.host, client.base_url.port or 0))
    made.settimeout(60)
    return made


def is_closed(one: socket.socket) -> bool:
    """Whether the server has closed a connection; it says nothing before."""
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        one.settimeout(60)


def pushed(client: httpx.Client, ts: int) -> None:
    rows = client.post("/streams/s/rows", json={"ts": ts, "v": 1})
    assert rows.json()["committed"], rows.text
    assert client.get("/readyz").json()["status"] == "running"


def bound_above(free: int) -> int:
    """A bound below which so many descriptors are free now; the sockets of this test come from the same ones.

    Others of the process may have taken some in between, which leave too little room if they are not counted.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(Path(os.devnull).open()) for _ in range(free)]
        return files[-1].fileno() + 1


def test_idle_connections_go_when_there_are_too_many(tmp_path: Path) -> None:
    """The oldest go first; whoever asks at once is answered, and commits go on."""
    with ExitStack() as stack:
        limits = ConnectionLimits(bound_above(150), head=60)
        client = stack.enter_context(served(tmp_path, limits))
        idle = [stack.enter_context(connected(client)) for _ in range(100)]
        for ts in range(5):
            pushed(client, ts)
        wait_for(lambda: sum(map(is_closed, idle)) > 30)
        assert is_closed(idle[0])
        assert not is_closed(idle[-1])


def test_a_connection_has_a_while_for_the_head_of_its_request(tmp_path: Path) -> None:
    with served(tmp_path, ConnectionLimits(10_000, head=0.2)) as client, ExitStack() as stack:
        idle, slow = (stack.enter_context(connected(client)) for _ in range(2))
        stopping = threading.Event()

        def drip() -> None:
            for byte in b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 10_000:
                if stopping.wait(0.02):
                    return
                try:
                    slow.send(bytes([byte]))
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        wait_for(lambda: is_closed(idle))
        wait_for(lambda: is_closed(slow))
        stopping.set()
        dripping.join()
        pushed(client, 1)


def test_a_body_has_a_while_and_longer_if_it_comes(tmp_path: Path) -> None:
    limits = ConnectionLimits(10_000, silent=0.3, slowest=10)
    with served(tmp_path, limits) as client, ExitStack() as stack:
        stuck, steady = (stack.enter_context(connected(client)) for _ in range(2))
        body = b'{"ts": 1, "v": 1}' + b" " * 200
        head = (
            b"POST /streams/s/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        stuck.sendall(head + body[:5])
        steady.sendall(head)
        for place in range(0, len(body), 10):
            steady.sendall(body[place : place + 10])
            threading.Event().wait(0.03)
        assert b"200 OK" in steady.recv(10_000)
        wait_for(lambda: is_closed(stuck))


def test_the_limits_leave_room_for_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(soft: int, hard: int) -> ConnectionLimits:
        now = [soft, hard]
        monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(now))
        monkeypatch.setattr(resource, "setrlimit", lambda _, both: now.__setitem__(slice(None), both))
        return connection_limits()

    assert limited(256, 256).descriptors == 192
    assert limited(1024, 1024).descriptors == 768
    assert limited(1024, resource.RLIM_INFINITY).descriptors == 65_536 - 1_024
    assert limited(resource.RLIM_INFINITY, resource.RLIM_INFINITY).subscribers > 10_000
    assert limited(256, 256).subscribers == 144


def test_subscribers_leave_room_for_who_asks(tmp_path: Path) -> None:
    """Where all connections wait for changes the next one is closed, and the run goes on."""
    with ExitStack() as stack:
        limits = ConnectionLimits(bound_above(100), head=60)
        client = stack.enter_context(served(tmp_path, limits))
        request = b"GET /queries/q/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        waiting = list[socket.socket]()
        # What earlier tests have left may still be closed meanwhile, which makes room.
        while not is_refused(client):
            one = stack.enter_context(connected(client))
            try:
                one.sendall(request)
                if one.recv(100):
                    waiting.append(one)
            except ConnectionError:
                pass
            assert len(waiting) < 200
        for one in waiting[:10]:
            one.close()
        wait_for(lambda: not is_refused(client))
        pushed(client, 1)


def is_refused(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code != 200
    except httpx.TransportError:
        return True
