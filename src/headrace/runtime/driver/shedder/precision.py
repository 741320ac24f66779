"""How far bounds are from estimates, of what a query has said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.tunings.loss import Loss
from headrace.elements import Batch, Float64Array
from headrace.runtime.driver.shedder.policy import LEAST
from headrace.steps import WHOLE

FIRST: Final = WHOLE * 9 // 10
"""Of so many rows an answer is estimated first, whose bounds tell how many are needed."""
_PART: Final = 0.9
"""Rows are left out as long as bounds are expected to be within this part of what was promised."""


def widest(said: Iterable[Batch], places: Sequence[int], since: int) -> float | None:
    """How far bounds are from their estimates at most, in parts of these.

    Args:
        said: elements of an answer.
        places: those of its estimates, each with its bounds behind it.
        since: the first instant that counts.

    Returns:
        The larger distance of a bound, of all rows in the answer since then; infinity where one has none.
        None where nothing was said, or nothing is estimated.
    """
    parts = (one.filter((one.te > since) & (one.w > 0)) for one in said) if places else ()
    return max((widest_of(part.payload, places) for part in parts if len(part)), default=None)


def widest_of(rows: pa.RecordBatch | pa.Table, places: Sequence[int]) -> float:
    """The largest distance of bounds from estimates, in parts of these; infinity where one has no bounds.

    Args:
        rows: of an answer.
        places: those of its estimates, each with its bounds behind it.
    """
    return max((_widest(rows, place, place + 1, place + 2) for place in places), default=0.0)


def _widest(rows: pa.RecordBatch | pa.Table, *places: int) -> float:
    value, low, high = (_numbers(rows.column(place)) for place in places)
    # Where all rows are kept of which there is a value, or none, nothing is estimated.
    is_exact = (value == low) & (value == high) | np.isnan(value)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.maximum(value - low, high - value) / np.abs(value)
    found = np.where(is_exact, 0.0, np.where(np.isfinite(far), far, np.inf))
    return float(found.max(initial=0.0))


def _numbers(column: pa.Array | pa.ChunkedArray) -> Float64Array:
    """float64[n]: NaN for NULL."""
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))


def least_share(loss: Loss, share: int, width: float | None = None, settled: bool = True) -> int:
    """The smallest share that keeps what was promised of an answer, by what it said last (millionths).

    Where nothing is known of bounds, the share stays as it is; but where all rows are kept some can be left
    out, so that there are bounds.

    Args:
        loss: the promise.
        share: the share that is kept (millionths).
        width: how far bounds are from estimates, in parts of these, with this share; None where no answer of
            this share alone was said yet.
        settled: whether that is of a whole window: until then nobody knows of groups that come seldom, and
            no smaller share keeps the promise.
    """
    if loss.tolerance is None:
        return min(share, LEAST)
    if share == WHOLE:
        return FIRST
    if width is None:
        return share
    if not np.isfinite(width):
        return WHOLE
    found = max(LEAST, loss.least(width, share, _PART))
    # One that holds the promise is not raised for the sake of the reserve.
    found = min(found, share) if width <= float(loss.tolerance) / 100 else found
    return found if settled else max(found, share)
