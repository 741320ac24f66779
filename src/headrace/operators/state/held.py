"""Elements that wait, in order of their starts, until a heartbeat has passed these.

The runs are sorted by time, so that what is released is the beginning of each. Of a run that is stored, those
are left that its reference counts: its last rows.

Columns: `__t` int64, `__te` int64, `__w` int64, and the payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, Int64Array, concat_rows, empty_columns, integers
from headrace.kernels.rows.sorting import stable_order
from headrace.operators.state.runs import END, TIER, TIME, WEIGHT, SortedRun, is_tier_full

_TIMES = (TIME, END, WEIGHT)


class Held:
    """Elements by the instant at which they start.

    Args:
        runs: the runs of the last commit, from the oldest to the newest.
    """

    def __init__(self, runs: Iterable[SortedRun] = ()) -> None:
        self.runs = list(runs)

    def __len__(self) -> int:
        return sum(run.rows for run in self.runs)

    def keep(self, batches: Sequence[Batch]) -> None:
        """Take in elements."""
        found = [_rows_of(batch) for batch in batches if len(batch)]
        if found:
            self.runs.append(_run(concat_rows(found)))
        while is_tier_full(self.runs):
            merged = [_left(run) for run in self.runs[-TIER:]]
            self.runs[-TIER:] = [_run(concat_rows(merged))]

    def content(self) -> pa.RecordBatch | None:
        """The elements, or None if it holds none."""
        return concat_rows([_left(run) for run in self.runs]) if self.runs else None

    def release(self, until: int) -> list[Batch]:
        """Let go of the elements that start before an instant, and give them."""
        released, runs = [], []
        for run in self.runs:
            if run.first >= until:
                runs.append(run)
                continue
            rows = _left(run)
            times = integers(rows.column(TIME))
            count = int(np.searchsorted(times, until))
            released.append(_batch_of(rows.slice(0, count)))
            if count < len(times):
                runs.append(_rest(run, rows.slice(count), int(times[count])))
        self.runs = runs
        return released


def _left(run: SortedRun) -> pa.RecordBatch:
    """The rows of a run that have not been released."""
    return run.batch.slice(run.batch.num_rows - run.rows)


def _rest(run: SortedRun, rows: pa.RecordBatch, first: int) -> SortedRun:
    """What is left of a run: written again where that is less than half of what is stored."""
    whole = run.batch
    if run.ref is None or 2 * rows.num_rows < whole.num_rows:
        return SortedRun(None, lambda: rows, rows.num_rows, (first, run.last, 0))
    ref = replace(run.ref, rows=rows.num_rows, first=first)
    return SortedRun(ref, lambda: whole, ref.rows, (ref.first, ref.last, ref.reach))


def _run(rows: pa.RecordBatch) -> SortedRun:
    times = integers(rows.column(TIME))
    order = stable_order(times)
    ordered = rows.take(pa.array(order))
    return SortedRun(None, lambda: ordered, len(times), (int(times[order[0]]), int(times[order[-1]]), 0))


def _rows_of(batch: Batch) -> pa.RecordBatch:
    times: dict[str, Int64Array] = dict(zip(_TIMES, (batch.ts, batch.te, batch.w), strict=True))
    columns = [*map(pa.array, times.values()), *batch.payload.columns]
    return pa.RecordBatch.from_arrays(columns, names=[*times, *batch.payload.schema.names])


def _batch_of(rows: pa.RecordBatch) -> Batch:
    names = [name for name in rows.schema.names if name not in _TIMES]
    payload = rows.select(names) if names else empty_columns(rows.num_rows)
    return Batch(payload, *(integers(rows.column(name)) for name in _TIMES))
