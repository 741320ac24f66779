"""The bodies of requests: read up to a limit, and rows in them as tables."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.requests import Request

from headrace.errors import SourceError, UserError, message_of
from headrace.runtime.intake.given_rows import Omissible
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.tables import read_rows
from headrace.runtime.sources.text.blocks import Block, TextPart
from headrace.runtime.sources.text.json import parse_block
from headrace.runtime.store.temporary import private_folder
from headrace.schema import Schema
from headrace.server.errors import RequestError, too_large
from headrace.server.formats import ARROW, CSV, JSON, JSON_LINES, PARQUET
from headrace.server.limits import RequestLimits
from headrace.server.packed.arrow import count_arrow
from headrace.server.packed.batches import collected
from headrace.server.packed.gzip import gunzipped
from headrace.server.packed.parquet import counted
from headrace.server.packed.unpacked_size import UnpackedSize
from headrace.server.turns import HOLDING

_SMALL: Final = 1_000_000
"""A body of so many bytes is parsed as one block."""
_HEAD: Final = 65_536
"""So many bytes of a body are looked at to see which columns its rows have."""
_TEXTS: Final = {JSON_LINES: "json", JSON: "json", CSV: "csv"}
"""The formats of rows as text, and what sources call them."""


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request.

    Args:
        request: it.
        limit: how many bytes it may have.

    Raises:
        RequestError: it has more; the rest is not read. Or there is no memory for it now.
    """
    held = HOLDING.get()
    announced = request.headers.get("content-length", "")
    pieces, announced_size = list[bytes](), int(announced) if announced.isdecimal() else 0
    size = announced_size
    if size <= limit:
        await held.have(size)
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > limit:
                break
            await held.have(max(size, announced_size))
            pieces.append(piece)
    if size > limit:
        raise too_large(f"the request has more than {limit:,} bytes", "send it in several requests")
    return b"".join(pieces)


async def read_text(request: Request, limits: RequestLimits) -> bytes:
    """The body of a request that is a text to be parsed, for which a lower limit holds than for rows.

    Raises:
        RequestError: it has more; the rest is not read.
    """
    return await read_body(request, min(limits.request_bytes, limits.text_bytes))


def inflated(body: bytes, coding: str, limit: int) -> bytes:
    """A body as it was before it was packed for the way.

    Args:
        body: as it came.
        coding: the header Content-Encoding.
        limit: how many bytes it may have.

    Raises:
        RequestError: it has more, is damaged, or is packed in another way than gzip.
    """
    codings = [name for part in coding.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if not codings:
        return body
    if codings not in (["gzip"], ["x-gzip"]):
        raise RequestError(
            "unsupported_media_type",
            415,
            f"bodies are not unpacked from '{coding}'",
            "send them plain or by gzip",
        )
    return gunzipped(body, limit)


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


def table_of(
    body: bytes, kind: str, stream: str, schema: Schema, limit: int, omissible: Omissible | None = None
) -> pa.Table:
    """The rows in a body.

    Args:
        body: it.
        kind: its media type.
        stream: the stream they are for.
        schema: its columns.
        limit: how many bytes the rows may have once they are unpacked.
        omissible: which columns may be left out; None for none.

    Raises:
        UserError: a row cannot be read; nothing of the body counts then.
        RequestError: the media type is not one of rows, or the rows are too large.
    """
    if omissible is not None:
        omissible.check_unknown(names_in(body, kind), schema, stream)
    if kind in _TEXTS:
        return _read_changes(body, _TEXTS[kind], stream, schema, omissible)
    if kind not in (ARROW, PARQUET):
        raise RequestError(
            "unsupported_media_type", 415, f"rows are not sent as '{kind}'",
            f"send them as {', '.join((*_TEXTS, ARROW, PARQUET))}",
        )  # fmt: skip
    try:
        return _unpacked(body, kind, schema, limit)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"the body cannot be read as {kind}: {message_of(error)}") from error


def names_in(body: bytes, kind: str) -> list[str]:
    """The columns that a text begins with: of its header, or of its first object; none if none is seen."""
    form = _TEXTS.get(kind)
    text = body[:_HEAD].lstrip()
    try:
        if form == "csv":
            return next(csv.reader([text.partition(b"\n")[0].decode()]), [])
        if form == "json":
            first, _ = json.JSONDecoder().raw_decode(text.removeprefix(b"[").lstrip().decode(errors="ignore"))
            return list(first) if isinstance(first, dict) else []
    except (ValueError, RecursionError, csv.Error):
        # Whoever reads the text says what is wrong with it.
        return []
    return []


def _read_changes(
    body: bytes, form: str, stream: str, schema: Schema, omissible: Omissible | None
) -> pa.Table:
    """The rows of a text, which may lack columns as `omissible` says."""
    try:
        return _read_text(body, form, stream, schema)
    except SourceError as error:
        if omissible is None or (error.hint or "").startswith("did you mean"):
            raise
        _read_text(body, form, stream, Schema(tuple(one for one in schema if one.name in omissible.needed)))
        return _read_text(body, form, stream, schema, missing="some")


def _read_text(body: bytes, form: str, stream: str, schema: Schema, **options: str) -> pa.Table:
    if not body.strip():
        return schema.arrow().empty_table()
    if form == "json" and (lines := plain_lines(body, schema)) is not None:
        return lines
    with TemporaryDirectory(dir=private_folder(), prefix="request-") as folder:
        (Path(folder) / "body").write_bytes(body)
        source = open_source(form, {"path": "body", **options}, schema, None, stream, Path(folder))
        rows, rejected = read_rows(source, schema)
    if rejected:
        first = rejected[0]
        more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
        raise UserError(
            f"these rows do not fit {stream}: line {first.place.rpartition(':')[2]}: {first.reason}{more}",
            hint=f"its columns are {schema}; none of the rows was taken",
        )
    return pa.Table.from_batches([rows])


def plain_lines(body: bytes, schema: Schema) -> pa.Table | None:
    """The rows of a small body as most are: an object per line, the first with all columns by their names.

    None where that is not so, or where a row cannot be read: it takes longer to see how a file is written.
    """
    if len(body) > _SMALL or body[:1] != b"{":
        return None
    try:
        first = json.loads(body.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    if not all(name in first for name in schema.names):
        return None
    nowhere = TextPart(Path(os.devnull), "", len(body), 0)
    read = parse_block(Block(nowhere, 0, body), schema)
    return None if read.rejected else pa.Table.from_batches([read.rows])


def _unpacked(body: bytes, kind: str, schema: Schema, limit: int) -> pa.Table:
    if kind == ARROW:
        count_arrow(body, UnpackedSize(limit))
        with pa.ipc.open_stream(body) as reader:
            return collected(reader, reader.schema, len(schema), limit)
    options = {"coerce_int96_timestamp_unit": "us"}
    with pq.ParquetFile(pa.BufferReader(body), **options) as file:
        pages = counted(file, body, limit)
    # Texts stay numbers of a dictionary until their size is known: a small file may repeat a large one.
    with pq.ParquetFile(pa.BufferReader(body), read_dictionary=pages.texts, **options) as file:
        # Group by group: Arrow joins no nested dictionaries.
        groups = range(file.num_row_groups)
        batches = (one for group in groups for one in file.iter_batches(pages.rows_at_once, [group]))
        found = collected(batches, file.schema_arrow, len(schema), limit)
        if found.num_rows != file.metadata.num_rows:
            raise ValueError(f"it says that it has {file.metadata.num_rows} rows, and has {found.num_rows}")
        return found
