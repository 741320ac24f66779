"""Stable 64-bit hashes of rows, one column at a time.

The hash of a row is the same on every machine, in every process and in every batch. Each kernel folds one
column into running hashes: `h = mix(h ^ mix(word + salt))`, where `mix` is the finaliser of splitmix64
(Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, 2014).
"""

from __future__ import annotations

import numpy as np

from headrace.elements import BoolArray, Int64Array
from headrace.kernels.jit import BYTES, INT, INT1, INT1_OUT, OFFSETS, inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Added to a word before it is mixed, so that 0 is not mixed to 0."""
_NULL = np.uint64(0x5851F42D4C957F2D)


@inlined
def mix(value):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: a word whose bits depend on all bits of another."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel(INT1, BYTES, INT1_OUT)
def fold_words(words: Int64Array, valid: np.ndarray, hashes: Int64Array) -> None:
    """Fold a column of 64-bit words into `hashes` (int64[n], in place); `valid` is 0 where it is NULL."""
    for row in range(len(words)):
        word = np.uint64(words[row]) + GOLDEN if valid[row] else _NULL
        hashes[row] = np.int64(mix(np.uint64(hashes[row]) ^ mix(word)))


@kernel(OFFSETS, BYTES, BYTES, INT1_OUT)
def fold_bytes(offsets: np.ndarray, data: np.ndarray, valid: np.ndarray, hashes: Int64Array) -> None:
    """Fold a string column (Arrow offsets and bytes) into `hashes` (int64[n], in place)."""
    for row in range(len(valid)):
        word = _NULL
        if valid[row]:
            at = np.uint64(offsets[row])
            end = np.uint64(offsets[row + 1])
            word = end - at + GOLDEN
            while at + np.uint64(8) <= end:
                # Eight of a known number, so that they are read at once.
                part = np.uint64(0)
                for place in range(8):
                    part = (part << np.uint64(8)) | np.uint64(data[at + np.uint64(place)])
                word = mix(word ^ mix(part + GOLDEN))
                at += np.uint64(8)
            if at < end:
                part = np.uint64(0)
                while at < end:
                    part = (part << np.uint64(8)) | np.uint64(data[at])
                    at += np.uint64(1)
                word = mix(word ^ mix(part + GOLDEN))
        hashes[row] = np.int64(mix(np.uint64(hashes[row]) ^ mix(word)))


@kernel(INT1, INT)
def buckets_of(hashes: Int64Array, count: int) -> Int64Array:
    """The bucket 0..count-1 of each hash, taken from its upper half; int64[n]."""
    result = np.empty(len(hashes), dtype=np.int64)
    for row in range(len(hashes)):
        result[row] = np.int64(
            ((np.uint64(hashes[row]) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
        )
    return result


@kernel(OFFSETS, BYTES, OFFSETS, BYTES, INT1)
def equal_bytes(
    offsets: np.ndarray, data: np.ndarray, other_offsets: np.ndarray, other_data: np.ndarray, rows: Int64Array
) -> BoolArray:
    """Whether each string of a column is that of a row of another column; bool[n].

    Args:
        offsets: int32[n + 1], of the strings (Arrow offsets).
        data: their bytes.
        other_offsets: likewise of the other column.
        other_data: its bytes.
        rows: int64[n], the row of the other column for each.
    """
    equal = np.empty(len(rows), dtype=np.bool_)
    for row in range(len(rows)):
        start, other = np.uint64(offsets[row]), np.uint64(other_offsets[rows[row]])
        size = np.uint64(offsets[row + 1]) - start
        differ = np.uint8(size != np.uint64(other_offsets[rows[row] + 1]) - other)
        if not differ:
            # To the end, so that many bytes are compared at once.
            for at in range(size):
                differ = np.uint8(differ | (data[start + at] ^ other_data[other + at]))
        equal[row] = not differ
    return equal
