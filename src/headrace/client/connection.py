"""Requests to a server, and what they answer."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from headrace.client.errors import error_of
from headrace.errors import UserError, message_of

TOO_MANY: Final = 429
"""The status of what is refused for now, and has not been done."""
_FIRST_ERROR: Final = 400
_WAIT: Final = 0.5
"""Seconds until what was refused for now is sent again, where the server says no number."""


class UnreachableError(UserError):
    """A server that cannot be reached, or has gone before its answer was complete."""


class ResponseStream:
    """A response that is read as it comes.

    Args:
        connection: what it comes by.
        response: it.
        sock: below both.
    """

    def __init__(self, connection: HTTPConnection, response: HTTPResponse, sock: socket.socket) -> None:
        self._connection = connection
        self._response = response
        self._socket = sock

    def line(self) -> bytes:
        """The next line with its end; less where the response ends, or is cut off.

        Raises:
            OSError: the connection is lost.
            HTTPException: it is cut off inside the response.
        """
        return self._response.readline()

    def interrupt(self) -> None:
        """Let who waits for a line, in whatever thread, wait no longer."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let it go; nobody may be reading it."""
        self.interrupt()
        self._response.close()
        self._connection.close()


class Connection:
    """A server's address, with what every request to it has.

    Args:
        url: such as `http://127.0.0.1:7878`.
        key: a key of the server's, or None.
        timeout: seconds until a server that is silent counts as gone.

    Raises:
        UserError: it is not the URL of a server.
    """

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query:
            hint = "give one such as http://127.0.0.1:7878"
            raise UserError(f"{url!r} is not the URL of a server", hint=hint)
        self.url = url.rstrip("/")
        self._host, self._port = parts.hostname, port
        self._prefix = parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout = timeout

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        query: dict[str, Any] | None = None,
    ) -> bytes:
        """The body that a request is answered with; what is refused for now is sent again for a while.

        Args:
            method, path: what is asked, the path with its parts quoted.
            body: what is sent.
            headers: besides those that every request has.
            query: what follows the path; None values are left out.

        Raises:
            UnreachableError: the server cannot be reached.
            HeadraceError: what the server says is wrong.
        """
        until = time.monotonic() + self._timeout
        while True:
            status, answer, wait = self._once(method, self._path(path, query), body, headers or {})
            if status == TOO_MANY and time.monotonic() + wait < until:
                time.sleep(wait)
                continue
            if status >= _FIRST_ERROR:
                raise error_of(status, answer)
            return answer

    def json(self, method: str, path: str, sent: object = None, **query: Any) -> Any:
        """The JSON that a request is answered with.

        Raises:
            UserError: as `call` does, or the answer is not JSON.
        """
        body = None if sent is None else json.dumps(sent).encode()
        answer = self.call(method, path, body, {"Content-Type": "application/json"}, query)
        try:
            return json.loads(answer)
        except ValueError:
            raise error_of(200, b"") from None

    def stream(
        self, path: str, headers: dict[str, str], query: dict[str, Any] | None = None
    ) -> ResponseStream:
        """A response that is read as it comes.

        Raises:
            UnreachableError: the server cannot be reached, or takes nobody more for now.
            HeadraceError: what the server says is wrong.
        """
        connection = self._connection()
        try:
            response, sock = self._send(connection, "GET", self._path(path, query), None, headers)
            if response.status < _FIRST_ERROR:
                return ResponseStream(connection, response, sock)
            answer = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from error
        connection.close()
        if response.status in (TOO_MANY, 502, 503, 504):
            raise UnreachableError(f"{self.url} takes nobody for now", hint="try again later")
        raise error_of(response.status, answer)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float]:
        """Status, body, and after how many seconds it may be sent again."""
        connection = self._connection()
        try:
            response, _ = self._send(connection, method, path, body, headers)
            return response.status, response.read(), _seconds(response.getheader("Retry-After"))
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def _send(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[HTTPResponse, socket.socket]:
        connection.connect()
        sock: socket.socket = connection.sock
        connection.request(method, path, body, {**self._headers, **headers, "Connection": "close"})
        return connection.getresponse(), sock

    def _connection(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=self._timeout)
        return HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)

    def _path(self, path: str, query: dict[str, Any] | None) -> str:
        said = {key: value for key, value in (query or {}).items() if value is not None}
        return f"{self._prefix}{path}" + (f"?{urlencode(said)}" if said else "")

    def _unreachable(self, error: Exception) -> UnreachableError:
        reason = message_of(error) or type(error).__name__
        hint = "is `headrace serve` running there?"
        return UnreachableError(f"{self.url} cannot be reached: {reason}", hint=hint)


def _seconds(text: str | None) -> float:
    """The number of a header Retry-After."""
    try:
        return max(0.0, float(text or _WAIT))
    except ValueError:
        return _WAIT
