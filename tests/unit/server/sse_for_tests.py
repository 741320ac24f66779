"""A client of server-sent events that can be cut off anywhere."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Received:
    """What a client has got, as a browser would count it.

    Attributes:
        last_id: the id that it sends when it connects again.
        rows: those of all events of changes, in order.
        names: the names of the events without changes.
    """

    last_id: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def take(self, data: bytes) -> None:
        """Count the events that are complete in some bytes; the rest is lost with the connection."""
        *events, _ = data.decode(errors="replace").split("\n\n")
        for event in events:
            lines = [line.partition(": ")[::2] for line in event.splitlines() if not line.startswith(":")]
            found = dict(lines)
            self.last_id = found.get("id", self.last_id)
            if found.get("event") == "changes":
                self.rows += json.loads(found["data"])["rows"]
            elif "event" in found:
                self.names.append(found["event"])


def read_events(
    url: str, path: str, until: Callable[[bytes], bool], last_id: str | None = None, most: int | None = None
) -> bytes:
    """The bytes of a stream of events, without the head and the chunks of HTTP.

    Args:
        url: the server's.
        path: of the events.
        until: whether enough has come.
        last_id: the id that is sent.
        most: after so many bytes the connection is cut.
    """
    parts = urlsplit(url)
    head = f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\n"
    head += f"Last-Event-ID: {last_id}\r\n\r\n" if last_id is not None else "\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as connection:
        connection.sendall(head.encode())
        received = b""
        while True:
            _, separator, body = received.partition(b"\r\n\r\n")
            if separator and most is not None and len(body) >= most:
                return body[:most]
            if separator and until(body):
                return body
            piece = connection.recv(65_536)
            if not piece:
                return body if separator else received
            received += piece
