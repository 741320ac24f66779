"""The rows of a stream of changes that can be applied to its relation."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.changes import OPERATIONS, Changes
from headrace.elements import BoolArray, take_rows
from headrace.runtime.tasks.letters import DeadLetters
from headrace.schema import STRING

_WRITTEN: Final = "write insert, update or delete, or I, U or D"


def applicable(
    name: str, changes: Changes | None, rows: pa.RecordBatch, letters: DeadLetters
) -> pa.RecordBatch:
    """The rows whose operation is known and whose key is not NULL; the others are set apart.

    Args:
        name: the relation.
        changes: which columns say what a row changes; None where rows are not changes.
        rows: the rows, with at least those columns.
        letters: takes what is set apart.
    """
    if changes is None:
        return rows
    known = pc.is_in(pc.utf8_upper(rows.column(changes.operation)), value_set=pa.array(OPERATIONS, STRING))
    wrong = ~np.asarray(known.to_numpy(zero_copy_only=False))
    _drop(name, rows, wrong, f"{changes.operation} is not a known operation; {_WRITTEN}", letters)
    for key in changes.key:
        missing = np.asarray(rows.column(key).is_null().to_numpy(zero_copy_only=False)) & ~wrong
        _drop(name, rows, missing, f"the key {key} is NULL", letters)
        wrong |= missing
    return take_rows(rows, np.flatnonzero(~wrong)) if wrong.any() else rows


def cannot_apply(changes: Changes, rows: pa.Table) -> BoolArray:
    """Which rows are never applied: their operation is not known, or their key is NULL.

    Args:
        changes: which columns say what a row changes.
        rows: the rows, with at least those columns.
    """
    known = pc.is_in(pc.utf8_upper(rows.column(changes.operation)), value_set=pa.array(OPERATIONS, STRING))
    wrong = ~np.array(known, dtype=np.bool_)
    for key in changes.key:
        wrong |= np.array(rows.column(key).is_null(), dtype=np.bool_)
    return wrong


def _drop(name: str, rows: pa.RecordBatch, mask: BoolArray, reason: str, letters: DeadLetters) -> None:
    bad = np.flatnonzero(mask)
    letters.drop(name, take_rows(rows, bad), [reason] * len(bad))
