"""Statements in, results out; and questions that are asked once."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from headrace.language.named_values import ParameterValue
from headrace.language.sent_values import received_values
from headrace.server.bodies import json_object, media_type, read_text, text_field
from headrace.server.context import By, Ctx, ServerContext
from headrace.server.errors import RequestError
from headrace.server.formats import preferred

router: Final = APIRouter()

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
_STATEMENTS: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string"},
                        "parameters": {"type": "object"},
                        "base": {"type": "null"},
                    },
                }
            },
            **_TEXT,
        },
    }
}
_QUESTION: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["sql"],
                    "properties": {"sql": {"type": "string"}, "parameters": {"type": "object"}},
                }
            },
            **_TEXT,
        },
    }
}


@router.post("/statements", openapi_extra=_STATEMENTS, tags=["statements"])
async def carry_out(request: Request, context: Ctx, caller: By) -> dict[str, Any]:
    """Carry out statements separated by semicolons; one result for each."""
    text, values = await _text(request, context, "text")
    return {"results": await context.blocking(context.session.carry_out, text, caller, values)}


@router.post("/ask", openapi_extra=_QUESTION, tags=["answers"])
async def ask(request: Request, context: Ctx, caller: By) -> Response:
    """The rows of a question that is asked once, in DuckDB's SQL."""
    form = preferred(request.headers.get("accept"))
    question, values = await _text(request, context, "sql")
    asked = partial(context.session.ask, question, caller, values)
    return await context.answered(asked, form, context.limits.question_bytes)


async def _text(
    request: Request, context: ServerContext, field: str
) -> tuple[str, dict[str, ParameterValue] | None]:
    """The text of a request, plain or a field of a JSON object, and the values of its parameters."""
    body = await read_text(request, context.limits)
    match media_type(request):
        case "text/plain":
            try:
                return body.decode(), None
            except UnicodeDecodeError:
                raise RequestError("request", 400, "the body is not UTF-8 text") from None
        case "application/json" | "":
            found = json_object(body)
            if found.get("base") is not None:
                raise RequestError(
                    "request", 400, "the base of paths is the server's", "leave it out, or send null"
                )
            return text_field(found, field), received_values(found.get("parameters"))
        case other:
            raise RequestError(
                "unsupported_media_type", 415, f"'{other}' is not taken here",
                "send application/json or text/plain",
            )  # fmt: skip
