"""Histories as logs of insertions and deletions, and back.

A history has a row with an interval where the log has two rows with an instant each: PIPES' converters
between time intervals and positive and negative elements (thesis, sections 14.1 and 17.3), for tables. A log
maintains a table elsewhere, and a relation with CHANGES BY reads it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Batch, Int64Array, integers
from headrace.errors import HistoryError, UserError
from headrace.history import canonical
from headrace.schema import BIGINT, STRING, TIMESTAMP, unique_names
from headrace.time import ALWAYS, INFINITY

_INSERT: Final = "insert"
_DELETE: Final = "delete"


def log_of(history: pa.Table) -> pa.Table:
    """The insertions and deletions that make a history, by instant, deletions first.

    Args:
        history: rows as `Query.history` gives them; the last two columns begin and end their intervals.

    Returns:
        The other columns, then `ts`, the instant of a change, and `op`, which is "insert" or "delete". `ts`
        is NULL where a row has always been there.

    Raises:
        UserError: the last two columns are not two TIMESTAMPs or two BIGINTs.

    Example:
        >>> import headrace as hr, pyarrow as pa
        >>> hr.log_of(pa.table({"n": [1, 2], "valid_from": [3, 5], "valid_to": [5, None]})).to_pydict()
        {'n': [1, 1, 2], 'ts': [3, 5, 5], 'op': ['insert', 'delete', 'insert']}
    """
    if history.num_columns < 2:
        raise UserError("a history has two columns with instants", hint="give the table of query.history()")
    rows = history.select(range(history.num_columns - 2)).combine_chunks()
    begin, end = history.columns[-2:]
    _check_instants(begin.type, end.type)
    ended = np.flatnonzero(np.asarray(end.is_valid()))
    places = np.concatenate([np.arange(len(history)), ended])
    inserted = np.arange(len(places)) < len(history)
    instants = np.concatenate([_numbers(begin, ALWAYS), _numbers(end, INFINITY)[ended]])
    order = np.lexsort((places, inserted, instants))
    names = unique_names([*rows.column_names, "ts", "op"])
    operations = pa.array(np.where(inserted, _INSERT, _DELETE)[order], STRING)
    added = [_instants(instants[order], begin.type), operations]
    return pa.table([*rows.take(pa.array(places[order])).columns, *added], names=names)


def history_of(log: pa.Table) -> pa.Table:
    """The history that insertions and deletions make, as coalesced intervals.

    Args:
        log: rows as `log_of` gives them, in any order; the last two columns are instant and operation.

    Returns:
        The other columns, `valid_from` and `valid_to`, as `Query.history` gives them.

    Raises:
        UserError: the last two columns are not an instant and an operation, or a row is deleted that is not
            there.

    Example:
        >>> import headrace as hr, pyarrow as pa
        >>> log = pa.table({"n": [1, 1, 2], "ts": [3, 5, 5], "op": ["insert", "delete", "insert"]})
        >>> hr.history_of(log).to_pydict()
        {'n': [1, 2], 'valid_from': [3, 5], 'valid_to': [5, None]}
    """
    if log.num_columns < 2:
        raise UserError("a log has an instant and an operation", hint="give the table of log_of(...)")
    rows = log.select(range(log.num_columns - 2)).combine_chunks()
    instants, operations = log.columns[-2:]
    _check_instants(instants.type, instants.type)
    known = pc.index_in(operations.cast(STRING), value_set=pa.array([_DELETE, _INSERT], STRING))
    if known.null_count:
        raise UserError(
            "a log has insertions and deletions only",
            hint=f"write {_INSERT} and {_DELETE}; updates by key are for CREATE RELATION ... CHANGES BY",
        )
    ts = _numbers(instants, ALWAYS)
    signs = 2 * integers(known.combine_chunks().cast(BIGINT)) - 1
    payload = pa.RecordBatch.from_arrays([_whole(column) for column in rows.columns], schema=rows.schema)
    try:
        found = canonical(Batch(payload, ts, np.full(len(ts), INFINITY), signs))
    except HistoryError:
        hint = "give the log from its beginning"
        raise UserError("a row is deleted that is not there", hint=hint) from None
    names = unique_names([*rows.column_names, "valid_from", "valid_to"])
    added = [_instants(times, instants.type) for times in (found.ts, found.te)]
    return pa.table([*found.payload.columns, *added], names=names)


def _check_instants(*types: pa.DataType) -> None:
    if types[0] != types[1] or types[0] not in (BIGINT, TIMESTAMP):
        raise UserError(
            f"{types[0]} and {types[1]} are no instants",
            hint="the last two columns are valid_from and valid_to of a history, ts and op of a log",
        )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _numbers(column: pa.ChunkedArray, unknown: int) -> Int64Array:
    """The instants of a column, NULL as one of them."""
    return integers(_whole(column.cast(BIGINT)).fill_null(unknown))


def _instants(values: Int64Array, dtype: pa.DataType) -> pa.Array:
    """Instants as a column, NULL for those outside of time."""
    return pa.array(values, BIGINT, mask=(values == ALWAYS) | (values == INFINITY)).cast(dtype)
