"""Keys: hashes of rows, SQL's grouping equality, and dense codes inside a batch.

Two rows are the same key when SQL's grouping says so: NULL = NULL, NaN = NaN, -0 = 0. Rows are compared by
a 64-bit hash first; equality is verified, so a collision costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.history import normalise_column
from headrace.kernels.rows.grouping import dense_codes, order_by_code
from headrace.kernels.rows.hashing import buckets_of, equal_bytes, fold_bytes, fold_words
from headrace.kernels.rows.sorting import stable_order
from headrace.nested import fields_of, is_nested, is_sequence, map_parts, offsets_of, values_of
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING


@dataclass(frozen=True, eq=False)
class Codes:
    """Dense numbers for the keys of a batch.

    Attributes:
        codes: int64[n], the number of each row's key.
        first: int64[k], the first row of each key.
    """

    codes: Int64Array
    first: Int64Array

    def __len__(self) -> int:
        return len(self.first)


def normalise(column: pa.Array) -> pa.Array:
    """The column with one representative per key value, as in canonical histories."""
    return normalise_column(column)


def hash_rows(columns: Sequence[pa.Array], count: int) -> Int64Array:
    """The 64-bit hash of each row of normalised key columns; int64[count], the same everywhere."""
    hashes = np.zeros(count, dtype=np.int64)
    for column in columns:
        valid = _valid(column)
        if column.type in (STRING, BINARY):
            offsets, data = _string_buffers(column)
            fold_bytes(offsets, data, valid, hashes)
        elif is_sequence(column.type):
            # An ARRAY is the string of the hashes of its values, each of them 8 bytes, the lowest first.
            values = values_of(column)
            parts = hash_rows([values], len(values)).view(np.uint8)
            fold_bytes(offsets_of(column) * np.int32(8), parts, valid, hashes)
        elif pa.types.is_struct(column.type):
            fold_words(hash_rows(fields_of(column), len(column)), valid, hashes)
        else:
            for words in words_of(column):
                fold_words(words, valid, hashes)
    return hashes


def bucket_rows(hashes: Int64Array, count: int) -> Int64Array:
    """The bucket 0..count-1 of each hash."""
    return buckets_of(hashes, count) if count > 1 else np.zeros(len(hashes), dtype=np.int64)


def equal_rows(
    left: Sequence[pa.Array],
    left_rows: npt.NDArray[np.integer] | None,
    right: Sequence[pa.Array],
    right_rows: npt.NDArray[np.integer],
) -> BoolArray:
    """Whether pairs of rows of normalised key columns are the same key; bool[pairs].

    `left_rows` is None for all rows of the left columns, in order.
    """
    same: BoolArray = np.ones(len(right_rows), dtype=np.bool_)
    for ours, theirs in zip(left, right, strict=True):
        if ours.type in (STRING, BINARY):
            mine = ours if left_rows is None else ours.take(pa.array(left_rows))
            rows = right_rows.astype(np.int64, copy=False)
            equal = equal_bytes(*_string_buffers(mine), *_string_buffers(theirs), rows)
        elif is_sequence(ours.type):
            mine = ours if left_rows is None else ours.take(pa.array(left_rows))
            equal = _equal_lists(mine, theirs.take(pa.array(right_rows)))
        elif pa.types.is_struct(ours.type):
            equal = equal_rows(fields_of(ours), left_rows, fields_of(theirs), right_rows)
        else:
            words = zip(words_of(ours), words_of(theirs), strict=True)
            pairs = (_rows(mine, left_rows) == other[right_rows] for mine, other in words)
            equal = np.logical_and.reduce(list(pairs))
        if ours.null_count or theirs.null_count:
            ours_valid, theirs_valid = _rows(_valid(ours), left_rows), _valid(theirs)[right_rows]
            both_null = (ours_valid == 0) & (theirs_valid == 0)
            equal = (equal & (ours_valid == 1) & (theirs_valid == 1)) | both_null
        same &= equal
    return same


def _equal_lists(left: pa.Array, right: pa.Array) -> BoolArray:
    """Whether lists of the same place have the same values, as far as neither is NULL; bool[n]."""
    starts, others = (offsets_of(column).astype(np.int64) for column in (left, right))
    sizes = np.diff(starts)
    equal: BoolArray = sizes == np.diff(others)
    rows = np.flatnonzero(equal & (sizes > 0))
    first = np.cumsum(sizes[rows]) - sizes[rows]
    within = np.arange(sizes[rows].sum()) - np.repeat(first, sizes[rows])
    places = (np.repeat(offsets[rows], sizes[rows]) + within for offsets in (starts, others))
    same = equal_rows([values_of(left)], next(places), [values_of(right)], next(places))
    if len(rows):
        equal[rows] = np.logical_and.reduceat(same, first)
    return equal


def _rows(values: np.ndarray, rows: npt.NDArray[np.integer] | None) -> np.ndarray:
    return values if rows is None else values[rows]


def encode_keys(columns: Sequence[pa.Array], hashes: Int64Array) -> Codes:
    """Number the keys of normalised columns 0..k-1 in order of first appearance."""
    if not columns:
        return Codes(np.zeros(len(hashes), dtype=np.int64), np.zeros(min(1, len(hashes)), dtype=np.int64))
    codes, first = dense_codes(hashes)
    wrong = np.flatnonzero(~equal_rows(columns, None, columns, first[codes]))
    if len(wrong):
        return _separate(columns, codes, first, wrong)
    return Codes(codes, first)


def order_by(codes: Int64Array, times: Int64Array, count: int) -> Int64Array:
    """The rows sorted by code 0..count-1, then time, stably; int64[n]."""
    return order_by_code(codes, stable_order(times), count)


def order_by_hash(codes: Int64Array, rows: Int64Array, hashes: Int64Array) -> Int64Array:
    """`rows` stably sorted by the hashes of their codes; int64[len(rows)].

    Args:
        codes: int64[n], the code of each row.
        rows: the rows to sort.
        hashes: int64[k], the hash of each code; two codes may share one.
    """
    rank, count = ranks(hashes)
    return order_by_code(rank[codes], rows, count) if count else rows


def ranks(values: Int64Array) -> tuple[Int64Array, int]:
    """For each value how many smaller ones there are that differ, int64[n]; and how many differ in all."""
    order = stable_order(values)
    if not len(order):
        return order, 0
    fresh = np.ones(len(order), dtype=np.int64)
    fresh[1:] = np.diff(values[order]) != 0
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(fresh) - 1
    return rank, int(rank[order[-1]]) + 1


def _separate(columns: Sequence[pa.Array], codes: Int64Array, first: Int64Array, wrong: Int64Array) -> Codes:
    """Give rows that share a hash with another key codes of their own."""
    codes = codes.copy()
    extra: dict[tuple[object, ...], int] = {}
    added: list[int] = []
    parts = [key_values(column.take(pa.array(wrong))) for column in columns]
    for row, values in zip(wrong.tolist(), zip(*parts, strict=True), strict=True):
        key = (codes[row], *values)
        if key not in extra:
            extra[key] = len(first) + len(added)
            added.append(row)
        codes[row] = extra[key]
    return Codes(codes, np.concatenate([first, np.array(added, dtype=np.int64)]))


def key_values(column: pa.Array) -> list[object]:
    """The rows of a normalised key column as Python values that are equal where the keys are."""
    return list(map(_hashable, _counts(column).to_pylist()))


def _counts(column: pa.Array) -> pa.Array:
    """Dates and times as numbers, since Python has no dates after the year 9999."""
    if is_nested(column.type):
        return map_parts(column, _counts)
    if pa.types.is_timestamp(column.type):
        return column.view(BIGINT)
    return column.view(pa.int32()) if pa.types.is_date(column.type) else column


def _hashable(value: object) -> object:
    if isinstance(value, dict):
        return tuple(map(_hashable, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return "NaN" if value != value else value


def _valid(column: pa.Array) -> npt.NDArray[np.uint8]:
    if column.null_count == 0:
        return np.ones(len(column), dtype=np.uint8)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False)).view(np.uint8)


def words_of(column: pa.Array) -> list[Int64Array]:
    """A fixed-width column as vectors of 64-bit words, two or four of a DECIMAL; NULLs hold anything."""
    if pa.types.is_decimal(column.type):
        count = column.type.bit_width // 64
        if len(column) == 0:
            return [np.empty(0, dtype=np.int64)] * count
        words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, count)
        words = words[column.offset : column.offset + len(column)]
        return [np.ascontiguousarray(words[:, part]) for part in range(count)]
    if column.type == BOOLEAN or pa.types.is_null(column.type):
        column = column.cast(pa.int8()).cast(pa.int64())
    elif column.type == DATE:
        column = column.cast(pa.int32()).cast(pa.int64())
    if column.null_count:
        column = column.fill_null(0.0 if column.type == DOUBLE else pa.scalar(0).cast(column.type))
    if column.type == DOUBLE:
        return [np.asarray(column.to_numpy()).view(np.int64)]
    return [integers(column)]


def _string_buffers(column: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    _, offsets, data = column.buffers()
    if len(column) == 0 or offsets is None:
        return np.zeros(len(column) + 1, dtype=np.int32), np.empty(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    content = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return starts, content
