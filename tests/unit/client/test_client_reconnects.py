"""A subscription at a real server, over a connection that is cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import headrace as hr
from headrace.client import GoneError, RemoteChange, RemoteSubscription, subscription
from headrace.client.connection import UnreachableError
from headrace.server.limits import RequestLimits
from unit.server.serving_for_tests import running

PARTS = 4
"""Three of the first epoch, one of the second."""
TEXT = """CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM s;
"""


class Wire:
    """A way to a server that ends the first response of events after some bytes.

    Attributes:
        cut: after how many; never if None.
        carried: how many bytes of events the last connection has carried.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = parts.hostname, parts.port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cut: int | None = None
        self.carried = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(20)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._server) as far, suppress(OSError):
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += near.recv(65536)
            far.sendall(asked)
            events = b"/events" in asked
            room = self.cut if events else None
            if events:
                self.cut, self.carried = None, 0
            while room is None or room > 0:
                data = far.recv(65536)[: room if room is not None else 65536]
                if not data:
                    return
                near.sendall(data)
                room = None if room is None else room - len(data)
                self.carried += len(data) if events else 0


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setattr(subscription, "_FIRST_WAIT", 0.0)
    with running(tmp_path, RequestLimits(part_rows=2)) as url, closing(Wire(url)) as wire:
        client = hr.Client(url)
        client.execute(TEXT)
        client.push("s", [{"ts": ts, "v": ts} for ts in range(6)])
        client.push("s", {"ts": 6, "v": 6})
        yield wire


def read(wire: Wire, after: str | None = None, most: int = PARTS) -> list[RemoteChange]:
    with hr.Client(wire.url, timeout=20).subscribe("q", after) as changes:
        return list(islice(changes, most))


@pytest.mark.slow("cuts at each byte")
def test_a_cut_anywhere_loses_nothing_and_gives_nothing_twice(wire: Wire) -> None:
    whole = read(wire)
    assert [change.rows["v"].to_pylist() for change in whole] == [[0, 1], [2, 3], [4], [5]]
    assert [change.last for change in whole] == [False, False, True, True]
    assert [change.epoch for change in whole] == [1, 1, 1, 2]
    length = wire.carried
    assert length > 500
    for cut in range(0, length, 11):
        wire.cut = cut
        assert read(wire) == whole, f"after a cut at byte {cut}"


def test_a_reader_goes_on_after_what_it_has_had(wire: Wire) -> None:
    whole = read(wire)
    for number, change in enumerate(whole[:-1], start=1):
        assert read(wire, change.id, PARTS - number) == whole[number:]


def test_a_server_that_is_gone_for_good_is_said_to_be(wire: Wire) -> None:
    changes = hr.Client(wire.url, timeout=20).subscribe("q", patience=0.0)
    with changes:
        next(changes)
        wire.close()
        changes._drop()
        with pytest.raises(UnreachableError, match="cannot be reached"):
            next(changes)


def test_a_reader_that_fell_behind_hears_where_to_start() -> None:
    class Falls:
        """A server at which what is due goes while changes are sent."""

        def __init__(self) -> None:
            self.lines = [b"id: 1.2.0.end\n", b"event: gone\n", b"data: {}\n", b"\n"]
            self.asked: list[dict[str, str]] = []

        def stream(self, _: str, headers: dict[str, str], query: object = None) -> Falls:
            self.asked.append(headers)
            if len(self.asked) > 1:
                error = GoneError("no longer kept")
                error.resume = "1.9.0.end"
                raise error
            return self

        def line(self) -> bytes:
            return self.lines.pop(0)

        def interrupt(self) -> None:
            """Nobody waits."""

        def close(self) -> None:
            """Nothing is open."""

    server = Falls()
    changes = RemoteSubscription(server, "/", list, None, 5.0)  # type: ignore[arg-type]
    with pytest.raises(GoneError) as caught:
        next(changes)
    assert caught.value.resume == "1.9.0.end"
    assert [headers.get("Last-Event-ID") for headers in server.asked] == [None, "1.2.0.end"]
    assert list(changes) == []
