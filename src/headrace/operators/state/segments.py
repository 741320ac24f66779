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
from headrace.kernels.instants.timeline import segments
from headrace.operators.state.keys import equal_rows, normalise
from headrace.operators.state.timeline import Points


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


def emit_segments(points: Points, values: list[pa.Array], coalesce: bool) -> Segments:
    """The elements that turn what was emitted into what holds now.

    Args:
        points: the touched keys' points.
        values: the operator's value columns, m rows for the points, then k rows for the bases.
        coalesce: leave out points at which no value changes; not for streams that promise chronons.
    """
    count = len(points.codes)
    present = points.counts > 0
    changed = _changed(points, values, present) if coalesce else np.ones(count, dtype=np.bool_)
    is_there, was_there = present[:count].view(np.uint8), present[count:].view(np.uint8)
    found = segments(
        points.codes, points.times, is_there, was_there, changed.view(np.uint8), points.covered, points.until
    )
    return Segments(*found)


def previous_rows(points: Points) -> Int64Array:
    """The row that holds before each point: the previous point of its key, or its base; int64[m]."""
    return np.where(points.previous < 0, len(points.codes) + points.codes, points.previous)


def _changed(points: Points, values: list[pa.Array], present: BoolArray) -> BoolArray:
    count = len(points.codes)
    before = previous_rows(points)
    clean = [normalise(column) for column in values if column.null_count < len(column)]
    same = equal_rows([column.slice(0, count) for column in clean], None, clean, before)
    was = present[before]
    changed: BoolArray = (present[:count] != was) | (was & ~same)
    return changed
