"""The newest rows of an answer: of a stream of events read from its newest epochs back."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, Int64Array, concat
from headrace.history import canonical, clip
from headrace.operators.state.netting import netted
from headrace.runtime.results.instants import expanded
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.release import Release
from headrace.time import INFINITY

_FIRST: Final = 8
"""So many epochs are read at first."""
_MORE: Final = 4
"""So many times as many the next time, while there are too few rows in them."""


def newest_rows(reader: ResultReader, most: int) -> pa.Table:
    """The rows that begin last, as far as the answer is said; the newest one is the last.

    Args:
        reader: of the answer.
        most: so many of them.

    Returns:
        Of a stream of events the form of `stream`, else that of `history`.
    """
    if reader.form.is_events:
        return _newest_events(reader, most)
    said = canonical(clip(reader.content(), max(reader.heartbeat, reader.horizon)))
    begin = max(0, len(said) - most)
    return reader.history_table(said.slice(begin, len(said) - begin))


def _newest_events(reader: ResultReader, most: int) -> pa.Table:
    epochs, first = reader.epochs, reader.first
    oldest = next((place for place, part in enumerate(epochs) if part.epoch >= first), len(epochs))
    number = _FIRST
    while (place := max(oldest, len(epochs) - number)) > oldest:
        rows, instants = _events_of(_said_since(reader, place))
        # Older epochs have said nothing from there on; where they may have said all, the newest go first.
        reach = epochs[place - 1].reach(reader.query)
        known = len(instants) if reach == INFINITY else int((instants >= reach).sum())
        if known >= most:
            break
        number *= _MORE
    else:
        rows, instants = _events_of(reader.content())
    begin = max(0, len(instants) - most)
    return reader.stream_table(rows.slice(begin, len(instants) - begin), instants[begin:])


def _said_since(reader: ResultReader, place: int) -> Batch:
    """Rows that the epochs from a place on have released, of which some may have been yielded before."""
    begin = reader.epochs[place]
    since = begin.since.get(reader.query, begin.epoch)
    release, found = Release(reader.form.schema), list[Batch]()
    for part in reader.epochs:
        if part.epoch >= since:
            batch = reader.release(release, part)
            if part.epoch >= begin.epoch:
                found.append(batch)
    return concat(reader.form.schema, found)


def _events_of(said: Batch) -> tuple[Batch, Int64Array]:
    """The events that elements leave, and the instant of each, in order of these."""
    left = netted(said)
    left = left.take(np.repeat(np.arange(len(left)), np.maximum(left.w, 0)))
    rows, instants = expanded(left, 1, 0)
    order = np.argsort(instants, kind="stable")
    return left.take(rows[order]), instants[order]
