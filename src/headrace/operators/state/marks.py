"""Marks: what a run's changes add up to before every so many of them, so that few have to be added up.

The changes of a key up to an instant are a range of the run's index by (key hash, time). Their sum is that of
one mark less that of another, and of what lies between the marks and the ends of the range.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.elements import LIMB, Int64Array, integers, limbs_of
from headrace.kernels.instants.schedule import sums_at_marks
from headrace.kernels.instants.timeline import add_by_code
from headrace.operators.state.runs import SortedRun
from headrace.operators.state.sum_columns import SumColumns, sums_of

STRIDE: Final = 64
"""So many rows lie between two marks."""
_MARKS: Final = b"marks"
"""Where they are in a schema's metadata: int64[m, c], for the sums of a layout and then the limbs."""


def marked(rows: pa.RecordBatch, ints: tuple[str, ...], order: npt.NDArray[np.int32]) -> pa.RecordBatch:
    """The rows of a run with marks.

    Args:
        rows: the rows; no two of their keys have one hash.
        ints: the columns that are added up, besides limbs.
        order: int32[n], the rows by (hash, time).
    """
    columns = [integers(rows.column(name)) for name in (*ints, *limbs_of(rows))]
    return with_marks(rows, sums_at_marks(order, np.stack(columns), STRIDE))


def with_marks(rows: pa.RecordBatch, marks: Int64Array) -> pa.RecordBatch:
    """The rows of a run with marks that are known; int64[m, c]."""
    return rows.replace_schema_metadata({_MARKS: marks.tobytes()})


def is_marked(run: SortedRun) -> bool:
    """Whether a run has marks."""
    return _MARKS in run.beside


def range_sums(run: SortedRun, ints: tuple[str, ...], lows: Int64Array, highs: Int64Array) -> SumColumns:
    """The sums of ranges of the index of a run that has marks.

    Args:
        run: the run.
        ints: the columns that are added up, besides limbs.
        lows, highs: int64[r], each range in `run.order`.

    Returns:
        Of each range, r rows.
    """
    limbs = tuple(name for name in run.names if name.startswith(LIMB))
    marks = np.frombuffer(run.beside[_MARKS], dtype=np.int64).reshape(-1, len(ints) + len(limbs))
    first, last = lows // STRIDE, highs // STRIDE
    far = first < last
    # From mark to mark, less what lies before the range, and what lies behind the last mark.
    starts = np.concatenate([np.where(far, first * STRIDE, lows), last[far] * STRIDE])
    ends = np.concatenate([np.where(far, lows, highs), highs[far]])
    ranges = np.concatenate([np.arange(len(lows)), np.flatnonzero(far)])
    signs = np.concatenate([np.where(far, -1, 1), np.ones(np.count_nonzero(far), dtype=np.int64)])
    places, rows = spread(starts, ends)
    found = sums_of(run.take(run.order[rows], (*ints, *limbs)), ints)
    added = add_by_code(ranges[places], found.values * signs[places][:, None], len(lows))
    added[far] += marks[last[far]] - marks[first[far]]
    return SumColumns(added, found.limbs)


def spread(starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The numbers of ranges, one after the other, each with the range that it is of; int64[n] each."""
    sizes = ends - starts
    places = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    return places, starts[places] + np.arange(len(places)) - first[places]
