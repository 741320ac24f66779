"""What queries have answered, as rows."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from headrace.engine import Query as Answer
from headrace.server.context import By, Ctx
from headrace.server.errors import RequestError
from headrace.server.formats import preferred
from headrace.server.visible import check_sizes

router: Final = APIRouter(tags=["answers"])


class ViewName(StrEnum):
    """What can be read of an answer without an instant."""

    HISTORY = "history"
    CHANGES = "changes"
    STREAM = "stream"
    EPOCHS = "epochs"


@router.get("/queries/{name}/snapshot")
async def snapshot(
    name: str,
    request: Request,
    context: Ctx,
    caller: By,
    at: str | None = None,
    as_of: str | None = None,
    last: str | None = None,
    since: str | None = None,
) -> Response:
    """The content at an instant, or at the last one that is final; as of now, or of an epoch or a time.

    With `last`, a length of time, or `since`, an instant, it is the content over a span that ends there.
    """
    form = preferred(request.headers.get("accept"))
    query = context.session.query(name, caller)

    return await context.answered(lambda: _snapshot(query, at, as_of, last, since), form)


@router.get("/queries/{name}/difference")
async def difference(
    name: str,
    since: str,
    request: Request,
    context: Ctx,
    caller: By,
    as_of: str | None = None,
    at: str | None = None,
) -> Response:
    """How the answer differs from that after an earlier epoch or time; or the content at an instant does."""
    form = preferred(request.headers.get("accept"))
    query = context.session.query(name, caller)
    later, instant = (None if text is None else _number(text) for text in (as_of, at))

    return await context.answered(lambda: query.difference(_number(since), later, instant), form)


@router.get("/queries/{name}/tail")
async def tail(
    name: str,
    request: Request,
    context: Ctx,
    caller: By,
    rows: Annotated[int, Query(ge=0)] = 10,
    as_of: str | None = None,
) -> Response:
    """The newest rows, the newest one last: events with their instants, or the rows that began last."""
    form = preferred(request.headers.get("accept"))
    query = context.session.query(name, caller)
    known = None if as_of is None else _number(as_of)

    return await context.answered(lambda: query.tail(rows, known), form)


@router.get("/streams/{name}/tail")
async def rows_of_stream(
    name: str, request: Request, context: Ctx, caller: By, rows: Annotated[int, Query(ge=0)] = 10
) -> Response:
    """The newest rows of a stream that are kept by RETAIN, the newest one last."""
    form = preferred(request.headers.get("accept"))
    stream = context.session.stream(name, caller)

    return await context.answered(lambda: context.session.db.rows(stream.name, rows), form)


@router.get("/queries/{name}/{view}")
async def answer(
    name: str,
    view: ViewName,
    request: Request,
    context: Ctx,
    caller: By,
    as_of: str | None = None,
    tunings: bool = False,
) -> Response:
    """The answer in one of its forms; as of now, or of an epoch or a time of the clock.

    With `tunings` each row of the history says which sizes its windows within bounds had.
    """
    form = preferred(request.headers.get("accept"))
    query = context.session.query(name, caller)
    known = None if as_of is None else _number(as_of)
    if not tunings:
        return await context.answered(lambda: _view(query, view, known), form)
    if view is not ViewName.HISTORY:
        raise RequestError("request", 400, f"{view} has no sizes of windows", "ask for the history")
    check_sizes(query, caller)
    return await context.answered(lambda: query.history(known, tunings=True), form)


def _view(query: Answer, view: ViewName, as_of: int | str | None) -> pa.Table:
    match view:
        case ViewName.HISTORY:
            return query.history(as_of)
        case ViewName.CHANGES:
            return query.changes(as_of)
        case ViewName.STREAM:
            return query.stream(as_of)
        case ViewName.EPOCHS:
            return query.epochs()


def _snapshot(
    query: Answer, at: str | None, as_of: str | None, last: str | None, since: str | None
) -> pa.Table:
    begin = None if since is None else _number(since)
    if at is None and as_of is None:
        return query.latest(last=last, since=begin)
    if at is None:
        raise RequestError("request", 400, "a snapshot of the past needs an instant", "add at=INSTANT")
    return query.snapshot(_number(at), None if as_of is None else _number(as_of), last=last, since=begin)


def _number(text: str) -> int | str:
    """A number where a text is one that can be an instant or an epoch."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
