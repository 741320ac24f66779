"""The changes of a query at a server, as they are committed, however often the connection is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from types import TracebackType
from typing import Final

import pyarrow as pa

from headrace.client.connection import Connection, ResponseStream, UnreachableError
from headrace.client.errors import GoneError
from headrace.client.rows import rows_of
from headrace.errors import UserError

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
"""Seconds between two attempts to reach a server that is gone; they double."""


@dataclass(frozen=True)
class RemoteChange:
    """Rows of an epoch's change; a large epoch comes in several parts.

    Attributes:
        id: what `subscribe` goes on after.
        epoch: the epoch.
        rows: as `Query.changes` has them: `epoch`, the payload, `valid_from`, `valid_to`, `change`.
        final_below: the instant below which the answer is final after the epoch, as text.
        last: whether the epoch has no more rows.
    """

    id: str
    epoch: int
    rows: pa.Table
    final_below: str
    last: bool


@dataclass
class _Event:
    """An event that is being read."""

    name: str = "message"
    data: str = ""
    id: str | None = None


class RemoteSubscription(Iterator[RemoteChange]):
    """The changes of a query, each once; made by `Client.subscribe`.

    Where the connection is lost, it is made again, and what follows the last complete event is asked for.

    Attributes:
        last_id: the id of the last event that has come, which may be newer than the last change.

    Args:
        connection: the server.
        path: of the events.
        types: asked for before the first rows: the types of their columns.
        after: the id of the last change that the reader has; None for all, `now` for those from now on.
        patience: seconds for which a server may be gone.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        types: Callable[[], list[pa.DataType]],
        after: str | None,
        patience: float,
    ) -> None:
        self._connection = connection
        self._path = path
        self._types = types
        self._known: list[pa.DataType] | None = None
        self._patience = patience
        self._stream: ResponseStream | None = None
        self._closed = threading.Event()
        self._reading = threading.RLock()
        self.last_id = after

    def __iter__(self) -> RemoteSubscription:
        return self

    def __enter__(self) -> RemoteSubscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; who waits for the next change, in whatever thread, gets none."""
        self._closed.set()
        stream = self._stream
        if stream is not None:
            stream.interrupt()
        with self._reading:
            self._drop()

    def __next__(self) -> RemoteChange:
        """The next rows.

        Raises:
            StopIteration: the query is no longer answered, or this was closed.
            GoneError: what follows is no longer kept.
            UserError: the server has been gone for too long, or refuses this.
        """
        with self._reading:
            return self._next()

    def _next(self) -> RemoteChange:
        while not self._closed.is_set():
            event = self._event()
            if event is None:
                break
            if event.id is not None:
                self.last_id = event.id
            match event.name:
                case "changes" if event.data:
                    return self._change(event)
                case "gone":
                    raise self._gone()
                case "end":
                    self.close()
                case _:
                    continue
        raise StopIteration

    def _gone(self) -> GoneError:
        """Changes that went out of what is kept while others were sent; asked once more, where to start."""
        gone = GoneError("the changes that follow are no longer kept", hint="start from the answer")
        self._drop()
        try:
            self._stream = self._connect()
        except GoneError as error:
            gone = error
        except (UserError, OSError, HTTPException):
            pass  # that they are gone is known
        self.close()
        return gone

    def _change(self, event: _Event) -> RemoteChange:
        if self._known is None:
            self._known = self._types()
        told, rows = rows_of(event.data, self._known)
        last = told.get("last") is True
        return RemoteChange(event.id or "", int(str(told["epoch"])), rows, str(told["final_below"]), last)

    def _event(self) -> _Event | None:
        """The next complete event, over as many connections as it takes; None if this was closed."""
        until, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while not self._closed.is_set():
            try:
                if self._stream is None:
                    self._stream = self._connect()
                event = _read(self._stream)
                if event is not None:
                    return event
            except UnreachableError:
                if time.monotonic() > until:
                    raise
            except (OSError, HTTPException, ValueError):
                # Lost; what has come of an event that is not complete does not count.
                pass
            if self._drop():
                until = time.monotonic() + self._patience
            self._closed.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        return None

    def _drop(self) -> bool:
        """Let the connection go; whether there was one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        return stream is not None

    def _connect(self) -> ResponseStream:
        headers = {"Accept": "text/event-stream"}
        if self.last_id is None or self.last_id == "now":
            stream = self._connection.stream(self._path, headers, {"since": self.last_id})
        else:
            stream = self._connection.stream(self._path, {**headers, "Last-Event-ID": self.last_id})
        if self._closed.is_set():
            stream.interrupt()
        return stream


def _read(stream: ResponseStream) -> _Event | None:
    """The next complete event; None where the response ends, and then what has come of one is nothing."""
    event, begun = _Event(), False
    while True:
        line = stream.line()
        if not line.endswith(b"\n"):
            return None
        text = line.decode().rstrip("\r\n")
        if not text:
            if begun:
                return event
            continue
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        begun = begun or bool(name)
        match name:
            case "id":
                event.id = value
            case "event":
                event.name = value
            case "data":
                event.data += value
            case _:
                continue
