"""What HASH means: Murmur3 of 32 bits as Spark SQL has it, one value after the other."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.reference.casts import EXACT

_BITS = 0xFFFFFFFF


def hash_of(types: Sequence[pa.DataType], values: Sequence[Any]) -> int:
    """The hash of values of some types, begun with 42; a NULL leaves it as it is."""
    running = 42
    for dtype, value in zip(types, values, strict=True):
        if value is not None:
            data, words = _words(dtype, value)
            for word in words:
                running = _rotate(running ^ _rotate(word * 0xCC9E2D51, 15) * 0x1B873593 & _BITS, 13)
                running = running * 5 + 0xE6546B64 & _BITS
            running ^= len(data)
            for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
                running = (running ^ running >> shift) * factor & _BITS
    return running - 2**32 if running >= 2**31 else running


def _rotate(word: int, bits: int) -> int:
    word &= _BITS
    return (word << bits | word >> 32 - bits) & _BITS


def _words(dtype: pa.DataType, value: Any) -> tuple[bytes, list[int]]:
    """The bytes of a value, and the words of four of them, and of each one that is left over."""
    data = _data(dtype, value)
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    return data, words + [byte - 256 & _BITS if byte > 127 else byte for byte in data[whole:]]


def _data(dtype: pa.DataType, value: Any) -> bytes:
    match value:
        case bool():
            return int(value).to_bytes(4, "little")
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
        case datetime():
            micros = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            return micros.to_bytes(8, "little", signed=True)
        case date():
            return (value - date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
        case Decimal():
            units = int(value.scaleb(dtype.scale, EXACT))
            if dtype.precision <= 18:
                return units.to_bytes(8, "little", signed=True)
            size = (units if units >= 0 else -units - 1).bit_length() // 8 + 1
            return units.to_bytes(size, "big", signed=True)
        case _:
            return int(value).to_bytes(8, "little", signed=True)
