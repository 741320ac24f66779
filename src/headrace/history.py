"""Canonical histories: the content of a stream, written in the one way that does not depend on its making.

The content at an instant is a multiset of payloads (`docs/concepts.md`). Payloads are compared by SQL's
grouping equality: NULL equals NULL, NaN equals NaN, -0 equals 0. Everything here works on whole columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Batch, BoolArray, Int64Array, concat_rows, take_rows
from headrace.errors import HistoryError
from headrace.nested import fields_of, innermost, is_nested, is_sequence, map_parts, offsets_of, values_of
from headrace.schema import BIGINT, TIMESTAMP
from headrace.time import INFINITY


def canonical(batch: Batch) -> Batch:
    """The content of the batch as maximal, coalesced intervals, every `w = 1`.

    A payload that is k times in the content is k rows: row j covers the maximal intervals in which the
    multiplicity is at least j. The rows are sorted by `ts`, then payload (NULL first, NaN last), then `te`.

    Raises:
        HistoryError: the multiplicity of a payload is below zero at some instant.
    """
    payload = normalise(batch.payload)
    codes = payload_codes(payload)
    code, ts, te = _layers(*_steps(codes, batch))
    order = _order(ts, code, te)
    code, ts, te = code[order], ts[order], te[order]
    rows = take_rows(payload, _representatives(codes)[code])
    return Batch(rows, ts, te, np.ones(len(ts), dtype=np.int64))


def snapshot(batch: Batch, instant: int) -> pa.RecordBatch:
    """The content at an instant: a row for every payload and multiplicity, sorted by payload.

    Raises:
        HistoryError: the multiplicity of a payload is below zero at the instant.
    """
    valid = batch.filter((batch.ts <= instant) & (instant < batch.te))
    payload = normalise(valid.payload)
    codes = payload_codes(payload)
    representatives = _representatives(codes)
    counts = np.zeros(len(representatives), dtype=np.int64)
    np.add.at(counts, codes, valid.w)
    if (counts < 0).any():
        raise HistoryError(f"a payload's multiplicity is below zero at {instant}")
    return take_rows(payload, np.repeat(representatives, counts))


def content_within(batch: Batch, begin: int, end: int) -> pa.RecordBatch:
    """The rows that are there at some instant of a span, each as often as it is at once at most.

    Args:
        batch: elements.
        begin, end: the first instant of the span, and the first one after its last.

    Returns:
        Rows sorted by payload.

    Raises:
        HistoryError: the multiplicity of a payload is below zero at some instant of the span.
    """
    early = clip(batch, end)
    there = early.filter(early.te > begin)
    payload = normalise(there.payload)
    codes = payload_codes(payload)
    code, time, change = _steps(codes, Batch(payload, np.maximum(there.ts, begin), there.te, there.w))
    # The changes of one payload add up to 0, so one running sum serves all payloads.
    count = np.cumsum(change)
    if (count < 0).any():
        raise HistoryError(f"a payload's multiplicity is below zero at {time[np.argmax(count < 0)]}")
    representatives = _representatives(codes)
    most = np.zeros(len(representatives), dtype=np.int64)
    np.maximum.at(most, code, count)
    return take_rows(payload, np.repeat(representatives, most))


def difference(before: Batch, after: Batch) -> Batch:
    """What has to be added to one content, and taken from it, to make another one.

    Returns:
        Maximal, coalesced intervals by `ts`, with `w = 1` where rows are added and `w = -1` where they are
        taken away; those that are added first.
    """
    both = _both(before.negated(), after)
    payload = normalise(both.payload)
    codes = payload_codes(payload)
    code, time, change = _steps(codes, both)
    # The changes of one payload add up to 0, so nothing of it is left after its last one.
    height = np.cumsum(change)[:-1]
    rows = take_rows(payload, _representatives(codes)[code[:-1]])
    pieces = Batch(rows, time[:-1], time[1:], height)
    added, taken = pieces.filter(height > 0), pieces.filter(height < 0).negated()
    found = _both(canonical(added), canonical(taken).negated())
    return found.take(np.argsort(found.ts, kind="stable"))


def _both(first: Batch, second: Batch) -> Batch:
    """The elements of one batch, then those of another one."""
    ts, te, w = (np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("ts", "te", "w"))
    return Batch(concat_rows([first.payload, second.payload]), ts, te, w)


def clip(batch: Batch, until: int) -> Batch:
    """The part of the batch that says something about instants before `until`."""
    if until == INFINITY:
        return batch
    early = batch.filter(batch.ts < until)
    return Batch(early.payload, early.ts, np.minimum(early.te, until), early.w)


def equivalent(left: Batch, right: Batch, until: int = INFINITY, float_tolerance: float = 0.0) -> bool:
    """Whether two streams have the same content at every instant before `until`.

    Column names do not count, column types do.

    Args:
        left: elements of one stream, in any order and any division into intervals.
        right: elements of the other one.
        until: the first instant that is not compared.
        float_tolerance: DOUBLE values whose distance is at most so much times the larger of 1 and their size
            are taken for one value, and so are values that a chain of such neighbours links.

    Raises:
        HistoryError: the multiplicity of a payload is below zero at some instant before `until`.
    """
    if left.payload.schema.types != right.payload.schema.types:
        return False
    left, right = clip(left, until), clip(right, until)
    if float_tolerance:
        left, right = _with_clustered_floats(left, right, float_tolerance)
    left, right = canonical(left), canonical(right)
    if not (np.array_equal(left.ts, right.ts) and np.array_equal(left.te, right.te)):
        return False
    pairs = zip(left.payload.columns, right.payload.columns, strict=True)
    return all(_same_values(one, other) for one, other in pairs)


def normalise(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with -0 written as 0 and every NaN alike, so that equal payloads have equal bytes."""
    columns = [normalise_column(column) for column in rows.columns]
    if all(new is old for new, old in zip(columns, rows.columns, strict=True)):
        return rows
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def normalise_column(column: pa.Array) -> pa.Array:
    """The column with one representative per value: -0.0 becomes 0.0 and every NaN the same NaN."""
    if pa.types.is_floating(column.type):
        return _normal_floats(column)
    if is_nested(column.type) and any(map(pa.types.is_floating, innermost(column.type))):
        return map_parts(column, normalise_column)
    return column


