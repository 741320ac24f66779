"""What every request passes: the check of host, origin and key, the log, and the body of errors."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.responses import JSONResponse

from headrace.server.access import Door
from headrace.server.errors import response_of
from headrace.server.metrics import Metrics
from headrace.server.turns import HOLDING, HeldMemory, Shares

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

OPEN: Final = frozenset(["/", "/healthz", "/readyz"])
"""What needs no key: it says nothing but that the server is there, and the page asks for one."""
_METHODS: Final = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
_NOBODY: Final = ""
"""Whose turn it is where no key is sent, as with rows that are signed."""
_ROWS: Final = re.compile(r"/streams/[^/]+/rows")
"""The paths that take rows."""
LOG: Final = logging.getLogger("headrace.server")


class RequestGuard:
    """Lets requests in or refuses them, and logs them; the outermost part of the application.

    Args:
        app: what answers the requests that are let in.
        door: which ones are.
        metrics: counts them.
        memory: what the requests share of it.
        seconds: for how long a request waits for memory.
    """

    def __init__(self, app: App, door: Door, metrics: Metrics, memory: Shares, seconds: float) -> None:
        self._memory = memory
        self._seconds = seconds
        self._app = app
        self._door = door
        self._metrics = metrics

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer a request; see ASGI."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)

    async def _request(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        began, status, whole = time.perf_counter(), 0, False
        holding: HeldMemory | None = None

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal status, whole
            status = message.get("status", status)
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            holding = HeldMemory(self._memory, self._let_in(scope), self._seconds)
            HOLDING.set(holding)
            await self._app(scope, receive, noted)
        except Exception as error:
            if whole:
                LOG.exception("a fault")
                return
            if status:
                LOG.exception("a response broke off")
                raise
            code, body, headers = response_of(error)
            if code == 500:
                LOG.exception("a fault")
            await JSONResponse(body, code, headers)(scope, receive, noted)
        finally:
            if holding is not None:
                holding.release()
            self._note(scope, status, time.perf_counter() - began)

    def _let_in(self, scope: AsgiScope) -> str:
        """Let a request in, and say whose turn it is: the name of a key, or nobody's."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._door.check_host(headers.get(b"host"))
        self._door.check_origin(headers.get(b"origin"), headers.get(b"host"))
        if scope["path"] in OPEN or scope["path"].startswith("/page/"):
            return _NOBODY
        authorization = headers.get(b"authorization")
        signed = authorization is None and scope["method"] == "POST" and _ROWS.fullmatch(scope["path"])
        # Whether rows without a key are signed instead is seen when their body has come.
        caller = None if signed and self._door.needs_key else self._door.caller(authorization)
        scope.setdefault("state", {})["caller"] = caller
        return _NOBODY if caller is None else caller.name

    def _note(self, scope: AsgiScope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        # Methods are whatever clients send; each that is counted apart takes memory for good.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.request(method, route, status, seconds)
        caller = scope.get("state", {}).get("caller")
        LOG.info(
            "request",
            extra={
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "milliseconds": round(1000 * seconds, 3),
                "key": None if caller is None else caller.name,
            },
        )
