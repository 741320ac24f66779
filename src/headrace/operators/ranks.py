"""Ranks: integers that order rows as ORDER BY does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array, integers
from headrace.expressions.tree import SortKey
from headrace.history import normalise_column, ordered_bytes
from headrace.schema import BIGINT, DOUBLE


def rank_rows(columns: Sequence[pa.Array], keys: Sequence[SortKey]) -> Int64Array:
    """Integers in the order of the rows, the same where rows are equal in all columns; int64[n].

    Args:
        columns: what to sort by, the most significant first, n rows.
        keys: in which direction, one for each column; NaN counts as the largest number (Spark SQL).
    """
    if len(columns) == 1 and columns[0].null_count == 0:
        ranks = _ranks(columns[0])
        return ~ranks if keys[0].descending else ranks
    levels = []
    for column, key in zip(columns, keys, strict=True):
        missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        ranks = np.where(missing, 0, _ranks(column))
        levels += [missing != key.nulls_first, ~ranks if key.descending else ranks]
    order = np.lexsort(levels[::-1])
    changes = np.zeros(len(order), dtype=np.bool_)
    for level in levels:
        changes[1:] |= level[order[1:]] != level[order[:-1]]
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.cumsum(changes)
    return result


def _ranks(column: pa.Array) -> Int64Array:
    """Integers in the order of the values; anything for NULLs."""
    column = normalise_column(column)
    if column.type == DOUBLE:
        values = column.fill_null(0.0) if column.null_count else column
        bits = np.asarray(values.to_numpy(zero_copy_only=False)).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    if column.type == BIGINT or pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
        return integers(column.fill_null(0) if column.null_count else column)
    column = ordered_bytes(column) if pa.types.is_list(column.type) else column
    return np.asarray(pc.rank(column, tiebreaker="dense").to_numpy()).astype(np.int64)
