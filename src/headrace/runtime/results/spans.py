"""The content of an answer over a span of instants, whose ends are given when it is asked for.

PSoup (section 3.3) keeps the answers of standing queries and applies the window of a query to them when it is
invoked. The windows of our queries are part of them; this is a window over what they have answered.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, take_rows
from headrace.errors import UserError
from headrace.history import canonical, clip, content_within, normalise, payload_codes
from headrace.runtime.results.instants import expanded
from headrace.runtime.results.reader import ResultReader
from headrace.time import BEGINNING, INFINITY, format_instant


def next_instant(reader: ResultReader, newest: int) -> int | None:
    """The first instant after that of the answer now: after the newest row, as far as the answer is said.

    It is None while nothing is said.

    Args:
        reader: of the answer.
        newest: the newest timestamp of the rows that were read (instant), BEGINNING if there are none.
    """
    said = max(reader.heartbeat, reader.horizon)
    if said == BEGINNING:
        return None
    newest = INFINITY if newest == BEGINNING else newest
    return max(reader.boundary, min(newest, said - 1)) + 1


def answer_within(reader: ResultReader, begin: int, end: int) -> pa.Table:
    """The content from an instant to before another, sorted as a snapshot is.

    Args:
        reader: of the answer.
        begin, end: the first instant, and the first one after the last.

    Returns:
        Of a stream each of its rows in the span; of other answers the rows that are there at some of its
        instants, each as often as it is at once at most. The table's metadata says `final`, as that of a
        snapshot does.

    Raises:
        UserError: the span is empty, not all of it is said, or kept.
    """
    if begin >= end:
        first, last = (format_instant(at, reader.domain) for at in (begin, end))
        raise UserError(
            f"a span from {first} to before {last} has no instant",
            hint="give the first instant, then a later one, which is the first after the last",
        )
    begin = max(begin, BEGINNING)
    reader.check_said(begin)
    reader.check_said(end - 1)
    if reader.form.steps is None:
        rows = content_within(reader.content(), begin, end)
    else:
        rows = _rows_of_stream(reader, begin, end)
    return reader.content_table(rows, final=end <= reader.heartbeat)


def _rows_of_stream(reader: ResultReader, begin: int, end: int) -> pa.RecordBatch:
    """The rows that a stream yields in a span, sorted by payload."""
    assert reader.form.steps is not None, "it is a stream"
    said = canonical(clip(reader.content(), end))
    there = said.filter(said.te > begin)
    cut = Batch(there.payload, np.maximum(there.ts, begin), there.te, there.w)
    places, _ = expanded(cut, *reader.form.steps)
    rows = normalise(take_rows(cut.payload, places))
    return rows.take(pa.array(np.argsort(payload_codes(rows), kind="stable")))
