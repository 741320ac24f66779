"""The newest part of an answer, as somebody looks at it who then follows the changes."""

from __future__ import annotations

import json
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Query
from starlette.responses import Response

from headrace.engine import Query as Answer
from headrace.errors import UserError
from headrace.server.context import By, Context, Ctx
from headrace.server.events import Place
from headrace.server.formats import JSON_LINES, written

router: Final = APIRouter(tags=["answers"])

_MOST: Final = 10_000
"""So many rows of each part can be asked for."""
_MEDIA: Final[dict[int | str, dict[str, object]]] = {200: {"content": {"application/json": {}}}}

Rows = Annotated[int, Query(ge=0, le=_MOST)]


@router.get("/queries/{name}/recent", response_class=Response, responses=_MEDIA)
async def recent(name: str, context: Ctx, caller: By, rows: Rows = 500, past: Rows = 0) -> Response:
    """The answer now and the newest rows of the history, each cut to a number of rows.

    `total` is how many rows the answer now has, `id` the event of `/queries/{name}/events` up to which the
    history is, `note` why there is no answer yet, or null.
    """
    query = context.session.query(name, caller)
    text = await context.blocking(_recent, context, query, rows, past)
    return Response(text, media_type="application/json")


def _recent(context: Context, query: Answer, rows: int, past: int) -> bytes:
    kept = context.session.db.served.kept(query)
    place = Place(kept.start, kept.last, 0, True)
    history = _newest(query.history(kept.last), past) if past and kept.last >= kept.start else None
    note = None
    try:
        now = query.latest()
    except UserError as error:
        now, note = None, str(error)
    parts = {
        "id": _text(str(place)),
        "note": _text(note),
        "total": str(0 if now is None else now.num_rows),
        "rows": _list(None if now is None else now.slice(0, rows)),
        "past": _list(history),
    }
    return ("{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}").encode()


def _newest(history: pa.Table, most: int) -> pa.Table:
    """The rows of a history that begin last, in the order in which they begin."""
    if history.num_rows > most:
        newest = pc.select_k_unstable(history, most, [("valid_from", "descending")])
        history = history.take(newest)
    return history.sort_by("valid_from")


def _list(table: pa.Table | None) -> str:
    """Rows as a JSON list, written as everywhere."""
    return "[]" if table is None else f"[{', '.join(written(table, JSON_LINES).decode().splitlines())}]"


def _text(text: str | None) -> str:
    return json.dumps(text)