def payload_codes(rows: pa.RecordBatch) -> Int64Array:
    """A number per row, from 0 without gaps: equal for equal rows, and ordered as the rows are.

    Rows are ordered column by column, NULL first and NaN last; ARRAYs by their first difference, STRUCTs
    field by field, MAPs as ARRAYs of their entries. They must have been normalised.
    """
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    size = 1
    for column in rows.columns:
        own, own_size = _column_codes(column)
        if size * own_size >= 2**62:
            codes, size = _dense(codes)
        codes, size = codes * own_size + own, size * own_size
    return _dense(codes)[0]


def _normal_floats(column: pa.Array) -> pa.Array:
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, mask=mask)


def _column_codes(column: pa.Array) -> tuple[Int64Array, int]:
    """Codes of one column in the order of its values, 0 for NULL if there is one, and a bound on them."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64), 1
    if pa.types.is_floating(column.type):
        codes, size = _dense(_filled(column))
    elif column.type in _WHOLE:
        codes, size = _dense_if_wide(np.asarray(column.cast(pa.int64()).fill_null(0)))
    elif pa.types.is_struct(column.type):
        codes, size = _dense(payload_codes(_as_rows(column)))
    else:
        codes, size = _dictionary_codes(_ordered_bytes(column) if is_sequence(column.type) else column)
    if column.null_count == 0:
        return codes, size
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), codes + 1, 0), size + 1


def ordered_codes(column: pa.Array) -> Int64Array:
    """A number per value of a normalised column: equal for equal ones, ordered as they are, NULL first."""
    return _column_codes(column)[0]


def _ordered_bytes(column: pa.Array) -> pa.LargeBinaryArray:
    """Normalised ARRAYs or MAPs as byte strings that are equal and ordered as they are; NULL stays NULL."""
    codes = ordered_codes(values_of(column)).astype(">i8")
    offsets = offsets_of(column).astype(np.int64) * codes.itemsize
    buffers = [column.is_valid().buffers()[1], pa.py_buffer(offsets), pa.py_buffer(codes)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)


def _as_rows(column: pa.StructArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(fields_of(column), names=[field.name for field in column.type])


_WHOLE: Final = (BIGINT, TIMESTAMP)
"""The types whose values are numbers that may serve as codes."""


def _dense_if_wide(values: Int64Array) -> tuple[Int64Array, int]:
    """The numbers counted from the smallest one; from one to the next if they lie too far apart."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return (values - low, high - low + 1) if high - low < 2**40 else _dense(values)


def _dictionary_codes(column: pa.Array) -> tuple[Int64Array, int]:
    encoded = column.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    ranks = np.zeros(max(len(order), 1), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[encoded.indices.fill_null(0).to_numpy()], max(len(order), 1)


def _dense(codes: npt.NDArray[Any]) -> tuple[Int64Array, int]:
    values, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64, copy=False), max(len(values), 1)


def _representatives(codes: Int64Array) -> npt.NDArray[np.intp]:
    """A row for each code."""
    rows = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.intp)
    rows[codes] = np.arange(len(codes))
    return rows


