"""One and the same live values in both forms in which areas keep them: as elements, and as changes of counts.

Where nothing is ever retracted, an area keeps elements, each with its end, so that it can forget those that
no longer matter. Elsewhere it keeps at which instants how many copies of a value come and go.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.operators.state.keys import encode_keys, hash_rows, order_by
from headrace.operators.state.live_elements import COUNT
from headrace.operators.state.runs import END, HASH, TIME
from headrace.operators.state.sweep_area import SweepArea
from headrace.time import BEGINNING, INFINITY


def copy_values(source: SweepArea, target: SweepArea, heartbeat: int) -> None:
    """Fill an empty area with the values of another one, which may keep them in the other form.

    Args:
        source: the area that has them.
        target: the area that is to have them.
        heartbeat: what has ended before it, need not be known any more (instant).
    """
    by_elements = [END in area.layout.same for area in (source, target)]
    if by_elements[0] == by_elements[1]:
        target.runs = list(source.runs)
        return
    rows = source.content()
    if rows is not None:
        target.insert(_as_counts(rows) if by_elements[0] else _as_elements(rows, heartbeat))


def _as_counts(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """Elements as the instants at which their copies come and go."""
    starts, ends, counts = (integers(rows.column(name)) for name in (TIME, END, COUNT))
    over = np.flatnonzero(ends != INFINITY)
    places = pa.array(np.concatenate([np.arange(len(starts)), over]))
    columns = {
        TIME: pa.array(np.concatenate([starts, ends[over]])),
        COUNT: pa.array(np.concatenate([counts, -counts[over]])),
    }
    return columns | {name: rows.column(name).take(places) for name in _values(rows)}


def _as_elements(rows: pa.RecordBatch, heartbeat: int) -> dict[str, pa.Array]:
    """Copies that come and go as elements: one from each instant at which something changes to the next."""
    times, changes = integers(rows.column(TIME)), integers(rows.column(COUNT))
    identity = [rows.column(name) for name in _values(rows) if name != HASH]
    codes = encode_keys(identity, hash_rows(identity, len(times)))
    order = order_by(codes.codes, times, len(codes))
    code, starts = codes.codes[order], times[order]
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = code[1:] != code[:-1]
    ends = np.where(last, INFINITY, np.append(starts[1:], INFINITY))
    counts = _running(changes[order], last)
    # The last instant below the heartbeat stays: its answer may have to be taken back.
    starts = np.maximum(starts, max(heartbeat - 1, BEGINNING))
    kept = np.flatnonzero((counts > 0) & (starts < ends))
    places = pa.array(order[kept])
    columns = {
        TIME: pa.array(starts[kept]),
        END: pa.array(ends[kept]),
        COUNT: pa.array(counts[kept]),
    }
    return columns | {name: rows.column(name).take(places) for name in _values(rows)}


def _running(changes: Int64Array, last: np.ndarray) -> Int64Array:
    """The sums of the changes so far, which begin anew after each that is the last of its value."""
    sums = np.cumsum(changes)
    before = np.concatenate([[0], sums[np.flatnonzero(last)]])
    group = np.concatenate([[0], np.cumsum(last)[:-1]])
    return np.asarray(sums - before[group], dtype=np.int64)


def _values(rows: pa.RecordBatch) -> list[str]:
    """The columns that say which value of which key a row is for."""
    return [name for name in rows.schema.names if name not in (TIME, END, COUNT)]
