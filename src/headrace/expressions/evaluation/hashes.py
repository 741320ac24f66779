"""HASH over columns: the hash that Spark SQL gives the same values, Murmur3 of 32 bits (Appleby).

It differs from the printed one in strings: each byte behind the last whole word of four is mixed in as a
word of its own, with its sign. Where a value is NULL the hash stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array, integers
from headrace.expressions.evaluation.decimals import unscaled
from headrace.expressions.evaluation.values import Datum, Kernel, KernelResult, fine, rows_of, spread
from headrace.expressions.tree import Call
from headrace.limits import checked
from headrace.schema import BIGINT

_Words = npt.NDArray[np.uint32]
_SEED: Final = 42
_LONG_DIGITS: Final = 18
"""A DECIMAL of so many digits is hashed as a whole number of 64 bits, a longer one as bytes."""


def _hash(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    count = rows_of(arguments)
    hashes = np.full(count, _SEED, dtype=np.uint32)
    for argument in arguments:
        column = spread(argument, count)
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        hashes = np.where(valid, _folded(column, valid, hashes), hashes)
    return fine(pa.array(hashes.view(np.int32).astype(np.int64)))


def _folded(column: pa.Array, valid: BoolArray, hashes: _Words) -> _Words:
    """The hashes with a column folded in; any number where it is NULL."""
    dtype = column.type
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return _of_bytes(column.cast(pa.binary()).fill_null(b""), hashes)
    if pa.types.is_decimal(dtype) and dtype.precision > _LONG_DIGITS:
        return _of_bytes(pa.array(map(_java_bytes, unscaled(column)), pa.binary()), hashes)
    if pa.types.is_decimal(dtype):
        return _of_longs(np.array(unscaled(column), dtype=np.int64), hashes)
    if pa.types.is_float64(dtype):
        # -0 and 0 are one value, and so is every NaN.
        values = pc.add(column, 0.0).fill_null(0.0).to_numpy(zero_copy_only=False)
        return _of_longs(np.where(np.isnan(values), np.nan, values).view(np.int64), hashes)
    if pa.types.is_date32(dtype):
        return _of_words(integers(column.cast(pa.int32()).cast(BIGINT).fill_null(0)), hashes)
    short = pa.types.is_boolean(dtype)
    return (_of_words if short else _of_longs)(integers(column.cast(BIGINT).fill_null(0)), hashes)


def _of_words(values: Int64Array, hashes: _Words) -> _Words:
    return _ended(_mixed(hashes, values.astype(np.uint32)), 4)


def _of_longs(values: Int64Array, hashes: _Words) -> _Words:
    words = values.view(np.uint64)
    low = _mixed(hashes, words.astype(np.uint32))
    return _ended(_mixed(low, (words >> np.uint64(32)).astype(np.uint32)), 8)


def _of_bytes(texts: pa.Array, hashes: _Words) -> _Words:
    _, ends, content = texts.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, dtype=np.uint8)
    starts, sizes = offsets[:-1].astype(np.int64), np.diff(offsets)
    result = hashes.copy()
    for at in checked(range(0, int(sizes.max(initial=0)), 4)):
        # First the whole words, and then what is behind the last one.
        whole = np.flatnonzero(sizes >= at + 4)
        parts = [
            data[starts[whole] + at + place].astype(np.uint32) << np.uint32(8 * place) for place in range(4)
        ]
        result[whole] = _mixed(result[whole], parts[0] | parts[1] | parts[2] | parts[3])
        for place in range(3):
            rest = np.flatnonzero((sizes < at + 4) & (sizes > at + place))
            signed = data[starts[rest] + at + place].view(np.int8).astype(np.int64)
            result[rest] = _mixed(result[rest], signed.astype(np.uint32))
    return _ended(result, sizes.astype(np.uint32))


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _mixed(hashes: _Words, words: _Words) -> _Words:
    scrambled = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(hashes ^ scrambled, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _ended(hashes: _Words, length: int | _Words) -> _Words:
    hashes = hashes ^ np.uint32(length)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _java_bytes(value: int) -> bytes:
    """The fewest bytes of a whole number in two's complement, the highest first."""
    return int(value).to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


KERNELS: Final[dict[str, Kernel]] = {"HASH": _hash}
"""The functions of hashes."""
