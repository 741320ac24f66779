"""The order of rows: integers that order them as ORDER BY does, and what comes first among equals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array, integers, take_rows
from headrace.expressions.tree import SortKey
from headrace.history import normalise, normalise_column, ordered_codes, payload_codes
from headrace.nested import is_nested
from headrace.operators.state.keys import words_of
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
        ranks = _ranks(column)
        if column.null_count:
            missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
            ranks = np.where(missing, 0, ranks)
            levels.append(missing != key.nulls_first)
        levels.append(~ranks if key.descending else ranks)
    order = np.lexsort(levels[::-1])
    changes = np.zeros(len(order), dtype=np.bool_)
    for level in levels:
        changes[1:] |= level[order[1:]] != level[order[:-1]]
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.cumsum(changes)
    return result


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
    if is_nested(column.type):
        return ordered_codes(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_decimal(column.type):
        lowest, *others = words_of(column.fill_null(0) if column.null_count else column)
        if all((other == lowest >> 63).all() for other in others):
            # Units of the last digit that fit in 64 bits.
            return lowest
    return np.asarray(pc.rank(column, tiebreaker="dense").to_numpy()).astype(np.int64)
