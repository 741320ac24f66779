"""The newest part of an answer, as somebody looks at it who then follows the changes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Query
from starlette.responses import Response

from headrace.engine import Query as Answer
from headrace.errors import UserError
from headrace.schema import unique_names
from headrace.server.context import By, Ctx, ServerContext
from headrace.server.events import ClientPlace
from headrace.server.formats import JSON_LINES, written
from headrace.time import BEGINNING

router: Final = APIRouter(tags=["answers"])

_MOST: Final = 10_000
"""So many rows of each part can be asked for."""
_LOOKED_AT: Final = 4
"""So many changes are looked at for each row of the past that is asked for."""
_MEDIA: Final[dict[int | str, dict[str, object]]] = {200: {"content": {"application/json": {}}}}

RowLimit = Annotated[int, Query(ge=0, le=_MOST)]


@router.get("/queries/{name}/recent", response_class=Response, responses=_MEDIA)
async def recent(name: str, context: Ctx, caller: By, rows: RowLimit = 500, past: RowLimit = 0) -> Response:
    """The answer now and the newest rows that were said, each cut to a number of rows.

    `total` is how many rows the answer now has, `id` the event of `/queries/{name}/events` after which those
    are that `past` does not have yet, `note` why there is no answer yet, or null.
    """
    query = context.session.query(name, caller)
    text = await context.blocking(_recent, context, query, rows, past)
    return Response(text, media_type="application/json")


def _recent(context: ServerContext, query: Answer, rows: int, past: int) -> bytes:
    kept = context.session.db.served.kept(query)
    place = ClientPlace(kept.start, kept.last, 0, True)
    history = _past(query, kept.last, past) if past and kept.last >= kept.start else []
    note = None
    try:
        now = query.latest()
        if not now.num_rows and query.heartbeat == BEGINNING:
            note = f"nothing of the answer of {query.name} is final yet (hint: wait for rows)"
    except UserError as error:
        now, note = None, str(error)
    parts = {
        "id": _text(str(place)),
        "note": _text(note),
        "total": str(0 if now is None else now.num_rows),
        "rows": _list([] if now is None else written(now.slice(0, rows), JSON_LINES).decode().splitlines()),
        "past": _list(history),
    }
    return ("{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}").encode()


def _past(query: Answer, epoch: int, most: int) -> list[str]:
    """The newest rows that were said up to an epoch, as JSON."""
    if not query.is_events:
        return _newest(query.changes(epoch), most)
    rows = query.tail(most, epoch)
    instants = rows.column(rows.num_columns - 1)
    payload = rows.select(range(rows.num_columns - 1))
    unit = pa.scalar(1, instants.type if pa.types.is_integer(instants.type) else pa.duration("us"))
    *names, begin, end = unique_names([*payload.column_names, "valid_from", "valid_to"])
    table = pa.table([*payload.columns, instants, pc.add(instants, unit)], [*names, begin, end])
    return written(table, JSON_LINES).decode().splitlines()


def _newest(changes: pa.Table, most: int) -> list[str]:
    """The rows that changes leave, as JSON; those that begin last, in the order in which they begin.

    The history itself ends where the answer is final, and what was said beyond that is not said again by
    later events. Of rows that began long ago some may be missing: only the newest changes are looked at.
    """
    newest = changes.slice(max(0, changes.num_rows - _LOOKED_AT * most))
    # By their places, as a query may have columns of the same names: the epoch is first, the change last.
    rows = written(newest.select(range(1, newest.num_columns - 1)), JSON_LINES).decode().splitlines()
    left: Counter[str] = Counter()
    begins = dict(zip(rows, newest.column(newest.num_columns - 3).to_pylist(), strict=True))
    for row, change in zip(rows, newest.column(newest.num_columns - 1).to_pylist(), strict=True):
        left[row] += change
    kept = sorted((row for row, times in left.items() if times > 0), key=lambda row: begins[row])
    return kept[-most:]


def _list(rows: list[str]) -> str:
    return f"[{', '.join(rows)}]"


def _text(text: str | None) -> str:
    return json.dumps(text)
