"""What may come next in a statement that is being written."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request

from headrace.engine.inputs.options import FORMATS, SINKS
from headrace.language.catalog import DerivedStream, StreamInfo
from headrace.language.completion.candidates import KnownNames, candidates
from headrace.schema import Schema
from headrace.server.access import Caller
from headrace.server.bodies import json_object, read_text, text_field
from headrace.server.context import By, Ctx, ServerContext
from headrace.server.errors import RequestError

router: Final = APIRouter(tags=["statements"])

_SHOWN: Final = 50
"""So many candidates are answered; one who wants others writes a letter more."""
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["text", "at"],
                    "properties": {"text": {"type": "string"}, "at": {"type": "integer", "minimum": 0}},
                }
            }
        },
    }
}


@router.post("/completions", openapi_extra=_BODY)
async def completions(request: Request, context: Ctx, caller: By) -> dict[str, Any]:
    """The words, functions, streams, columns and queries that fit at a place of a text, best first.

    `at` and the `start` of the answer are offsets in characters; what is between them is the word that is
    being written.
    """
    found = json_object(await read_text(request, context.limits))
    text, at = text_field(found, "text"), found.get("at")
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at <= len(text):
        raise RequestError("request", 400, "the body has no offset at", 'send {"text": "...", "at": 12}')
    start, fitting = await context.blocking(lambda: candidates(text, at, _known(context, caller)))
    shown = [{"text": one.text, "what": one.what} for one in fitting[:_SHOWN]]
    return {"start": start, "candidates": shown}


def _known(context: ServerContext, caller: Caller) -> KnownNames:
    """The names that somebody may see, with their columns."""
    db = context.session.db
    return KnownNames(
        {one.name: _names(_schema(one)) for one in db.streams.values() if caller.sees(one.name)},
        {one.name: _names(one.schema) for one in db.relations.values() if caller.sees(one.name)},
        {one.name: _names(one.schema) for one in db.queries if caller.sees(one.name)},
        sinks=tuple(one.name for one in db.served.sinks if caller.sees(one.query)),
        formats=FORMATS,
        kinds_of_sinks=SINKS,
    )


def _schema(stream: StreamInfo | DerivedStream) -> Schema:
    return stream.schema if isinstance(stream, StreamInfo) else stream.plan.schema


def _names(schema: Schema) -> tuple[str, ...]:
    return tuple(schema.names)
