"""Rows that are sent to streams."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from headrace.engine.inputs.times import instant_of
from headrace.errors import BusyError, EndedError, UserError
from headrace.limits import untimed_seconds
from headrace.server.access import Caller, unauthorized
from headrace.server.bodies import inflated, json_object, media_type, read_body, table_of
from headrace.server.context import By, Ctx, Sender, ServerContext
from headrace.server.errors import RequestError
from headrace.server.formats import ARROW, CSV, JSON, JSON_LINES, PARQUET
from headrace.server.keys import Role

router: Final = APIRouter(tags=["rows"])

_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_ROWS: Final = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_LINES: {"schema": {"type": "string"}},
            JSON: {"schema": {}},
            CSV: {"schema": {"type": "string"}},
            ARROW: _BINARY,
            PARQUET: _BINARY,
        },
    }
}


@router.post("/streams/{name}/rows", openapi_extra=_ROWS, responses={202: {}, 413: {}, 429: {}})
async def add_rows(
    name: str,
    request: Request,
    context: Ctx,
    sender: Sender,
    wait: bool = True,
    producer: str | None = None,
    sequence: int | None = None,
) -> JSONResponse:
    """Add rows to a stream created FROM push; answered when they are committed.

    With `wait=false` the answer comes at once, and says nothing of what becomes of the rows. With a producer
    and a sequence number that grows, rows that are sent again are taken once. A stream that has a signature
    takes signed rows from those who have no key.
    """
    session, limit = context.session, context.limits.request_bytes
    caller, body = await _sent_by(sender, name, request, context)
    caller.check(Role.WRITE)
    info = session.pushed(name, caller)
    kind = media_type(request)
    coding = request.headers.get("content-encoding", "")

    def push() -> tuple[pa.Table, int, Future[bool]]:
        plain = inflated(body, coding, limit)
        found = table_of(plain, kind, info.name, info.sent, limit, session.db.served.omissible(info.name))
        return found, *session.push(info.name, found, caller, producer, sequence)

    rows, epoch, done = await context.blocking(push)
    if not wait:
        return JSONResponse(_answer(False, rows.num_rows), 202)
    if not await _committed(done, context.limits.seconds):
        return JSONResponse({**_answer(True, 0), "repeat": True})
    if not session.has_letters_after(epoch):
        return JSONResponse(_answer(True, rows.num_rows))
    letters = await context.blocking(session.letters_of, info.name, rows, epoch, caller)
    return JSONResponse(_answer(True, rows.num_rows, letters))


@router.post("/streams/{name}/heartbeat")
async def add_heartbeat(name: str, request: Request, context: Ctx, caller: By) -> dict[str, Any]:
    """Say that a stream brings no row below an instant any more, `{"at": ...}`."""
    caller.check(Role.WRITE)
    info = context.session.pushed(name, caller)
    at = json_object(await read_body(request, context.limits.request_bytes)).get("at")
    if not isinstance(at, int | str) or isinstance(at, bool):
        hint = 'send {"at": 12}, or the text of a TIMESTAMP'
        raise RequestError("request", 400, "the body has no instant at", hint)
    await context.blocking(context.session.db.heartbeat, info.name, instant_of(at, info.domain))
    return {"committed": True}


async def _sent_by(
    sender: Caller | None, name: str, request: Request, context: ServerContext
) -> tuple[Caller, bytes]:
    """Who sends rows, and the body; where a stream has signed rows, its signature stands for a key.

    Raises:
        RequestError: there is no key, and the rows are not signed with the stream's secret.
    """
    signature = None if sender is not None and sender.key else context.session.db.served.signature(name)
    limit = context.limits.request_bytes
    if signature is None:
        if sender is None:
            raise unauthorized("a key is needed")
        return sender, await read_body(request, limit)
    body = await read_body(request, limit)
    headers = {header.lower(): value for header, value in request.headers.items()}
    if not signature.holds(headers, body, time.time()):
        hint = f"{signature.header} has the HMAC with SHA-256 of the body under the stream's secret"
        raise unauthorized(f"these rows are not signed for {name}, and no key was sent", hint)
    return Caller(f"{signature.header} of {name}", Role.WRITE, frozenset([name.lower()])), body


async def _committed(done: Future[bool], seconds: float) -> bool:
    """Whether rows are committed; False for a repeat.

    Raises:
        EndedError: their epoch has failed; the run may go on later.
        RequestError: their epoch takes longer.
    """
    waiting = asyncio.wrap_future(done)
    counted = untimed_seconds()
    ended, left = (await asyncio.wait([waiting], timeout=seconds))[0], untimed_seconds() - counted
    while not ended and left > 0:
        # Kernels were compiled meanwhile, which is done once for everybody.
        counted += left
        ended, left = (await asyncio.wait([waiting], timeout=left))[0], untimed_seconds() - counted
    if not ended:
        waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise RequestError(
            "timeout", 504, f"the epoch of the rows takes longer than {seconds:g} seconds",
            "they may still be taken; with a producer and a sequence number, send them again",
        )  # fmt: skip
    try:
        return waiting.result()
    except (BusyError, EndedError):
        raise
    except UserError as error:
        # The rows fitted: it is the epoch, or what it needs, that failed.
        raise EndedError(f"the rows were not taken: {error.message}", hint=error.hint) from error


def _answer(committed: bool, rows: int, letters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"committed": committed, "rows": rows, "dead_letters": letters or []}
