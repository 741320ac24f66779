"""Tables as responses, in the format that the client prefers."""

from __future__ import annotations

import io
from typing import Final

import pyarrow as pa

from headrace.runtime.writing.tables import write_table
from headrace.server.errors import RequestError, too_large
from headrace.server.limits import RequestLimits

JSON_LINES: Final = "application/x-ndjson"
JSON: Final = "application/json"
CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"

FORMATS: Final = (JSON_LINES, CSV, ARROW)
"""What answers are written as; the first one where the client does not mind."""


def preferred(accept: str | None) -> str:
    """The format that a header Accept asks for.

    Raises:
        RequestError: it allows none of them.
    """
    best, chosen = 0.0, None
    for part in (accept or "*/*").split(","):
        name, _, parameters = part.strip().partition(";")
        quality = _quality(parameters)
        matching = next((known for known in FORMATS if _matches(name.strip().lower(), known)), None)
        if matching is not None and quality > best:
            best, chosen = quality, matching
    if chosen is None:
        raise RequestError("not_acceptable", 406, "rows are not written so", f"ask for {', '.join(FORMATS)}")
    return chosen


def _matches(asked: str, known: str) -> bool:
    main = known.partition("/")[0]
    return asked in (known, f"{main}/*", "*/*") or (asked == JSON and known == JSON_LINES)


def _quality(parameters: str) -> float:
    for part in parameters.split(";"):
        name, _, value = part.strip().partition("=")
        if name.lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def written(table: pa.Table, form: str) -> bytes:
    """A table in one of `FORMATS`; TIMESTAMPs in text are ISO 8601 in UTC."""
    if form == ARROW:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())
    text = io.BytesIO()
    write_table(table, "jsonl" if form == JSON_LINES else "csv", text)
    return text.getvalue()


def check_size(table: pa.Table, limits: RequestLimits) -> pa.Table:
    """The table, if it is not over a limit.

    Raises:
        RequestError: it is.
    """
    hint = "ask for a snapshot, for changes since an epoch, or for less with POST /ask"
    if table.num_rows > limits.result_rows:
        raise too_large(f"the answer has {table.num_rows:,} rows, more than {limits.result_rows:,}", hint)
    if table.nbytes > limits.result_bytes:
        raise too_large(f"the answer has {table.nbytes:,} bytes, more than {limits.result_bytes:,}", hint)
    return table
