"""The application: the routes, and what every request passes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from headrace.errors import DeliveryError, UserError
from headrace.server.access import Door
from headrace.server.context import STATUS_SECONDS, ServerContext
from headrace.server.errors import RequestError, response_of
from headrace.server.guard import App, RequestGuard
from headrace.server.hour import SampledHour
from headrace.server.looks import Looks
from headrace.server.metrics import Metrics
from headrace.server.routes import (
    answers,
    completions,
    events,
    health,
    hour,
    page,
    recent,
    resources,
    rows,
    statements,
)
from headrace.server.session import Session
from headrace.server.supervisor import Supervisor
from headrace.server.tails import Tails
from headrace.server.turns import Shares
from headrace.server.workshop import THREADS, Workshop

_LOG: Final = logging.getLogger("headrace")


def create_app(session: Session, door: Door) -> tuple[App, Tails]:
    """The application, and what has to be closed before it can stop.

    Args:
        session: the database; its run is stopped when the application is.
        door: which requests are let in.
    """
    metrics = Metrics(session.status)
    tails = Tails(session.db, session.limits)
    workshop = Workshop()
    numbers = SampledHour(session.status)
    supervisor = Supervisor(session, lambda: tails.closing)
    metrics.subscribers.set_function(lambda: tails.clients)
    metrics.busy.set_function(lambda: workshop.busy)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(supervisor.keep_running)
            group.start_soon(numbers.keep_sampling)
            yield
            group.cancel_scope.cancel()
        tails.close()
        try:
            await anyio.to_thread.run_sync(session.stop)
        except DeliveryError as error:
            # The store knows what the sink has yet to take.
            _LOG.warning("%s", error)
        finally:
            workshop.close()

    app = FastAPI(
        title="Headrace",
        version=version("headrace"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        description="Continuous queries over streams: statements, rows, answers and changes.",
    )
    app.state.context = ServerContext(
        session, session.limits, metrics, tails, workshop, Looks(STATUS_SECONDS), supervisor,
        numbers, Shares(THREADS, THREADS // 4, "thread"),
    )  # fmt: skip
    # What is asked of a query by a word of its own comes before its views, which have the same form of path.
    for part in (page, health, statements, completions, events, hour, recent, rows, answers, resources):
        app.include_router(part.router)
    app.add_exception_handler(UserError, _refused)
    app.add_exception_handler(Exception, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _unknown)
    memory = Shares(session.limits.memory_bytes, session.limits.memory_bytes // 2, "memory")
    return RequestGuard(app, door, metrics, memory, session.limits.waiting), tails


async def _refused(_: Request, error: Exception) -> JSONResponse:
    status, body, headers = response_of(error)
    return JSONResponse(body, status, headers)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"])
    return await _refused(request, RequestError("request", 400, f"{where}: {first['msg']}"))


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method"}.get(error.status_code, "request")
    headers = dict(error.headers or {})
    made = RequestError(kind, error.status_code, str(error.detail).lower(), headers=headers)
    return await _refused(request, made)
