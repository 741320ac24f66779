"""The bodies of requests: read up to a limit, and rows in them as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.requests import Request

from headrace.errors import SourceError, UserError, message_of
from headrace.runtime.sources import open_source
from headrace.runtime.sources.tables import read_rows
from headrace.runtime.store.temporary import private_folder
from headrace.schema import Schema
from headrace.server.errors import RequestError, too_large
from headrace.server.formats import ARROW, CSV, JSON_LINES, PARQUET

_TEXTS: Final = {JSON_LINES: "json", CSV: "csv"}
"""The formats of rows as text, and what sources call them."""


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request.

    Args:
        request: it.
        limit: how many bytes it may have.

    Raises:
        RequestError: it has more; the rest is not read.
    """
    announced = request.headers.get("content-length", "")
    pieces, size = list[bytes](), int(announced) if announced.isdecimal() else 0
    if size <= limit:
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > limit:
                break
            pieces.append(piece)
    if size > limit:
        raise too_large(f"the request has more than {limit:,} bytes", "send it in several requests")
    return b"".join(pieces)


def media_type(request: Request) -> str:
    """What the body of a request is said to be, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_object(body: bytes) -> dict[str, Any]:
    """A body that is a JSON object.

    Raises:
        RequestError: it is not.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RequestError("request", 400, "the body is not a JSON object")
    return found


def text_field(found: dict[str, Any], name: str) -> str:
    """A text in a JSON object.

    Raises:
        RequestError: it is missing, or cannot be text.
    """
    value = found.get(name)
    if not isinstance(value, str) or not _is_unicode(value):
        raise RequestError("request", 400, f"the body has no text {name}", f'send {{"{name}": "..."}}')
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def table_of(body: bytes, kind: str, stream: str, schema: Schema, limit: int) -> pa.Table:
    """The rows in a body.

    Args:
        body: it.
        kind: its media type.
        stream: the stream they are for.
        schema: its columns.
        limit: how many bytes the rows may have once they are unpacked.

    Raises:
        UserError: a row cannot be read; nothing of the body counts then.
        RequestError: the media type is not one of rows, or the rows are too large.
    """
    if kind in _TEXTS:
        return _read_text(body, _TEXTS[kind], stream, schema)
    if kind not in (ARROW, PARQUET):
        raise RequestError(
            "unsupported_media_type", 415, f"rows are not sent as '{kind}'",
            f"send them as {', '.join((*_TEXTS, ARROW, PARQUET))}",
        )  # fmt: skip
    try:
        return _unpacked(body, kind, limit)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"the body cannot be read as {kind}: {message_of(error)}") from error


def _read_text(body: bytes, form: str, stream: str, schema: Schema) -> pa.Table:
    if not body.strip():
        return schema.arrow().empty_table()
    with TemporaryDirectory(dir=private_folder(), prefix="request-") as folder:
        (Path(folder) / "body").write_bytes(body)
        source = open_source(form, {"path": "body"}, schema, None, stream, Path(folder))
        rows, rejected = read_rows(source, schema)
    if rejected:
        first = rejected[0]
        more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
        raise UserError(
            f"these rows do not fit {stream}: line {first.place.rpartition(':')[2]}: {first.reason}{more}",
            hint=f"its columns are {schema}; none of the rows was taken",
        )
    return pa.Table.from_batches([rows])


def _unpacked(body: bytes, kind: str, limit: int) -> pa.Table:
    if kind == ARROW:
        with pa.ipc.open_stream(body) as reader:
            return _collected(reader, reader.schema, limit)
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        return _collected(file.iter_batches(), file.schema_arrow, limit)


def _collected(batches: Iterable[pa.RecordBatch], schema: pa.Schema, limit: int) -> pa.Table:
    """Batches as a table, checked so that nothing later reads beyond a buffer."""
    found, size = list[pa.RecordBatch](), 0
    for batch in batches:
        batch.validate(full=True)
        size += batch.nbytes
        if size > limit:
            raise too_large(f"the rows have more than {limit:,} bytes", "send them in several requests")
        found.append(batch)
    return pa.Table.from_batches(found, schema)
