"""Rows that are equal in what they are sorted by stand column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, take_rows
from headrace.history import normalise, payload_codes


def break_ties(rows: pa.RecordBatch, order: Int64Array, tied: BoolArray) -> tuple[Int64Array, BoolArray]:
    """Sort rows that tie by all their columns, NULL first and NaN last.

    Args:
        rows: the rows.
        order: them, or some of them, sorted.
        tied: for each in that order whether it ties with the one before.

    Returns:
        The new order, and for each in it whether it ties with the one before and is equal to it.
    """
    equal = np.zeros(len(order), dtype=np.bool_)
    if not tied.any():
        return order, equal
    places = np.flatnonzero(tied | np.append(tied[1:], False))
    group = np.cumsum(~tied)[places]
    codes = payload_codes(normalise(take_rows(rows, order[places])))
    by_payload = np.lexsort((codes, group))
    order = order.copy()
    order[places] = order[places[by_payload]]
    equal[places[1:]] = (np.diff(group) == 0) & (np.diff(codes[by_payload]) == 0)
    return order, equal
