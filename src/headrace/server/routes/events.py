"""Changes and status as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from headrace.engine import Query
from headrace.engine.served import KeptAnswer
from headrace.engine.shown.status import instant_text
from headrace.errors import UserError
from headrace.server.access import Caller
from headrace.server.context import STATUS_SECONDS, By, Ctx, ServerContext
from headrace.server.errors import RequestError
from headrace.server.events import ClientPlace, place_of
from headrace.server.routes.resources import status_for
from headrace.time import BEGINNING, INFINITY

router: Final = APIRouter(tags=["events"])

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {}}},
    410: {},
    429: {},
}


@router.get("/queries/{name}/events", response_class=StreamingResponse, responses=_EVENTS)
async def events(
    name: str, request: Request, context: Ctx, caller: By, since: str | None = None
) -> StreamingResponse:
    """The changes of a query as they are committed.

    A client that was cut off continues after the header `Last-Event-ID`; at first `since` says where to
    begin: an id, or `now`; all that is kept without it.
    """
    query = context.session.query(name, caller)
    kept = await context.blocking(context.session.db.served.kept, query)
    place = _place(request.headers.get("last-event-id") or since, query, kept)
    context.tails.check_room()
    sent = context.tails.events(query, kept, place)
    return StreamingResponse(sent, media_type="text/event-stream", headers=_HEADERS)


@router.get("/status/events", response_class=StreamingResponse, responses=_EVENTS)
async def status_events(context: Ctx, caller: By) -> StreamingResponse:
    """The status whenever an epoch has been committed, once a second at most."""
    context.tails.check_room()
    sent = _statuses(context, caller)
    return StreamingResponse(sent, media_type="text/event-stream", headers=_HEADERS)


async def _statuses(context: ServerContext, caller: Caller) -> AsyncIterator[bytes]:
    with context.tails.client():
        yield b": connected\n\n"
        before, quiet = "", 0.0
        while not context.tails.closing:
            # What takes too long now may not the next time.
            with suppress(UserError):
                look = await context.looks.newest(
                    (caller.only, caller.sees_texts), lambda: context.blocking(status_for, context, caller)
                )
                if look.version != before:
                    yield look.event
                    before, quiet = look.version, 0.0
            if quiet >= context.limits.heartbeat:
                yield b": waiting\n\n"
                quiet = 0.0
            await asyncio.sleep(STATUS_SECONDS)
            quiet += STATUS_SECONDS


def _place(asked: str | None, query: Query, kept: KeptAnswer) -> ClientPlace:
    """Where a client begins.

    Raises:
        RequestError: what it asks for is no longer kept, or not of this query.
    """
    if asked == "now":
        return ClientPlace(kept.start, kept.last, 0, True)
    place = ClientPlace(kept.start, kept.start - 1, 0, True) if asked is None else place_of(asked)
    if place is None:
        raise RequestError("request", 400, "this is not the id of an event", "send one that you have got")
    if place.start != kept.start:
        raise _gone("the query has been replaced since", query, kept)
    if place.due < kept.first and kept.first > kept.start:
        raise _gone(f"the changes of epoch {place.due} are no longer kept", query, kept)
    if place.epoch > kept.last:
        raise _gone(f"there is no epoch {place.epoch} yet", query, kept)
    return place


def _gone(why: str, query: Query, kept: KeptAnswer) -> RequestError:
    """Changes that cannot be had, with the answer to start from and the id that goes on after it."""
    path = f"/queries/{quote(query.name, safe='')}"
    begin = {
        "id": str(ClientPlace(kept.start, kept.last, 0, True)),
        "history": f"{path}/history?{urlencode({'as_of': kept.last})}",
        "snapshot": None,
    }
    if BEGINNING < kept.heartbeat < INFINITY:
        at = instant_text(kept.heartbeat - 1, query.domain)
        begin["snapshot"] = f"{path}/snapshot?{urlencode({'at': at, 'as_of': kept.last})}"
    return RequestError(
        "gone", 410, why, "start from the answer in start_from, and go on after its id", {"start_from": begin}
    )
