"""Web servers that are toxic: they break off, are silent or slow, reset, refuse, or answer something else."""

from __future__ import annotations

import http.server
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headrace.runtime.outside.patience import patient

MOODS: Final = ("cut", "silent", "slow", "reset", "missing", "forbidden", "busy", "broken", "gone")
"""All ways of not being well."""
_STATUSES: Final = {"missing": 404, "forbidden": 403, "busy": 503, "broken": 500}


class ToxicSite(http.server.ThreadingHTTPServer):
    """Answers every request with what it has, if it is well.

    Attributes:
        body: what it has.
        mood: `well`, or one of `MOODS`.
        cut: after how many bytes a transfer breaks off.
        asked: how many requests have come.
        posted: the bodies that it has taken.
        refusal: what it says where it refuses.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, body: bytes = b"", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.body = body
        self.mood = "well"
        self.cut = 10
        self.asked = 0
        self.posted: list[bytes] = []
        self.refusal = b"<html>no</html>"
        self.awake = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients go away from silent servers."""

    def close(self) -> None:
        """Listen no longer."""
        self.awake.set()
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: ToxicSite

    def do_GET(self) -> None:
        site = self.server
        site.asked += 1
        length = int(self.headers["Content-Length"] or 0)
        posted = self.rfile.read(length)
        match site.mood:
            case "silent":
                site.awake.wait(60)
                self.close_connection = True
            case "reset" | "gone":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            case "well" | "cut" | "slow":
                if self.command == "POST" and site.mood == "well":
                    site.posted.append(posted)
                self._answer(200, site.body)
            case mood:
                self._answer(_STATUSES[mood], site.refusal, {"Retry-After": "0"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.server.mood == "cut" and self.command == "POST":
            # Not even the head is whole.
            self.connection.close()
            return
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.server.mood == "cut":
            self.wfile.write(body[: self.server.cut])
            self.close_connection = True
        elif self.server.mood == "slow":
            for at in range(len(body)):
                self.wfile.write(body[at : at + 1])
                if self.server.awake.wait(0.05):
                    return
        else:
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@contextmanager
def toxic_site(body: bytes = b"") -> Iterator[ToxicSite]:
    """A site, while nobody has much patience."""
    site = ToxicSite(body)
    try:
        with patient(silent=0.3, pause=0.01, longest=0.05, opening=0.2, lag=0.2):
            yield site
    finally:
        site.close()
