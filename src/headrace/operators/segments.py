"""From points to elements: the recompute rule of timeline operators.

`emit(new) - emit(old)` from the first changed instant on, and nothing else: what an
operator emitted for a key is its base value up to `covered`; what it emits now are the values of the points,
the last of them open up to the next known endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array
from headrace.operators.keys import equal_rows, normalise
from headrace.operators.timeline import Points
from headrace.time import BEGINNING


@dataclass(frozen=True, eq=False)
class Segments:
    """Elements by reference to evaluated rows.

    Attributes:
        rows: int64[n]: a point 0..m-1, or m + k for the base value of key k.
        ts, te, w: int64[n], the elements' intervals and signs.
    """

    rows: Int64Array
    ts: Int64Array
    te: Int64Array
    w: Int64Array


def emit_segments(
    points: Points, values: list[pa.Array], coalesce: bool, present: BoolArray | None = None
) -> Segments:
    """The elements that turn what was emitted into what holds now.

    Args:
        points: the touched keys' points.
        values: the operator's value columns, m rows for the points, then k rows for the bases.
        coalesce: leave out points at which no value changes; not for streams that promise chronons.
        present: where there is something to emit, m rows for the points, then k rows for the bases; None for
            where a row is left.
    """
    count = len(points.codes)
    if present is None:
        present = np.concatenate([points.ints[:, 0] > 0, points.base_ints[:, 0] > 0])
    kept = np.arange(count)
    if coalesce:
        kept = np.flatnonzero(_changed(points, values, present))
    ends = _ends(points, kept)
    open_rows = present[kept] & (points.times[kept] < ends)
    news = kept[open_rows]
    first_change = _first_change(points, kept)
    bases = np.flatnonzero(present[count:] & (points.covered != first_change) & (points.covered != BEGINNING))
    covered, change = points.covered[bases], first_change[bases]
    return Segments(
        np.concatenate([count + bases, news]),
        np.concatenate([np.minimum(covered, change), points.times[news]]),
        np.concatenate([np.maximum(covered, change), ends[open_rows]]),
        np.concatenate([np.where(change < covered, -1, 1), np.ones(len(news), dtype=np.int64)]),
    )


def previous_rows(points: Points) -> Int64Array:
    """The row that holds before each point: the previous point of its key, or its base; int64[m]."""
    count = len(points.codes)
    before = np.arange(count) - 1
    fresh = np.diff(points.codes, prepend=-1) != 0
    return np.where(fresh, count + points.codes, before)


def _changed(points: Points, values: list[pa.Array], present: BoolArray) -> BoolArray:
    before = previous_rows(points)
    rows = np.arange(len(points.codes))
    clean = [normalise(column) for column in values]
    same = equal_rows(clean, rows, clean, before)
    both = present[rows] & present[before]
    changed: BoolArray = (present[rows] != present[before]) | (both & ~same)
    return changed


def _ends(points: Points, kept: Int64Array) -> Int64Array:
    """Where each kept point's segment ends: at its key's next kept point, or at the next known endpoint."""
    codes = points.codes[kept]
    ends = np.empty(len(kept), dtype=np.int64)
    ends[:-1] = points.times[kept[1:]]
    last = np.flatnonzero(np.diff(codes, append=-1))
    ends[last] = points.until[codes[last]]
    return ends


def _first_change(points: Points, kept: Int64Array) -> Int64Array:
    """Where each key's base value ends: at its first kept point, or at the next known endpoint."""
    change = points.until.copy()
    first = np.flatnonzero(np.diff(points.codes[kept], prepend=-1))
    change[points.codes[kept[first]]] = points.times[kept[first]]
    return change