def _steps(codes: Int64Array, batch: Batch) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The changes of multiplicity: code, instant and change, by code and instant; no change is 0."""
    code = np.concatenate([codes, codes])
    time = np.concatenate([batch.ts, batch.te])
    change = np.concatenate([batch.w, -batch.w])
    order = _order(code, time)
    code, time, change = code[order], time[order], change[order]
    first = np.ones(len(code), dtype=np.bool_)
    first[1:] = (code[1:] != code[:-1]) | (time[1:] != time[:-1])
    starts = np.flatnonzero(first)
    net = np.add.reduceat(change, starts) if len(starts) else change
    kept = net != 0
    return code[starts][kept], time[starts][kept], net[kept]


def _layers(
    code: Int64Array, time: Int64Array, change: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The intervals of all layers: code, start and end."""
    # The changes of one payload add up to 0, so one running sum serves all payloads.
    count = np.cumsum(change)
    if (count < 0).any():
        raise HistoryError(f"a payload's multiplicity is below zero at {time[np.argmax(count < 0)]}")
    opens, open_layers = _unit_steps(change > 0, change, count - change)
    closes, close_layers = _unit_steps(change < 0, -change, count)
    # Sorted alike by payload and layer, the n-th opening belongs to the n-th closing.
    opens = opens[_order(code[opens], open_layers, opens)]
    closes = closes[_order(code[closes], close_layers, closes)]
    return code[opens], time[opens], time[closes]


def _order(*keys: Int64Array) -> npt.NDArray[np.intp]:
    """The positions in the order of the keys, the first one most significant; equal rows in any order.

    NumPy sorts a single integer several times as fast as two, so the leading keys are packed into one as far
    as they fit, and the others are looked at only where the packed key is the same.
    """
    packed, size, used = np.zeros(len(keys[0]), dtype=np.int64), 1, 0
    for key in keys if len(packed) else ():
        low, span = int(key.min()), int(key.max()) - int(key.min()) + 1
        if size * span >= 2**63:
            break
        packed, size, used = packed * span + (key - low), size * span, used + 1
    if used == 0:
        return np.lexsort(keys[::-1])
    order = np.argsort(packed)
    if used < len(keys):
        same = packed[order[1:]] == packed[order[:-1]]
        tied = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
        rows = order[tied]
        rest = [key[rows] for key in keys[used:]]
        order[tied] = rows[np.lexsort((*rest[::-1], packed[rows]))]
    return order


def _unit_steps(
    chosen: BoolArray, height: Int64Array, below: Int64Array
) -> tuple[npt.NDArray[np.intp], Int64Array]:
    """Each chosen step of height h as h steps of height 1: its position, and the layer each one concerns."""
    steps = np.flatnonzero(chosen)
    heights = height[steps]
    positions = np.repeat(steps, heights)
    within = np.arange(len(positions)) - np.repeat(np.cumsum(heights) - heights, heights)
    return positions, below[positions] + within


def _same_values(left: pa.Array, right: pa.Array) -> bool:
    if pa.types.is_floating(left.type):
        nulls = np.array_equal(left.is_null(), right.is_null())
        return nulls and np.array_equal(_filled(left), _filled(right), equal_nan=True)
    if is_nested(left.type):
        left, right = normalise_column(left), normalise_column(right)
        codes = ordered_codes(pa.concat_arrays([left, right]))
        return bool(np.array_equal(codes[: len(left)], codes[len(left) :]))
    return bool(left.equals(right))


def _filled(column: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False))


def _with_clustered_floats(left: Batch, right: Batch, tolerance: float) -> tuple[Batch, Batch]:
    """Both batches with close DOUBLE values replaced by one of them."""
    columns: tuple[list[pa.Array], list[pa.Array]] = ([], [])
    for pair in zip(left.payload.columns, right.payload.columns, strict=True):
        if pa.types.is_floating(pair[0].type):
            pair = _clustered(_normal_floats(pair[0]), _normal_floats(pair[1]), tolerance)
        for side, column in zip(columns, pair, strict=True):
            side.append(column)
    if not columns[0]:
        return left, right
    return tuple(  # type: ignore[return-value]
        batch.with_payload(pa.RecordBatch.from_arrays(side, schema=batch.payload.schema))
        for batch, side in zip((left, right), columns, strict=True)
    )


def _clustered(left: pa.Array, right: pa.Array, tolerance: float) -> tuple[pa.Array, pa.Array]:
    values, places = np.unique(np.concatenate([_filled(left), _filled(right)]), return_inverse=True)
    with np.errstate(invalid="ignore"):
        gaps = values[1:] - values[:-1]
        close = gaps <= tolerance * np.maximum(1.0, np.minimum(abs(values[1:]), abs(values[:-1])))
    starts = np.flatnonzero(np.concatenate([[True], ~close])[: len(values)])
    cluster = np.cumsum(np.concatenate([[0], ~close])[: len(values)])
    replaced = values[starts][cluster][places] if len(values) else values
    halves = replaced[: len(left)], replaced[len(left) :]
    one, other = (
        pa.array(half, mask=column.is_null().to_numpy(zero_copy_only=False))
        for half, column in zip(halves, (left, right), strict=True)
    )
    return one, other
